use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::json;

use super::*;

/// A request as a kubelet makes it.
pub(crate) fn request(
    common_name: &str,
    organizations: &[&str],
    names: &[&str],
    addresses: &[&str],
) -> String {
    let mut asked = CertificateParams::default();
    asked.distinguished_name = DistinguishedName::new();
    for organization in organizations {
        asked.distinguished_name.push(DnType::OrganizationName, *organization);
    }
    asked.distinguished_name.push(DnType::CommonName, common_name);
    let names = names.iter().map(|name| SanType::DnsName((*name).try_into().unwrap()));
    let addresses = addresses.iter().map(|address| SanType::IpAddress(address.parse().unwrap()));
    asked.subject_alt_names = names.chain(addresses).collect();
    asked.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap()
}

/// One request, changed from a good one.
struct Case {
    signer: &'static str,
    user: &'static str,
    groups: Vec<&'static str>,
    usages: Vec<&'static str>,
    facts: CsrFacts,
    node: Option<NodeIdentity>,
}

fn node(name: &str) -> NodeIdentity {
    NodeIdentity { name: name.parse().unwrap(), addresses: BTreeSet::from(["192.0.2.11".parse().unwrap()]) }
}

fn facts(name: &str) -> CsrFacts {
    CsrFacts {
        common_names: vec![format!("system:node:{name}")],
        organizations: vec!["system:nodes".to_owned()],
        ..CsrFacts::default()
    }
}

fn joining() -> Case {
    Case {
        signer: CLIENT_SIGNER,
        user: "system:bootstrap:abcdef",
        groups: vec![
            "system:bootstrappers",
            "system:bootstrappers:metalform:n1:rack-2",
            "system:authenticated",
        ],
        usages: vec!["digital signature", "key encipherment", "client auth"],
        facts: facts("n1.rack-2"),
        node: Some(node("n1.rack-2")),
    }
}

fn renewing() -> Case {
    Case { user: "system:node:n1.rack-2", groups: vec!["system:nodes"], ..joining() }
}

fn serving_case() -> Case {
    let facts = CsrFacts {
        dns_names: BTreeSet::from(["n1.rack-2".to_owned()]),
        addresses: BTreeSet::from(["192.0.2.11".parse().unwrap()]),
        ..facts("n1.rack-2")
    };
    Case { signer: SERVING_SIGNER, usages: vec!["digital signature", "server auth"], facts, ..renewing() }
}

impl Case {
    fn verdict(&self) -> Verdict {
        let csr: CertificateSigningRequest = serde_json::from_value(json!({
            "metadata": { "name": "csr-1" },
            "spec": {
                "request": "", "signerName": self.signer, "username": self.user,
                "groups": self.groups, "usages": self.usages,
            },
        }))
        .unwrap();
        verdict(&csr, &self.facts, self.node.as_ref())
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

#[test]
fn a_kubelet_gets_its_own_certificates() {
    let client = Verdict::Sign { profile: Profile::KubeletClient };
    let serving = Verdict::Sign { profile: Profile::KubeletServing };
    assert_eq!(joining().verdict(), client);
    assert_eq!(renewing().verdict(), client);
    assert_eq!(serving_case().verdict(), serving);
    assert_eq!(serving_case().with(|case| case.facts.dns_names.clear()).verdict(), serving);
    assert_eq!(serving_case().with(|case| case.facts.addresses.clear()).verdict(), serving);
    assert_eq!(joining().with(|case| case.usages = vec!["client auth"]).verdict(), client);
}

#[test]
fn other_signers_are_not_ours() {
    let case = joining().with(|case| case.signer = "kubernetes.io/kube-apiserver-client");
    assert_eq!(case.verdict(), Verdict::Ignore);
}

#[test]
fn everything_else_is_denied_with_its_reason() {
    let denied: Vec<String> = [
        joining().with(|case| case.node = None),
        joining().with(|case| case.node = Some(node("n2"))),
        joining().with(|case| {
            case.facts = facts("n2");
            case.node = Some(node("n2"));
        }),
        joining().with(|case| case.groups = vec!["system:bootstrappers"]),
        joining().with(|case| case.user = "mallory"),
        joining().with(|case| case.user = "system:node:n2"),
        joining().with(|case| case.facts.common_names = vec!["admin".to_owned()]),
        joining().with(|case| case.facts.common_names.push("system:node:n2".to_owned())),
        joining().with(|case| case.facts.common_names = vec!["system:node:N1".to_owned()]),
        joining().with(|case| case.facts.organizations.push("system:masters".to_owned())),
        joining().with(|case| case.facts.organizations.clear()),
        joining().with(|case| case.facts.others.push("extension KeyUsage".to_owned())),
        joining().with(|case| case.usages.push("server auth")),
        joining().with(|case| case.usages = vec!["digital signature"]),
        joining().with(|case| case.facts = serving_case().facts),
        serving_case().with(|case| case.user = "system:bootstrap:abcdef"),
        serving_case().with(|case| case.user = "system:node:n2"),
        serving_case()
            .with(|case| case.facts.dns_names.insert("kubernetes".to_owned()).then_some(()).unwrap()),
        serving_case().with(|case| case.facts.addresses = BTreeSet::from(["192.0.2.12".parse().unwrap()])),
        serving_case().with(|case| {
            case.facts.dns_names.clear();
            case.facts.addresses.clear();
        }),
        serving_case().with(|case| case.usages = vec!["client auth"]),
        serving_case().with(|case| case.node = None),
    ]
    .iter()
    .map(|case| match case.verdict() {
        Verdict::Deny { reason } => reason,
        other => panic!("{other:?}"),
    })
    .collect();
    insta::assert_snapshot!(denied.join("\n"), @r#"
    there is no node n1.rack-2
    there is no node n1.rack-2
    "system:bootstrap:abcdef" may not ask for a certificate of node n2
    "system:bootstrap:abcdef" may not ask for a certificate of node n1.rack-2
    "mallory" may not ask for a certificate of node n1.rack-2
    "system:node:n2" may not ask for a certificate of node n1.rack-2
    the common name "admin" is not system:node:NAME
    the common name "system:node:n1.rack-2, system:node:n2" is not system:node:NAME
    the common name "system:node:N1" is not system:node:NAME
    the organization "system:nodes, system:masters" is not system:nodes
    the organization "" is not system:nodes
    it asks for more than a kubelet does: extension KeyUsage
    the usage "server auth" is not for this signer
    the usage "client auth" is missing
    a client certificate has no alternative names
    "system:bootstrap:abcdef" may not ask for a certificate of node n1.rack-2
    "system:node:n2" may not ask for a certificate of node n1.rack-2
    "kubernetes" is not the name of node n1.rack-2
    192.0.2.12 is not known as an address of node n1.rack-2
    a serving certificate needs an alternative name
    the usage "client auth" is not for this signer
    there is no node n1.rack-2
    "#);
}

#[test]
fn a_nodes_addresses_are_those_of_its_status_and_its_annotations() {
    let node: Node = serde_json::from_value(json!({
        "metadata": {
            "name": "n1",
            "annotations": {
                "metalform.dev/ssh-host": "n1.example",
                "metalform.dev/control-plane-ip": "192.0.2.11",
                "metalk8s.scality.com/workload-plane-ip": "198.51.100.11",
                "example.com/ip": "203.0.113.1",
            },
        },
        "status": { "addresses": [
            { "type": "InternalIP", "address": "2001:db8::11" },
            { "type": "Hostname", "address": "n1" },
        ]},
    }))
    .unwrap();
    let addresses = ["192.0.2.11", "198.51.100.11", "2001:db8::11"].map(|text| text.parse().unwrap());
    assert_eq!(
        NodeIdentity::of(&node),
        Some(NodeIdentity { name: "n1".parse().unwrap(), addresses: BTreeSet::from(addresses) })
    );
}
