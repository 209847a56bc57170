//! Whether a kubelet's certificate request is signed, and the certificate that it gets. Pure.
//!
//! A kubelet writes its request, and may be hostile: its requests, its Node's status and every annotation that the
//! admission policy does not guard ([`crate::kube_api::node_policy`]) are not trusted.
//!
//! What each signer permits:
//! <https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#kubernetes-signers>

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use jiff::SignedDuration;
use k8s_openapi::api::certificates::v1::CertificateSigningRequestSpec;

use crate::kube_api::{node_policy, tokens};
use crate::model::cluster_networks::Networks;
use crate::model::name::HostName;
use crate::pki::certificate_request::ParsedCsr;
use crate::pki::leaf::{Leaf, Usage};

/// Signs the certificate of a kubelet as a client of the API.
pub const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
/// Signs the certificate of a kubelet as a server, for the API server.
pub const SERVING_SIGNER: &str = "kubernetes.io/kubelet-serving";

/// Validity of a certificate whose request limits it no further; a kubelet requests the next one by itself.
const LONGEST: SignedDuration = SignedDuration::from_hours(365 * 24);
/// The API accepts no `expirationSeconds` below it.
const SHORTEST: SignedDuration = SignedDuration::from_mins(10);

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

/// What metalform recorded in the API, where no kubelet can change it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterRecords {
    /// The recorded addresses of every Node
    /// ([`crate::kube_api::node_addresses::recorded_addresses`]).
    pub nodes: BTreeMap<HostName, BTreeSet<IpAddr>>,
    /// The cluster's networks.
    pub networks: Networks,
    /// Whether the API server enforces the admission policy: without it a kubelet can change `nodes`.
    pub guarded: bool,
}

/// The node in the common name of a request: `system:node:NAME`.
pub fn claimed_node(csr: &ParsedCsr) -> Option<HostName> {
    csr.common_name.strip_prefix("system:node:")?.parse().ok()
}

/// Judges a request. `spec` is the API's part of it, `csr` the parsed request.
///
/// # Guarantees
/// - A bootstrap token is good for the one node that it was created for; a node is good for itself.
/// - A serving certificate contains the node's name and addresses that are recorded for this node and no other.
pub fn verdict(
    spec: &CertificateSigningRequestSpec,
    profile: Profile,
    csr: &ParsedCsr,
    records: &ClusterRecords,
) -> CsrVerdict {
    let judged = match profile {
        Profile::KubeletClient => client(spec, csr, records),
        Profile::KubeletServing => serving(spec, csr, records),
    };
    match judged {
        Ok(()) => CsrVerdict::Sign(leaf(spec, profile, csr)),
        Err(reason) => CsrVerdict::Deny { reason },
    }
}

/// The certificate of a request that passed.
fn leaf(spec: &CertificateSigningRequestSpec, profile: Profile, csr: &ParsedCsr) -> Leaf {
    let addresses = csr.addresses.iter().map(ToString::to_string);
    let requested = spec.expiration_seconds.map(|seconds| SignedDuration::from_secs(seconds.into()));
    Leaf {
        common_name: csr.common_name.clone(),
        organization: csr.organizations.first().cloned(),
        names: csr.dns_names.iter().cloned().chain(addresses).collect(),
        usages: vec![profile.usage()],
        lifetime: requested.map_or(LONGEST, |lifetime| lifetime.clamp(SHORTEST, LONGEST)),
    }
}

fn client(
    spec: &CertificateSigningRequestSpec,
    csr: &ParsedCsr,
    records: &ClusterRecords,
) -> Result<(), String> {
    let (node, _) = known_node(csr, records)?;
    usages(spec, "client auth")?;
    if !csr.dns_names.is_empty() || !csr.addresses.is_empty() {
        return Err("a client certificate has no alternative names".to_owned());
    }
    let user = spec.username.as_deref().unwrap_or_default();
    if user == format!("system:node:{node}") {
        return Ok(());
    }
    let groups = spec.groups.as_deref().unwrap_or_default();
    let pinned = tokens::group(node).is_ok_and(|group| groups.contains(&group));
    if user.starts_with(tokens::USER_PREFIX) && pinned {
        Ok(())
    } else {
        Err(format!("{user:?} may not request a certificate for node {node}"))
    }
}

fn serving(
    spec: &CertificateSigningRequestSpec,
    csr: &ParsedCsr,
    records: &ClusterRecords,
) -> Result<(), String> {
    let (node, recorded) = known_node(csr, records)?;
    usages(spec, "server auth")?;
    let user = spec.username.as_deref().unwrap_or_default();
    if user != format!("system:node:{node}") {
        return Err(format!("{user:?} may not request a certificate for node {node}"));
    }
    if let Some(name) = csr.dns_names.iter().find(|name| *name != node.as_str() || is_reserved(name)) {
        return Err(format!("{name:?} is not the name of node {node}, or may not be in its certificate"));
    }
    if csr.dns_names.is_empty() && csr.addresses.is_empty() {
        return Err("a serving certificate needs an alternative name".to_owned());
    }
    csr.addresses.iter().try_for_each(|address| serving_address(*address, (node, recorded), records))?;
    if records.guarded {
        Ok(())
    } else {
        Err(format!(
            "the API server does not enforce the admission policy {}, without which recorded addresses are not \
             trusted; run `metalform bootstrap`",
            node_policy::NAME
        ))
    }
}

/// Names of the API server, which proxies and clients accept in its certificate, and of the host itself; an address is
/// not a name. A Node that is called so gets no certificate with its name.
fn is_reserved(name: &str) -> bool {
    let is_of_the_api_server = name == "kubernetes" || name.starts_with("kubernetes.default");
    is_of_the_api_server || name == "localhost" || name.parse::<IpAddr>().is_ok()
}

/// Whether clients find this node, and no other host, at the address.
fn serving_address(
    address: IpAddr,
    (node, recorded): (&HostName, &BTreeSet<IpAddr>),
    records: &ClusterRecords,
) -> Result<(), String> {
    if !records.networks.may_be_of_a_host(address) {
        return Err(format!("{address} is not an address that one host alone can have"));
    }
    if !recorded.contains(&address) {
        return Err(format!("{address} is not recorded as an address of node {node}"));
    }
    let mut others = records.nodes.iter().filter(|(other, _)| *other != node);
    match others.find(|(_, addresses)| addresses.contains(&address)) {
        Some((other, _)) => Err(format!("{address} is recorded as an address of node {other} too")),
        None => Ok(()),
    }
}

/// The rules of both signers for a subject; returns the node and its recorded addresses.
fn known_node<'a>(
    csr: &ParsedCsr,
    records: &'a ClusterRecords,
) -> Result<(&'a HostName, &'a BTreeSet<IpAddr>), String> {
    let Some(claimed) = claimed_node(csr) else {
        return Err(format!("the common name {:?} is not system:node:NAME", csr.common_name));
    };
    if csr.organizations != ["system:nodes"] {
        return Err(format!("the organization {:?} is not system:nodes", csr.organizations.join(", ")));
    }
    if let Some(other) = csr.extras.first() {
        return Err(format!("a kubelet does not request this: {other}"));
    }
    records.nodes.get_key_value(&claimed).ok_or_else(|| format!("node {claimed} does not exist"))
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
pub(super) mod tests;
