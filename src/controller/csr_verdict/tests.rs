use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::json;

use super::*;

/// A request as a kubelet makes it.
fn request(common_name: &str, organizations: &[&str], names: &[&str], addresses: &[&str]) -> String {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    for organization in organizations {
        parameters.distinguished_name.push(DnType::OrganizationName, *organization);
    }
    parameters.distinguished_name.push(DnType::CommonName, common_name);
    let names = names.iter().map(|name| SanType::DnsName((*name).try_into().unwrap()));
    let addresses = addresses.iter().map(|address| SanType::IpAddress(address.parse().unwrap()));
    parameters.subject_alt_names = names.chain(addresses).collect();
    parameters.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap()
}

/// One request, a good one or changed from it.
struct Case {
    signer: &'static str,
    user: &'static str,
    groups: Vec<&'static str>,
    usages: Vec<&'static str>,
    csr: ParsedCsr,
    node: Option<NodeIdentity>,
}

fn node(name: &str) -> NodeIdentity {
    NodeIdentity { name: name.parse().unwrap(), addresses: BTreeSet::from(["192.0.2.11".parse().unwrap()]) }
}

fn parsed(name: &str, names: &[&str], addresses: &[&str]) -> ParsedCsr {
    let pem = request(&format!("system:node:{name}"), &["system:nodes"], names, addresses);
    ParsedCsr::from_pem(pem.as_bytes()).unwrap()
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
        csr: parsed("n1.rack-2", &[], &[]),
        node: Some(node("n1.rack-2")),
    }
}

fn renewing() -> Case {
    Case { user: "system:node:n1.rack-2", groups: vec!["system:nodes"], ..joining() }
}

fn serving_case() -> Case {
    let csr = parsed("n1.rack-2", &["n1.rack-2"], &["192.0.2.11"]);
    Case { signer: SERVING_SIGNER, usages: vec!["digital signature", "server auth"], csr, ..renewing() }
}

impl Case {
    fn verdict(&self) -> CsrVerdict {
        let spec: CertificateSigningRequestSpec = serde_json::from_value(json!({
            "request": "", "signerName": self.signer, "username": self.user,
            "groups": self.groups, "usages": self.usages,
        }))
        .unwrap();
        let profile = Profile::of_signer(self.signer).unwrap();
        verdict(&spec, profile, &self.csr, self.node.as_ref())
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

#[test]
fn a_kubelet_gets_its_own_certificates() {
    let leaf = |names: &[&str], usage| {
        CsrVerdict::Sign(Leaf {
            common_name: "system:node:n1.rack-2".to_owned(),
            organization: Some("system:nodes".to_owned()),
            names: names.iter().map(ToString::to_string).collect(),
            usages: vec![usage],
            days: 365,
        })
    };
    let client = leaf(&[], Usage::Client);
    assert_eq!(joining().verdict(), client);
    assert_eq!(renewing().verdict(), client);
    assert_eq!(serving_case().verdict(), leaf(&["n1.rack-2", "192.0.2.11"], Usage::Server));
    let by_address = serving_case().with(|case| case.csr.dns_names.clear());
    assert_eq!(by_address.verdict(), leaf(&["192.0.2.11"], Usage::Server));
    let by_name = serving_case().with(|case| case.csr.addresses.clear());
    assert_eq!(by_name.verdict(), leaf(&["n1.rack-2"], Usage::Server));
    assert_eq!(joining().with(|case| case.usages = vec!["client auth"]).verdict(), client);
}

#[test]
fn requests_of_other_signers_are_not_judged() {
    assert_eq!(Profile::of_signer(CLIENT_SIGNER), Some(Profile::KubeletClient));
    assert_eq!(Profile::of_signer(SERVING_SIGNER), Some(Profile::KubeletServing));
    assert_eq!(Profile::of_signer("kubernetes.io/kube-apiserver-client"), None);
}

#[test]
fn everything_else_is_denied_with_its_reason() {
    let denied: Vec<String> = [
        joining().with(|case| case.node = None),
        joining().with(|case| case.node = Some(node("n2"))),
        joining().with(|case| {
            case.csr = parsed("n2", &[], &[]);
            case.node = Some(node("n2"));
        }),
        joining().with(|case| case.groups = vec!["system:bootstrappers"]),
        joining().with(|case| case.user = "mallory"),
        joining().with(|case| case.user = "system:node:n2"),
        joining().with(|case| case.csr.common_name = "admin".to_owned()),
        joining().with(|case| case.csr.common_name.clear()),
        joining().with(|case| case.csr.common_name = "system:node:N1".to_owned()),
        joining().with(|case| case.csr.organizations.push("system:masters".to_owned())),
        joining().with(|case| case.csr.organizations.clear()),
        joining().with(|case| case.csr.extras.push("extension KeyUsage".to_owned())),
        joining().with(|case| case.usages.push("server auth")),
        joining().with(|case| case.usages = vec!["digital signature"]),
        joining().with(|case| case.csr = serving_case().csr),
        serving_case().with(|case| case.user = "system:bootstrap:abcdef"),
        serving_case().with(|case| case.user = "system:node:n2"),
        serving_case().with(|case| case.csr.dns_names.insert("kubernetes".to_owned()).then_some(()).unwrap()),
        serving_case().with(|case| case.csr.addresses = BTreeSet::from(["192.0.2.12".parse().unwrap()])),
        serving_case().with(|case| {
            case.csr.dns_names.clear();
            case.csr.addresses.clear();
        }),
        serving_case().with(|case| case.usages = vec!["client auth"]),
        serving_case().with(|case| case.node = None),
    ]
    .iter()
    .map(|case| match case.verdict() {
        CsrVerdict::Deny { reason } => reason,
        other => panic!("{other:?}"),
    })
    .collect();
    insta::assert_snapshot!(denied.join("\n"), @r#"
    node n1.rack-2 does not exist
    node n1.rack-2 does not exist
    "system:bootstrap:abcdef" may not request a certificate for node n2
    "system:bootstrap:abcdef" may not request a certificate for node n1.rack-2
    "mallory" may not request a certificate for node n1.rack-2
    "system:node:n2" may not request a certificate for node n1.rack-2
    the common name "admin" is not system:node:NAME
    the common name "" is not system:node:NAME
    the common name "system:node:N1" is not system:node:NAME
    the organization "system:nodes, system:masters" is not system:nodes
    the organization "" is not system:nodes
    a kubelet does not request this: extension KeyUsage
    the usage "server auth" is not allowed by this signer
    the usage "client auth" is missing
    a client certificate has no alternative names
    "system:bootstrap:abcdef" may not request a certificate for node n1.rack-2
    "system:node:n2" may not request a certificate for node n1.rack-2
    "kubernetes" is not the name of node n1.rack-2
    192.0.2.12 is not a known address of node n1.rack-2
    a serving certificate needs an alternative name
    the usage "client auth" is not allowed by this signer
    node n1.rack-2 does not exist
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
