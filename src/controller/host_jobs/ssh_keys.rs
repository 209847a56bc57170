//! Resources on the host of a Machine that no state has: public keys that may log in.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Job;
use super::fault::JobFault;
use crate::engine::states::{HostStates, own_boot_id};
use crate::machine::api::ssh_public_key::SshPublicKey;
use crate::model::event::Event;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::kind::Kind;
use crate::resource::contract::resource_id::ResourceId;
use crate::resource::contract::step::CertificateRequest;
use crate::state::{Compiled, Location, StateName};

impl Job<'_> {
    /// Adds them to those of the SSH user of the Host. None is ever removed, here or elsewhere.
    pub(super) async fn add_ssh_keys(&self, keys: &[SshPublicKey]) -> Result<(), JobFault> {
        let user = self.spec.ssh.user.as_str();
        let resources = keys.iter().enumerate().map(|(number, key)| {
            let name = format!("machine-{number}");
            (Kind::AuthorizedKey, name, json!({ "user": user, "key": key.as_str() }))
        });
        self.converge("the public keys", resources.collect()).await
    }

    /// Applies resources that are not part of a state, and verifies them.
    pub(super) async fn converge(
        &self,
        what: &'static str,
        resources: Vec<(Kind, String, Value)>,
    ) -> Result<(), JobFault> {
        if resources.is_empty() {
            return Ok(());
        }
        (self.context.phase)(what);
        let failed = |reason: String| JobFault::Declare { what, reason };
        let compiled: Result<Vec<Compiled>, JobFault> =
            resources.into_iter().map(|one| compiled(one).map_err(failed)).collect();
        let states =
            HostStates::new(compiled?, BTreeMap::new(), (self.pool.workspace.now)()).map_err(|errors| {
                failed(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
            })?;
        let host = self.ports(&self.spec).host;
        let facts = host.facts().await?;
        let plan = host.plan(Arc::new(states.seen_from(own_boot_id())), &facts).await?;
        let unsigned = |_: &CertificateRequest, _: &str| Err("no certificate belongs to it".to_owned());
        let report = self.pool.workspace.report.clone();
        host.apply(&plan, &unsigned, &|event: Event| report(event)).await?;
        Ok(())
    }
}

fn compiled((kind, name, fields): (Kind, String, Value)) -> Result<Compiled, String> {
    let fields: Map<String, Value> = fields.as_object().cloned().unwrap_or_default();
    let state: StateName = "machine".parse().map_err(|error| format!("{error}"))?;
    Ok(Compiled {
        id: ResourceId { kind, name },
        fields,
        ensure: Ensure::Present,
        sensitive: false,
        only_if_changed: Vec::new(),
        after: Vec::new(),
        source: Location::of_file("machine"),
        places: BTreeMap::new(),
        state,
    })
}
