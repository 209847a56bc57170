//! Whether a kubelet's certificate request is signed. Pure.
//!
//! What each signer permits:
//! <https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers>

use std::collections::BTreeSet;
use std::net::IpAddr;

use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use super::csr_facts::CsrFacts;
use crate::kube_api::tokens;
use crate::model::api_contract::ADDRESS_ANNOTATIONS;
use crate::model::name::HostName;

/// Signs what a kubelet is a client of the API with.
pub const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Signs what a kubelet serves the API with.
pub const SERVING_SIGNER: &str = "kubernetes.io/kubelet-serving";

/// What a certificate is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Digital signature, key encipherment, client authentication.
    KubeletClient,
    /// Digital signature, key encipherment, server authentication.
    KubeletServing,
}

/// What to do with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may have its certificate.
    Sign {
        /// Of this sort.
        profile: Profile,
    },
    /// It must not.
    Deny {
        /// For the condition of the request, where people read it.
        reason: String,
    },
    /// It is not ours to judge.
    Ignore,
}

/// What the API knows of a node that bears on its certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeIdentity {
    /// Its name.
    pub name: HostName,
    /// Of its status and of its annotations.
    pub addresses: BTreeSet<IpAddr>,
}

impl NodeIdentity {
    /// Reads a Node; `None` for one whose name no host can have.
    pub fn of(node: &Node) -> Option<Self> {
        let reported = node.status.iter().flat_map(|status| status.addresses.iter().flatten());
        let annotated = ADDRESS_ANNOTATIONS.iter().filter_map(|key| node.annotations().get(*key));
        let texts = reported.map(|address| &address.address).chain(annotated);
        // Names of hosts are among them, and are not addresses.
        let addresses = texts.filter_map(|text| text.parse().ok()).collect();
        Some(Self { name: node.name_any().parse().ok()?, addresses })
    }
}

/// The node that a request says it is for: `system:node:NAME`.
pub fn claimed_node(facts: &CsrFacts) -> Option<HostName> {
    let [common_name] = facts.common_names.as_slice() else { return None };
    common_name.strip_prefix("system:node:")?.parse().ok()
}

/// Judges a request. `facts` is what is in it, and `node` the Node that [`claimed_node`] names, if there is one.
///
/// # Guarantees
/// A bootstrap token is good for the one node that it was made for; a node is good for itself.
pub fn verdict(csr: &CertificateSigningRequest, facts: &CsrFacts, node: Option<&NodeIdentity>) -> Verdict {
    let judged = match csr.spec.signer_name.as_str() {
        CLIENT_SIGNER => client(&csr.spec, facts, node).map(|()| Profile::KubeletClient),
        SERVING_SIGNER => serving(&csr.spec, facts, node).map(|()| Profile::KubeletServing),
        _ => return Verdict::Ignore,
    };
    match judged {
        Ok(profile) => Verdict::Sign { profile },
        Err(reason) => Verdict::Deny { reason },
    }
}

fn client(
    spec: &CertificateSigningRequestSpec,
    facts: &CsrFacts,
    node: Option<&NodeIdentity>,
) -> Result<(), String> {
    let node = known_node(facts, node)?;
    usages(spec, "client auth")?;
    if !facts.dns_names.is_empty() || !facts.addresses.is_empty() {
        return Err("a client certificate has no alternative names".to_owned());
    }
    let user = spec.username.as_deref().unwrap_or_default();
    if user == format!("system:node:{}", node.name) {
        return Ok(());
    }
    let groups = spec.groups.as_deref().unwrap_or_default();
    let pinned = tokens::group(&node.name).is_ok_and(|group| groups.contains(&group));
    if user.starts_with("system:bootstrap:") && pinned {
        Ok(())
    } else {
        Err(format!("{user:?} may not ask for a certificate of node {}", node.name))
    }
}

fn serving(
    spec: &CertificateSigningRequestSpec,
    facts: &CsrFacts,
    node: Option<&NodeIdentity>,
) -> Result<(), String> {
    let node = known_node(facts, node)?;
    usages(spec, "server auth")?;
    let user = spec.username.as_deref().unwrap_or_default();
    if user != format!("system:node:{}", node.name) {
        return Err(format!("{user:?} may not ask for a certificate of node {}", node.name));
    }
    if let Some(name) = facts.dns_names.iter().find(|name| *name != node.name.as_str()) {
        return Err(format!("{name:?} is not the name of node {}", node.name));
    }
    if let Some(address) = facts.addresses.difference(&node.addresses).next() {
        return Err(format!("{address} is not known as an address of node {}", node.name));
    }
    if facts.dns_names.is_empty() && facts.addresses.is_empty() {
        return Err("a serving certificate needs an alternative name".to_owned());
    }
    Ok(())
}

/// What both signers ask of a subject.
fn known_node<'a>(facts: &CsrFacts, node: Option<&'a NodeIdentity>) -> Result<&'a NodeIdentity, String> {
    let Some(claimed) = claimed_node(facts) else {
        return Err(format!("the common name {:?} is not system:node:NAME", facts.common_names.join(", ")));
    };
    if facts.organizations != ["system:nodes"] {
        return Err(format!("the organization {:?} is not system:nodes", facts.organizations.join(", ")));
    }
    if let Some(other) = facts.others.first() {
        return Err(format!("it asks for more than a kubelet does: {other}"));
    }
    node.filter(|node| node.name == claimed).ok_or_else(|| format!("there is no node {claimed}"))
}

/// Exactly this purpose, and at most the two uses of the key that go with it.
fn usages(spec: &CertificateSigningRequestSpec, purpose: &str) -> Result<(), String> {
    let asked: BTreeSet<&str> = spec.usages.iter().flatten().map(String::as_str).collect();
    let allowed = BTreeSet::from(["digital signature", "key encipherment", purpose]);
    match asked.difference(&allowed).next() {
        Some(other) => Err(format!("the usage {other:?} is not for this signer")),
        None if !asked.contains(purpose) => Err(format!("the usage {purpose:?} is missing")),
        None => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests;
