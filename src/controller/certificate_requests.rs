//! Issues kubelets' certificates: watches requests, judges them ([`super::csr_verdict`], and for the node of a Machine
//! [`crate::machine::csr`]), approves and signs.
//!
//! # Guarantees
//! - Each step is decided from the request as the API has it now, so that the controller may be killed between
//!   approving and signing, and two of them may run: the API accepts the first answer and refuses the second.
//! - A request is parsed once for a step: the value that was judged is the value that is signed.
//!
//! # Assumptions
//! The controller manager does not sign for these two signers (it has no `--cluster-signing-cert-file`).

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::csr_verdict::{ClusterRecords, CsrVerdict, Profile, claimed_node, verdict};
use super::life_requests::read_node_machine;
use crate::kube_api::client::ApiError;
use crate::kube_api::{FIELD_MANAGER, node_policy, nodes, tokens};
use crate::machine::csr as machine_csr;
use crate::machine::lifecycle::LifecycleLimits;
use crate::model::cluster_networks::Networks;
use crate::pki::authority::AuthorityError;
use crate::pki::certificate_request::ParsedCsr;
use crate::pki::leaf::Leaf;
use crate::workspace::trust::TrustError;

/// Between attempts for one request after a failure.
const RETRY: Duration = Duration::from_secs(5);

/// Signs a leaf certificate (PEM) for the key of a request.
pub type Sign = dyn Fn(&Leaf, &ParsedCsr) -> Result<String, SignError> + Send + Sync;

/// Why a certificate was not signed.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The CA.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The CA cannot issue this certificate.
    #[error("cannot sign: {0}")]
    Authority(#[from] AuthorityError),
}

/// Why a request is not answered yet.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error(transparent)]
    Signing(#[from] SignError),
}

struct Context {
    client: Client,
    networks: Networks,
    sign: Arc<Sign>,
}

/// What a request needs next.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RequestStep {
    /// Add this condition through `/approval`.
    Decide(Decision),
    /// It is approved: put the certificate into its status.
    Issue(Leaf),
    /// Another client approved what must not be signed: record that in its status.
    Fail(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Decision {
    Approve,
    Deny(String),
}

/// Runs until it is dropped. Failures are logged and tried again.
pub async fn run(client: Client, networks: Networks, sign: Arc<Sign>) {
    let requests: Api<CertificateSigningRequest> = Api::all(client.clone());
    let context = Arc::new(Context { client, networks, sign });
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
    // Requests of other signers may have any form.
    let Some(profile) = Profile::of_signer(&csr.spec.signer_name) else { return Ok(Action::await_change()) };
    let parsed = ParsedCsr::from_pem(&csr.spec.request.0);
    let judged = match &parsed {
        Ok(parsed) => judged(&csr, &context, profile, parsed).await?,
        Err(error) => CsrVerdict::Deny { reason: error.to_string() },
    };
    let answered = match (step(&csr, judged), parsed) {
        (RequestStep::Decide(decision), _) => decide(&csr, &context, decision).await,
        (RequestStep::Issue(leaf), Ok(parsed)) => issue(&csr, &context, &leaf, &parsed).await,
        (RequestStep::Fail(reason), _) => fail(&csr, &context, reason).await,
        // What cannot be parsed is never signed.
        (RequestStep::Issue(_), Err(error)) => fail(&csr, &context, error.to_string()).await,
    };
    match answered {
        // Another client was faster; the newer version triggers the next step.
        Ok(()) | Err(RequestError::Api(ApiError::Conflict { .. })) => Ok(Action::await_change()),
        Err(error) => Err(error),
    }
}

/// The verdict about the request, then that about the Machine of its Node: a token for a node outlives its Machine.
async fn judged(
    csr: &CertificateSigningRequest,
    context: &Context,
    profile: Profile,
    parsed: &ParsedCsr,
) -> Result<CsrVerdict, ApiError> {
    let judged = verdict(&csr.spec, profile, parsed, &records(context, profile, parsed).await?);
    let by_token = csr.spec.username.as_deref().is_some_and(|user| user.starts_with(tokens::USER_PREFIX));
    let node = claimed_node(parsed).filter(|_| by_token && matches!(judged, CsrVerdict::Sign(_)));
    let Some(node) = node else { return Ok(judged) };
    let Some(machine) = read_node_machine(&context.client, &node).await? else { return Ok(judged) };
    let created = csr.creation_timestamp().map_or(Timestamp::MAX, |time| time.0);
    match machine_csr::judge(&machine, created, LifecycleLimits::DEFAULT.join_timeout) {
        Ok(()) => Ok(judged),
        Err(denial) => Ok(CsrVerdict::Deny { reason: denial.to_string() }),
    }
}

/// What is recorded now. Only serving certificates depend on what the admission policy guards.
async fn records(context: &Context, profile: Profile, csr: &ParsedCsr) -> Result<ClusterRecords, ApiError> {
    let nodes = nodes::recorded_addresses(&context.client).await?;
    let claimed =
        claimed_node(csr).filter(|name| profile == Profile::KubeletServing && nodes.contains_key(name));
    let guarded = match claimed {
        Some(name) => node_policy::is_enforced(&context.client, &name).await?,
        None => false,
    };
    Ok(ClusterRecords { nodes, networks: context.networks.clone(), guarded })
}

/// Whether nothing more can be done: it has its certificate, or was denied.
fn is_finished(csr: &CertificateSigningRequest) -> bool {
    let issued = csr.status.as_ref().is_some_and(|status| status.certificate.is_some());
    issued || has_condition(csr, "Denied") || has_condition(csr, "Failed")
}

fn step(csr: &CertificateSigningRequest, verdict: CsrVerdict) -> RequestStep {
    match (verdict, has_condition(csr, "Approved")) {
        (CsrVerdict::Sign(_), false) => RequestStep::Decide(Decision::Approve),
        (CsrVerdict::Sign(leaf), true) => RequestStep::Issue(leaf),
        (CsrVerdict::Deny { reason }, false) => RequestStep::Decide(Decision::Deny(reason)),
        (CsrVerdict::Deny { reason }, true) => RequestStep::Fail(reason),
    }
}

async fn decide(
    csr: &CertificateSigningRequest,
    context: &Context,
    decision: Decision,
) -> Result<(), RequestError> {
    let condition = match decision {
        Decision::Approve => condition("Approved", "the kubelet's own certificate"),
        Decision::Deny(reason) => condition("Denied", &reason),
    };
    let (decision, reason) = (condition.type_.clone(), condition.message.clone());
    let patch = patch(csr, json!({ "conditions": with(csr, condition) }));
    let decided = api(context).patch_approval(&csr.name_any(), &parameters(), &patch).await;
    decided.map_err(|error| ApiError::new("approve", object(csr), error))?;
    tracing::info!(request = csr.name_any(), decision, reason, "certificate request");
    Ok(())
}

async fn issue(
    csr: &CertificateSigningRequest,
    context: &Context,
    leaf: &Leaf,
    parsed: &ParsedCsr,
) -> Result<(), RequestError> {
    let certificate = (context.sign)(leaf, parsed)?;
    let patch = patch(csr, json!({ "certificate": k8s_openapi::ByteString(certificate.into_bytes()) }));
    let issued = api(context).patch_status(&csr.name_any(), &parameters(), &patch).await;
    issued.map_err(|error| ApiError::new("sign", object(csr), error))?;
    tracing::info!(request = csr.name_any(), "certificate issued");
    Ok(())
}

async fn fail(
    csr: &CertificateSigningRequest,
    context: &Context,
    reason: String,
) -> Result<(), RequestError> {
    tracing::warn!(request = csr.name_any(), reason, "an approved certificate request is not signed");
    let patch = patch(csr, json!({ "conditions": with(csr, condition("Failed", &reason)) }));
    let failed = api(context).patch_status(&csr.name_any(), &parameters(), &patch).await;
    failed.map_err(|error| ApiError::new("fail", object(csr), error))?;
    Ok(())
}

fn api(context: &Context) -> Api<CertificateSigningRequest> {
    Api::all(context.client.clone())
}

fn object(csr: &CertificateSigningRequest) -> String {
    format!("certificatesigningrequest/{}", csr.name_any())
}

fn parameters() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

/// Applies to the version of the request that it was decided from only.
fn patch(csr: &CertificateSigningRequest, status: Value) -> Patch<Value> {
    Patch::Merge(json!({ "metadata": { "resourceVersion": csr.resource_version() }, "status": status }))
}

fn conditions(csr: &CertificateSigningRequest) -> &[CertificateSigningRequestCondition] {
    csr.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default()
}

fn has_condition(csr: &CertificateSigningRequest, kind: &str) -> bool {
    conditions(csr).iter().any(|condition| condition.type_ == kind)
}

/// The conditions of a request, and one more: a merge patch replaces the list.
fn with(
    csr: &CertificateSigningRequest,
    more: CertificateSigningRequestCondition,
) -> Vec<CertificateSigningRequestCondition> {
    conditions(csr).iter().cloned().chain([more]).collect()
}

fn condition(kind: &str, message: &str) -> CertificateSigningRequestCondition {
    CertificateSigningRequestCondition {
        type_: kind.to_owned(),
        status: "True".to_owned(),
        reason: Some("MetalformKubeletPolicy".to_owned()),
        message: Some(message.to_owned()),
        ..CertificateSigningRequestCondition::default()
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::pki::leaf::Usage;

    fn csr(conditions: &[&str], certificate: Option<&str>) -> CertificateSigningRequest {
        let conditions: Vec<_> = conditions.iter().map(|kind| condition(kind, "")).collect();
        serde_json::from_value(json!({
            "metadata": { "name": "csr-1" },
            "spec": { "request": "", "signerName": super::super::csr_verdict::CLIENT_SIGNER },
            "status": { "conditions": conditions, "certificate": certificate },
        }))
        .unwrap()
    }

    #[test]
    fn a_request_is_approved_first_and_signed_then() {
        let leaf = || Leaf {
            common_name: "system:node:n1".to_owned(),
            organization: Some("system:nodes".to_owned()),
            names: Vec::new(),
            usages: vec![Usage::Client],
            lifetime: SignedDuration::from_hours(365 * 24),
        };
        let sign = || CsrVerdict::Sign(leaf());
        let deny = || CsrVerdict::Deny { reason: "no".to_owned() };
        for (conditions, verdict, expected) in [
            (&[][..], sign(), RequestStep::Decide(Decision::Approve)),
            (&["Approved"], sign(), RequestStep::Issue(leaf())),
            (&[], deny(), RequestStep::Decide(Decision::Deny("no".to_owned()))),
            (&["Approved"], deny(), RequestStep::Fail("no".to_owned())),
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
