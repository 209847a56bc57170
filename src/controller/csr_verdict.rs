//! Whether a kubelet's certificate request is signed, and the certificate that it gets. Pure.
//!
//! What each signer permits:
//! <https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers>

use std::collections::BTreeSet;
use std::net::IpAddr;

use k8s_openapi::api::certificates::v1::CertificateSigningRequestSpec;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;

use crate::kube_api::tokens;
use crate::model::api_contract::ADDRESS_ANNOTATIONS;
use crate::model::name::HostName;
use crate::pki::certificate_request::ParsedCsr;
use crate::pki::leaf::{Leaf, Usage};

/// Signs the certificate of a kubelet as a client of the API.
pub const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Signs the certificate of a kubelet as a server, for the API server.
pub const SERVING_SIGNER: &str = "kubernetes.io/kubelet-serving";

/// Days of validity; a kubelet requests the next certificate by itself.
const DAYS: u32 = 365;

/// The use of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// Digital signature, key encipherment, client authentication.
    KubeletClient,
    /// Digital signature, key encipherment, server authentication.
    KubeletServing,
}

/// What to do with a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CsrVerdict {
    /// Sign exactly this.
    Sign(Leaf),
    /// Do not sign.
    Deny {
        /// The message of the request's condition.
        reason: String,
    },
}

impl Profile {
    /// `None` for signers of other controllers.
    pub fn of_signer(signer_name: &str) -> Option<Self> {
        match signer_name {
            CLIENT_SIGNER => Some(Self::KubeletClient),
            SERVING_SIGNER => Some(Self::KubeletServing),
            _ => None,
        }
    }

    fn usage(self) -> Usage {
        match self {
            Self::KubeletClient => Usage::Client,
            Self::KubeletServing => Usage::Server,
        }
    }
}

/// The part of a Node that its certificates depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeIdentity {
    pub name: HostName,
    /// Of its status and of its annotations.
    pub addresses: BTreeSet<IpAddr>,
}

impl NodeIdentity {
    /// `None` for a Node whose name is not a host name.
    pub fn of(node: &Node) -> Option<Self> {
        let reported = node.status.iter().flat_map(|status| status.addresses.iter().flatten());
        let annotated = ADDRESS_ANNOTATIONS.iter().filter_map(|key| node.annotations().get(*key));
        let texts = reported.map(|address| &address.address).chain(annotated);
        // Some are host names.
        let addresses = texts.filter_map(|text| text.parse().ok()).collect();
        Some(Self { name: node.name_any().parse().ok()?, addresses })
    }
}

/// The node in the common name of a request: `system:node:NAME`.
pub fn claimed_node(csr: &ParsedCsr) -> Option<HostName> {
    csr.common_name.strip_prefix("system:node:")?.parse().ok()
}

/// Judges a request. `spec` is the API's part of it, `csr` the parsed request, and `node` the Node that
/// [`claimed_node`] names, if it exists.
///
/// # Guarantees
/// A bootstrap token is good for the one node that it was created for; a node is good for itself.
pub fn verdict(
    spec: &CertificateSigningRequestSpec,
    profile: Profile,
    csr: &ParsedCsr,
    node: Option<&NodeIdentity>,
) -> CsrVerdict {
    let judged = match profile {
        Profile::KubeletClient => client(spec, csr, node),
        Profile::KubeletServing => serving(spec, csr, node),
    };
    match judged {
        Ok(()) => CsrVerdict::Sign(leaf(profile, csr)),
        Err(reason) => CsrVerdict::Deny { reason },
    }
}

/// The certificate of a request that passed.
fn leaf(profile: Profile, csr: &ParsedCsr) -> Leaf {
    let addresses = csr.addresses.iter().map(ToString::to_string);
    Leaf {
        common_name: csr.common_name.clone(),
        organization: csr.organizations.first().cloned(),
        names: csr.dns_names.iter().cloned().chain(addresses).collect(),
        usages: vec![profile.usage()],
        days: DAYS,
    }
}

fn client(
    spec: &CertificateSigningRequestSpec,
    csr: &ParsedCsr,
    node: Option<&NodeIdentity>,
) -> Result<(), String> {
    let node = known_node(csr, node)?;
    usages(spec, "client auth")?;
    if !csr.dns_names.is_empty() || !csr.addresses.is_empty() {
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
        Err(format!("{user:?} may not request a certificate for node {}", node.name))
    }
}

fn serving(
    spec: &CertificateSigningRequestSpec,
    csr: &ParsedCsr,
    node: Option<&NodeIdentity>,
) -> Result<(), String> {
    let node = known_node(csr, node)?;
    usages(spec, "server auth")?;
    let user = spec.username.as_deref().unwrap_or_default();
    if user != format!("system:node:{}", node.name) {
        return Err(format!("{user:?} may not request a certificate for node {}", node.name));
    }
    if let Some(name) = csr.dns_names.iter().find(|name| *name != node.name.as_str()) {
        return Err(format!("{name:?} is not the name of node {}", node.name));
    }
    if let Some(address) = csr.addresses.difference(&node.addresses).next() {
        return Err(format!("{address} is not a known address of node {}", node.name));
    }
    if csr.dns_names.is_empty() && csr.addresses.is_empty() {
        return Err("a serving certificate needs an alternative name".to_owned());
    }
    Ok(())
}

/// The rules of both signers for a subject.
fn known_node<'a>(csr: &ParsedCsr, node: Option<&'a NodeIdentity>) -> Result<&'a NodeIdentity, String> {
    let Some(claimed) = claimed_node(csr) else {
        return Err(format!("the common name {:?} is not system:node:NAME", csr.common_name));
    };
    if csr.organizations != ["system:nodes"] {
        return Err(format!("the organization {:?} is not system:nodes", csr.organizations.join(", ")));
    }
    if let Some(other) = csr.extras.first() {
        return Err(format!("a kubelet does not request this: {other}"));
    }
    node.filter(|node| node.name == claimed).ok_or_else(|| format!("node {claimed} does not exist"))
}

/// Exactly this purpose, and at most the two key usages that belong to it.
fn usages(spec: &CertificateSigningRequestSpec, purpose: &str) -> Result<(), String> {
    let requested: BTreeSet<&str> = spec.usages.iter().flatten().map(String::as_str).collect();
    let allowed = BTreeSet::from(["digital signature", "key encipherment", purpose]);
    match requested.difference(&allowed).next() {
        Some(other) => Err(format!("the usage {other:?} is not allowed by this signer")),
        None if !requested.contains(purpose) => Err(format!("the usage {purpose:?} is missing")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
