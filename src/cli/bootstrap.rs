//! `metalform bootstrap`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use clap::Args;

use super::failure::{Exit, Failure};
use super::invocation::Invocation;
use super::preview::{self, DryRun};
use super::ssh_arguments::SshArguments;
use super::{output, summary, workspace};
use crate::engine::share::{Share, UPLOADS};
use crate::model::api_contract::{ROLE_LABEL_PREFIX, VERSION};
use crate::model::node::{NodeSpec, Taint};
use crate::model::role::Role;
use crate::model::ssh_target::{HostKeyPolicy, SshTarget};
use crate::operation::bootstrap::{BootstrapGoal, BootstrapOperation};
use crate::operation::cluster_site::{ClusterSite, OBJECTS, Ports, Workspace};
use crate::operation::dry_run::dry_run;
use crate::operation::run::{RunContext, run};
use crate::service;

/// Make this machine the first node of a cluster: package repository, registry, CAs, control plane
///
/// Reads /etc/metalform/bootstrap.yaml. Run again, it changes only what differs.
#[derive(Debug, Args)]
pub struct Bootstrap {
    #[command(flatten)]
    ssh: SshArguments,
    #[command(flatten)]
    dry: DryRun,
}

/// Roles of the bootstrap node, as in MetalK8s' quickstart.
const ROLES: [Role; 4] = [Role::Bootstrap, Role::Master, Role::Etcd, Role::Infra];
/// Roles whose name also taints it, so that no workload is placed there.
const TAINTS: [Role; 2] = [Role::Bootstrap, Role::Infra];

impl Bootstrap {
    /// Runs it.
    ///
    /// # Errors
    /// What stands in the way, all at once where it can be known at once.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let setting = workspace::open(invocation, &self.ssh).await?;
        verify(&setting)?;
        let spec = spec(&setting);
        let node = service::workspace::goal(&setting, &spec);
        let (name, images) = (node.name.clone(), setting.bundle.images.keys().cloned().collect());
        let objects = OBJECTS.map(str::to_owned).into();
        let goal = BootstrapGoal { node: node.clone(), images, objects };
        let report = setting.report.clone();
        let share = Share::new(invocation.cancel.clone(), UPLOADS);
        let ports = Ports::of_command(&setting, &spec, share);
        let site = ClusterSite::new(setting, node, spec, ports);
        if self.dry.dry_run {
            let preview = dry_run::<BootstrapOperation>(&goal, &site.dry()).await;
            let preview = preview.map_err(|error| summary::failure(name.as_str(), &error))?;
            output::print(&preview::text(name.as_str(), &preview, output::paint()))?;
            return Ok(self.dry.exit_code(preview.changes()));
        }
        let context = RunContext {
            host: name.clone(),
            report: &|event| report(event),
            cancel: invocation.cancel.clone(),
        };
        let outcome = run::<BootstrapOperation>(&goal, &site, context).await;
        let done = outcome.map_err(|error| summary::failure(name.as_str(), &error))?;
        output::print(&summary::text(name.as_str(), &done))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// A bundle with a file missing or altered would fail on some host later.
fn verify(setting: &Workspace) -> Result<(), Failure> {
    let problems = crate::bundle::verify::files(&setting.bundle_directory, &setting.bundle)
        .map_err(|error| Failure::from_error(Exit::Configuration, &error))?;
    if problems.is_empty() {
        return Ok(());
    }
    Err(Failure {
        exit: Exit::Configuration,
        errors: problems
            .iter()
            .map(|problem| format!("bundle {}: {problem}", setting.bundle_directory.display()))
            .collect(),
        hints: vec!["copy the bundle again, or build it again".to_owned()],
    })
}

fn spec(setting: &Workspace) -> NodeSpec {
    let label = |role: Role| format!("{ROLE_LABEL_PREFIX}{role}");
    let mut labels: BTreeMap<String, String> =
        ROLES.iter().map(|role| (label(*role), String::new())).collect();
    labels
        .extend(setting.bundle.kubernetes_version().map(|version| (VERSION.to_owned(), version.to_owned())));
    NodeSpec {
        name: setting.subject.name.clone(),
        roles: BTreeSet::from(ROLES),
        version: None,
        ssh: SshTarget {
            host: setting.subject.address.to_string(),
            port: 22,
            user: "root".to_owned(),
            identity_files: vec![setting.layout.ssh_key()],
            identities_only: true,
            sudo: false,
            host_key: HostKeyPolicy::Known,
            bastion: None,
        },
        taints: TAINTS
            .iter()
            .map(|role| Taint { key: label(*role), value: String::new(), effect: "NoSchedule".to_owned() })
            .collect(),
        labels,
        control_plane_ip: Some(setting.subject.address),
        workload_plane_ip: None,
        warnings: Vec::new(),
    }
}
