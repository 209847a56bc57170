//! Gives kubelets their certificates: watches requests, judges them ([`super::csr_verdict`]), approves and signs.
//!
//! # Guarantees
//! Each step is decided from the request as the API has it now, so that the controller may be killed between
//! approving and signing, and two of them may run: the API takes the first answer and refuses the second.
//!
//! # Assumptions
//! The controller manager does not sign for these two signers (it has no `--cluster-signing-cert-file`).

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Client, ResourceExt};
use serde_json::json;

use super::csr_facts::CsrFacts;
use super::csr_verdict::{NodeIdentity, Profile, Verdict, claimed_node, verdict};
use crate::kube_api::client::ApiError;
use crate::kube_api::{FIELD_MANAGER, nodes};

/// After a failure a request is looked at again.
const RETRY: Duration = Duration::from_secs(5);

/// Makes a certificate (PEM) of a request (PEM), or says why it cannot.
pub type Sign = dyn Fn(&str, Profile) -> Result<String, String> + Send + Sync;

/// Why a request has not had its answer yet.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("cannot sign: {said}")]
    Signing { said: String },
}

struct Context {
    client: Client,
    sign: Arc<Sign>,
}

/// What a request needs next.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Nothing,
    /// Add this condition through `/approval`.
    Decide(Decision),
    /// It is approved: put the certificate into its status.
    Issue(Profile),
    /// Somebody approved what must not be signed: say so in its status.
    Fail(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Decision {
    Approve,
    Deny(String),
}

/// Runs until it is dropped. Failures are logged and tried again.
pub async fn run(client: Client, sign: Arc<Sign>) {
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let context = Arc::new(Context { client, sign });
    Controller::new(requests, watcher::Config::default())
        .run(answer, |_, _, _| Action::requeue(RETRY), context)
        .for_each(async |outcome| {
            if let Err(error) = outcome {
                tracing::warn!(%error, "certificate request");
            }
        })
        .await;
}

async fn answer(csr: Arc<CertificateSigningRequest>, context: Arc<Context>) -> Result<Action, RequestError> {
    if is_finished(&csr) {
        return Ok(Action::await_change());
    }
    let judged = match CsrFacts::parse(&csr.spec.request.0) {
        Ok(facts) => {
            let node = match claimed_node(&facts) {
                Some(name) => nodes::get(&context.client, &name).await?,
                None => None,
            };
            verdict(&csr, &facts, node.as_ref().and_then(NodeIdentity::of).as_ref())
        }
        // Requests of other signers, which are not ours to deny, may be of any form.
        Err(_) if verdict(&csr, &CsrFacts::default(), None) == Verdict::Ignore => Verdict::Ignore,
        Err(error) => Verdict::Deny { reason: error.to_string() },
    };
    match carry_out(&csr, &context, step(&csr, judged)).await {
        // Who was faster has left a newer version, which is on its way here.
        Ok(()) | Err(RequestError::Api(ApiError::Conflict { .. })) => Ok(Action::await_change()),
        Err(error) => Err(error),
    }
}

/// Whether nothing more can be done: it has its certificate, or was refused.
fn is_finished(csr: &CertificateSigningRequest) -> bool {
    let issued = csr.status.as_ref().is_some_and(|status| status.certificate.is_some());
    issued || has_condition(csr, "Denied") || has_condition(csr, "Failed")
}

fn step(csr: &CertificateSigningRequest, verdict: Verdict) -> Step {
    match (verdict, has_condition(csr, "Approved")) {
        (Verdict::Ignore, _) => Step::Nothing,
        (Verdict::Sign { .. }, false) => Step::Decide(Decision::Approve),
        (Verdict::Sign { profile }, true) => Step::Issue(profile),
        (Verdict::Deny { reason }, false) => Step::Decide(Decision::Deny(reason)),
        (Verdict::Deny { reason }, true) => Step::Fail(reason),
    }
}

/// Does one step; the change that it makes brings the request here again for the next one.
async fn carry_out(
    csr: &CertificateSigningRequest,
    context: &Context,
    step: Step,
) -> Result<(), RequestError> {
    let api: Api<CertificateSigningRequest> = Api::all(context.client.clone());
    let name = csr.name_any();
    let object = || format!("certificatesigningrequest/{name}");
    let parameters = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    // A patch holds for the version of the request that it was decided from only.
    let patch = |status| {
        Patch::Merge(json!({ "metadata": { "resourceVersion": csr.resource_version() }, "status": status }))
    };
    match step {
        Step::Nothing => {}
        Step::Decide(decision) => {
            let condition = match decision {
                Decision::Approve => condition("Approved", "the kubelet's own certificate"),
                Decision::Deny(reason) => condition("Denied", &reason),
            };
            let (decision, reason) = (condition.type_.clone(), condition.message.clone());
            let patch = patch(json!({ "conditions": with(csr, condition) }));
            let decided = api.patch_approval(&name, &parameters, &patch).await;
            decided.map_err(|error| ApiError::new("approve", object(), error))?;
            tracing::info!(request = name, decision, reason, "certificate request");
        }
        Step::Issue(profile) => {
            let pem = String::from_utf8_lossy(&csr.spec.request.0);
            let certificate = (context.sign)(&pem, profile).map_err(|said| RequestError::Signing { said })?;
            let patch = patch(json!({ "certificate": k8s_openapi::ByteString(certificate.into_bytes()) }));
            let issued = api.patch_status(&name, &parameters, &patch).await;
            issued.map_err(|error| ApiError::new("sign", object(), error))?;
            tracing::info!(request = name, "certificate issued");
        }
        Step::Fail(reason) => {
            tracing::warn!(request = name, reason, "an approved certificate request is not signed");
            let patch = patch(json!({ "conditions": with(csr, condition("Failed", &reason)) }));
            let failed = api.patch_status(&name, &parameters, &patch).await;
            failed.map_err(|error| ApiError::new("fail", object(), error))?;
        }
    }
    Ok(())
}

fn conditions(csr: &CertificateSigningRequest) -> &[CertificateSigningRequestCondition] {
    csr.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default()
}

fn has_condition(csr: &CertificateSigningRequest, sort: &str) -> bool {
    conditions(csr).iter().any(|condition| condition.type_ == sort)
}

/// The conditions that a request has, and one more: a merge patch replaces the list.
fn with(
    csr: &CertificateSigningRequest,
    more: CertificateSigningRequestCondition,
) -> Vec<CertificateSigningRequestCondition> {
    conditions(csr).iter().cloned().chain([more]).collect()
}

fn condition(sort: &str, message: &str) -> CertificateSigningRequestCondition {
    CertificateSigningRequestCondition {
        type_: sort.to_owned(),
        status: "True".to_owned(),
        reason: Some("MetalformKubeletPolicy".to_owned()),
        message: Some(message.to_owned()),
        ..CertificateSigningRequestCondition::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn csr(conditions: &[&str], certificate: Option<&str>) -> CertificateSigningRequest {
        let conditions: Vec<_> = conditions.iter().map(|sort| condition(sort, "")).collect();
        serde_json::from_value(json!({
            "metadata": { "name": "csr-1" },
            "spec": { "request": "", "signerName": super::super::csr_verdict::CLIENT_SIGNER },
            "status": { "conditions": conditions, "certificate": certificate },
        }))
        .unwrap()
    }

    #[test]
    fn a_request_is_approved_first_and_signed_then() {
        let sign = || Verdict::Sign { profile: Profile::KubeletClient };
        let deny = || Verdict::Deny { reason: "no".to_owned() };
        for (conditions, verdict, expected) in [
            (&[][..], sign(), Step::Decide(Decision::Approve)),
            (&["Approved"], sign(), Step::Issue(Profile::KubeletClient)),
            (&[], deny(), Step::Decide(Decision::Deny("no".to_owned()))),
            (&["Approved"], deny(), Step::Fail("no".to_owned())),
            (&[], Verdict::Ignore, Step::Nothing),
            (&["Approved"], Verdict::Ignore, Step::Nothing),
        ] {
            assert_eq!(step(&csr(conditions, None), verdict), expected, "{conditions:?}");
        }
    }

    #[test]
    fn an_answered_request_is_left_alone() {
        assert!(!is_finished(&csr(&[], None)));
        assert!(!is_finished(&csr(&["Approved"], None)));
        assert!(is_finished(&csr(&["Denied"], None)));
        assert!(is_finished(&csr(&["Approved", "Failed"], None)));
        assert!(is_finished(&csr(&["Approved"], Some("eA=="))));
    }
}
