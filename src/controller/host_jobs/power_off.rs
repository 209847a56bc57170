//! Confirms by the power hook of a host that the host is off.

use super::PoolPerformer;
use super::fault::JobFault;
use super::power_hook::PowerHook;
use crate::controller::job_performer::JobContext;
use crate::engine::cancel::CancelLevel;
use crate::kube_api::secrets::{self, SecretData};
use crate::machine::api::host_power::HostPower;
use crate::machine::job_order::JobOrder;
use crate::machine::power_call::{self, PowerReply, PowerRequest, PowerStep, PowerVerb};
use crate::model::api_contract::POWER_SECRET;

impl PoolPerformer {
    /// Succeeds when the hook reports that the host is off; it is switched off first where it is on.
    pub(super) async fn power_off(&self, order: &JobOrder, context: &JobContext<'_>) -> Result<(), JobFault> {
        tokio::select! {
            biased;
            () = context.cancel.reached(CancelLevel::AfterResource) => Err(JobFault::Interrupted),
            done = self.confirm_off(order, context) => done,
        }
    }

    async fn confirm_off(&self, order: &JobOrder, context: &JobContext<'_>) -> Result<(), JobFault> {
        if order.fence.host == self.workspace.subject.name {
            return Err(JobFault::BootstrapNode(order.fence.host.clone()));
        }
        let power = order.host.spec.power.as_ref().ok_or(JobFault::NoPowerHook)?;
        let hook = PowerHook::find(&self.workspace.layout.power_hooks(), &power.hook)?;
        let (secret, name) = self.secret(power).await?;
        let mut replies: Vec<PowerReply> = Vec::new();
        let fault = |source| JobFault::Power { hook: power.hook.clone(), source };
        while let PowerStep::Call(verb) = power_call::next(&replies).map_err(fault)? {
            (context.phase)(match verb {
                PowerVerb::Status => "power status",
                PowerVerb::Off => "power off",
            });
            let request = PowerRequest {
                verb,
                host: order.fence.host.as_str(),
                address: &order.host.spec.address,
                parameters: &power.parameters,
                secret: secret.texts(&name)?,
            };
            let output = hook.call(&request).await?;
            tracing::info!(host = request.host, hook = power.hook, %verb, "power hook succeeded");
            replies.push(power_call::reply(verb, &output).map_err(fault)?);
        }
        Ok(())
    }

    /// The data of its Secret, and the name of that; nothing without one.
    async fn secret(&self, power: &HostPower) -> Result<(SecretData, String), JobFault> {
        let Some(reference) = &power.secret_ref else { return Ok((SecretData::default(), String::new())) };
        let at = (reference.namespace.as_str(), reference.name.as_str());
        let data = secrets::read(&self.client, at, POWER_SECRET).await?;
        Ok((data, format!("{}/{}", reference.namespace, reference.name)))
    }
}
