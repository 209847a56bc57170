//! The host itself: what differs on it, and changing it.

use super::{ClusterSite, change_turn};
use crate::engine::host::HostError;
use crate::model::error_chain::error_chain;
use crate::model::name::HostName;
use crate::operation::effect::{Observation, Returned};
use crate::operation::host_access::{HostAccess, HostPlan};
use crate::operation::inputs::NodeInputs;
use crate::operation::layer::Layer;
use crate::operation::observed::layer_plan::LayerPlan;
use crate::operation::script_turn::member_data_turn;
use crate::operation::site::EffectError;
use crate::operation::survey;
use crate::pki::authority::Authority;
use crate::pki::certificate_request::ParsedCsr;
use crate::pki::leaf::{Leaf, Usage};
use crate::pki::serial::Serial;
use crate::pki::validity::days;
use crate::resource::contract::step::{CertificateRequest, KeyUsage};
use crate::transport::Program;

impl ClusterSite {
    pub(super) async fn survey(&self) -> Result<Observation, EffectError> {
        let observed = self.ports.host.observe(&survey::probes()).await?;
        Ok(Observation::Survey(survey::read(&observed)))
    }

    pub(super) async fn plan(&self, layer: &Layer, inputs: &NodeInputs) -> Result<Observation, EffectError> {
        match layer {
            Layer::Removed => return self.plan_removal(inputs).await,
            Layer::OtherRoles => return self.plan_other_roles(inputs).await,
            _ => {}
        }
        let desired = self.desired(layer, inputs, &self.spec)?;
        let plan = self.ports.host.plan(desired, &inputs.facts).await?;
        Ok(Observation::Plan(layer.clone(), LayerPlan::of(plan)))
    }

    /// Carries out a plan. Its own last observation shows that nothing differs, so no further look is needed; but the
    /// proxy depends on the other nodes, which may have changed since it was planned.
    pub(super) async fn apply(&self, layer: &Layer, plan: &HostPlan) -> Result<Returned, EffectError> {
        if *layer == Layer::Base {
            self.record_host().await?;
        }
        let work = self.carry_out(&self.spec.name, self.ports.host.as_ref(), plan);
        let (changed, unchanged) =
            if layer.restarts_in_turn() { self.in_turn(work).await? } else { work.await? };
        if *layer == Layer::Base {
            self.record_packages().await?;
        }
        let settled = (*layer != Layer::Proxy)
            .then(|| Observation::Plan(layer.clone(), LayerPlan::Unchanged(changed + unchanged)));
        Ok(Returned { changed, observed: settled.into_iter().collect() })
    }

    /// Drops the work when the lease is lost, where this run holds it.
    async fn in_turn<T>(&self, work: impl Future<Output = Result<T, EffectError>>) -> Result<T, EffectError> {
        match self.lease.lock().await.as_ref() {
            Some(lease) => lease.run(work).await?,
            None => work.await,
        }
    }

    /// How many resources were changed, and how many were not. Other operations wait for their turn on this host.
    pub(super) async fn carry_out(
        &self,
        name: &HostName,
        host: &dyn HostAccess,
        plan: &HostPlan,
    ) -> Result<(usize, usize), EffectError> {
        let (now, report) = ((self.workspace.now)(), self.workspace.report.clone());
        let sign = |request: &CertificateRequest, csr: &str| {
            let trust = self.trust().map_err(|error| error_chain(&error))?;
            let all = &trust.authorities;
            let authority = match request.authority.as_str() {
                "kubernetes" => &all.kubernetes,
                "etcd" => &all.etcd,
                "front-proxy" => &all.front_proxy,
                other => return Err(format!("there is no CA {other}")),
            };
            sign(authority, request, csr, now)
        };
        change_turn::alone(&self.workspace.layout, name, async {
            let outcome = host.apply(plan, &sign, &|event| report(event)).await?;
            Ok((outcome.changed.len(), outcome.unchanged))
        })
        .await
    }

    pub(super) async fn set_aside_member_data(&self) -> Result<Returned, EffectError> {
        let script = concat!(
            include_str!("pod_processes.sh"),
            include_str!("stop_pods.sh"),
            include_str!("set_aside_member_data.sh"),
            include_str!("forget_kept_manifests.sh")
        );
        self.run("etcd-data:set aside", &(member_data_turn() + script)).await
    }

    /// Looks once more whether there is data: with etcd stopped, none can come any more.
    pub(super) async fn remove_member_manifest(&self) -> Result<Returned, EffectError> {
        let script = concat!(
            include_str!("pod_processes.sh"),
            include_str!("stop_pods.sh"),
            include_str!("remove_member_manifest.sh"),
            include_str!("forget_kept_manifests.sh")
        );
        self.run("static_pod:etcd", &(member_data_turn() + script)).await
    }

    pub(super) async fn restart_kubelet(&self) -> Result<Returned, EffectError> {
        self.run("service:kubelet", "systemctl restart kubelet.service\n").await
    }

    pub(super) async fn run(&self, resource: &str, script: &str) -> Result<Returned, EffectError> {
        self.output(resource, script.to_owned()).await?;
        Ok(Returned { changed: 1, observed: Vec::new() })
    }

    /// What a script prints.
    pub(super) async fn output(&self, resource: &str, script: String) -> Result<String, EffectError> {
        let output = self.ports.host.run(&Program { script, payload: Vec::new() }).await?;
        if output.status == 0 {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(EffectError::Host(HostError::of_script(resource, &output)))
    }
}

fn sign(
    authority: &Authority,
    request: &CertificateRequest,
    csr: &str,
    now: jiff::Timestamp,
) -> Result<String, String> {
    if request.organizations.len() > 1 {
        return Err("a certificate has one organization at most".to_owned());
    }
    let leaf = Leaf {
        common_name: request.common_name.clone(),
        organization: request.organizations.first().cloned(),
        names: request.names.clone(),
        usages: request
            .usages
            .iter()
            .map(|usage| match usage {
                KeyUsage::Server => Usage::Server,
                KeyUsage::Client => Usage::Client,
            })
            .collect(),
        lifetime: days(request.days),
    };
    let csr = ParsedCsr::from_pem(csr.as_bytes()).map_err(|error| error.to_string())?;
    authority.issue(&leaf, &csr, now, Serial::random(&mut rand::rng())).map_err(|error| error.to_string())
}
