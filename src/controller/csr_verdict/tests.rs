use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::{Value, json};

use super::*;
use crate::kube_api::node_addresses::recorded_addresses;
use crate::model::cluster_networks::WorkloadPlane;

/// Pods 10.233.0.0/16, services 10.96.0.0/12.
pub(in crate::controller) fn networks() -> Networks {
    Networks {
        control_plane: vec!["192.0.2.0/24".parse().unwrap()],
        workload_plane: WorkloadPlane { cidrs: vec!["198.51.100.0/24".parse().unwrap()], mtu: 1460 },
        node_ports: vec!["198.51.100.0/24".parse().unwrap()],
        pods: "10.233.0.0/16".parse().unwrap(),
        services: "10.96.0.0/12".parse().unwrap(),
        api_service_ip: "10.96.0.1".parse().unwrap(),
        dns_ip: "10.96.0.10".parse().unwrap(),
    }
}

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
    expiration: Option<i32>,
    csr: ParsedCsr,
    records: ClusterRecords,
}

/// These Nodes, each with its recorded addresses.
fn records(nodes: &[(&str, &[&str])]) -> ClusterRecords {
    let addresses = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
    let nodes = nodes.iter().map(|(name, texts)| (name.parse().unwrap(), addresses(texts)));
    ClusterRecords { nodes: nodes.collect(), networks: networks(), guarded: true }
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
        expiration: None,
        csr: parsed("n1.rack-2", &[], &[]),
        records: records(&[("n1.rack-2", &["192.0.2.11"]), ("n2", &["192.0.2.12"])]),
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
            "groups": self.groups, "usages": self.usages, "expirationSeconds": self.expiration,
        }))
        .unwrap();
        let profile = Profile::of_signer(self.signer).unwrap();
        verdict(&spec, profile, &self.csr, &self.records)
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
            lifetime: SignedDuration::from_hours(365 * 24),
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
        joining().with(|case| case.records.nodes.clear()),
        joining().with(|case| case.records = records(&[("n2", &["192.0.2.12"])])),
        joining().with(|case| case.csr = parsed("n2", &[], &[])),
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
        serving_case().with(|case| case.records.nodes.clear()),
        serving_case().with(|case| case.records.guarded = false),
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
    "kubernetes" is not the name of node n1.rack-2, or may not be in its certificate
    192.0.2.12 is not recorded as an address of node n1.rack-2
    a serving certificate needs an alternative name
    the usage "client auth" is not allowed by this signer
    node n1.rack-2 does not exist
    the API server does not enforce the admission policy metalform-node-identities, without which recorded addresses are not trusted; run `metalform bootstrap`
    "#);
}

/// What metalform recorded of a node at 192.0.2.11 and 198.51.100.11; another one is at 192.0.2.12.
fn recorded() -> Value {
    json!({
        "metalform.dev/control-plane-ip": "192.0.2.11",
        "metalform.dev/workload-plane-ip": "198.51.100.11",
        "metalform.dev/addresses": "192.0.2.11,198.51.100.11,2001:db8::11",
    })
}

/// Whether n1, whose Node has these annotations and addresses of its status, is issued a certificate for the name or
/// address.
fn is_issued(annotations: &Value, status: &[&str], requested: &str) -> Result<(), String> {
    let addresses: Vec<Value> =
        status.iter().map(|address| json!({ "type": "InternalIP", "address": address })).collect();
    let node: Node = serde_json::from_value(json!({
        "metadata": { "name": "n1", "annotations": annotations }, "status": { "addresses": addresses },
    }))
    .unwrap();
    let mut records = records(&[("n1", &[]), ("n2", &["192.0.2.12", "198.51.100.12"])]);
    records.nodes.insert(node.name_any().parse().unwrap(), recorded_addresses(node.annotations()));
    let csr = match requested.parse::<IpAddr>() {
        Ok(_) => parsed("n1", &[], &[requested]),
        Err(_) => parsed("n1", &[requested], &[]),
    };
    let case = Case { user: "system:node:n1", csr, records, ..serving_case() };
    match case.verdict() {
        CsrVerdict::Sign(leaf) => {
            assert_eq!(leaf.names, [requested]);
            Ok(())
        }
        CsrVerdict::Deny { reason } => Err(reason),
    }
}

#[test]
fn a_serving_certificate_has_the_recorded_addresses() {
    for requested in ["192.0.2.11", "198.51.100.11", "2001:db8::11", "n1"] {
        assert_eq!(is_issued(&recorded(), &[], requested), Ok(()), "{requested}");
    }
}

/// Replaces a test of the opposite, "a node's addresses are those of its status and its annotations": with both, a
/// rooted worker was issued a certificate for any address (finding C1).
#[test]
fn what_a_kubelet_writes_to_its_node_gets_no_certificate() {
    let bare = json!({});
    let own = recorded();
    // The policy refuses the second half of these; the signer does not depend on that alone.
    let attempts: [(&Value, &[&str], &str); 16] = [
        (&own, &["192.0.2.11", "127.0.0.1"], "127.0.0.1"),
        (&own, &["::1"], "::1"),
        (&own, &["0.0.0.0"], "0.0.0.0"),
        (&own, &["169.254.1.1"], "169.254.1.1"),
        (&own, &["224.0.0.1"], "224.0.0.1"),
        (&own, &["10.96.0.1"], "10.96.0.1"),
        (&own, &["10.233.0.1"], "10.233.0.1"),
        (&own, &["192.0.2.12"], "192.0.2.12"),
        (&own, &["192.0.2.13"], "192.0.2.13"),
        (&bare, &["192.0.2.11"], "192.0.2.11"),
        (&json!({ "metalform.dev/ssh-host": "192.0.2.14" }), &[], "192.0.2.14"),
        (&json!({ "metalk8s.scality.com/control-plane-ip": "192.0.2.14" }), &[], "192.0.2.14"),
        (&json!({ "metalform.dev/workload-plane-ip": "127.0.0.1" }), &[], "127.0.0.1"),
        (&json!({ "metalform.dev/addresses": "::ffff:127.0.0.1" }), &[], "::ffff:127.0.0.1"),
        (&json!({ "metalform.dev/addresses": "192.0.2.11,10.96.0.1" }), &[], "10.96.0.1"),
        (&json!({ "metalform.dev/control-plane-ip": "192.0.2.12" }), &[], "192.0.2.12"),
    ];
    let reasons = attempts.map(|(annotations, status, requested)| {
        is_issued(annotations, status, requested).expect_err(&format!("{annotations} {status:?} {requested}"))
    });
    insta::assert_snapshot!(reasons.join("\n"), @r"
    127.0.0.1 is not an address that one host alone can have
    ::1 is not an address that one host alone can have
    0.0.0.0 is not an address that one host alone can have
    169.254.1.1 is not an address that one host alone can have
    224.0.0.1 is not an address that one host alone can have
    10.96.0.1 is not an address that one host alone can have
    10.233.0.1 is not an address that one host alone can have
    192.0.2.12 is not recorded as an address of node n1
    192.0.2.13 is not recorded as an address of node n1
    192.0.2.11 is not recorded as an address of node n1
    192.0.2.14 is not recorded as an address of node n1
    192.0.2.14 is not recorded as an address of node n1
    127.0.0.1 is not an address that one host alone can have
    ::ffff:127.0.0.1 is not an address that one host alone can have
    10.96.0.1 is not an address that one host alone can have
    192.0.2.12 is recorded as an address of node n2 too
    ");
}

#[test]
fn names_of_other_servers_are_in_no_kubelets_certificate() {
    for name in ["n2", "localhost", "kubernetes", "kubernetes.default.svc", "*", "*.n1", "N1"] {
        assert!(is_issued(&recorded(), &[], name).is_err(), "{name}");
    }
    // Nor where the Node itself has such a name: HAProxy takes "kubernetes" for an API server.
    for name in ["kubernetes", "kubernetes.default.svc", "localhost", "192.0.2.12"] {
        let case = Case {
            user: Box::leak(format!("system:node:{name}").into_boxed_str()),
            csr: parsed(name, &[name], &[]),
            records: records(&[(name, &["192.0.2.11"])]),
            ..serving_case()
        };
        assert!(matches!(case.verdict(), CsrVerdict::Deny { .. }), "{name}");
    }
}

#[test]
fn a_certificate_is_valid_for_no_longer_than_was_requested() {
    const YEAR: i64 = 365 * 24 * 3600;
    let lifetime = |case: Case, expiration: Option<i32>| match case
        .with(|case| case.expiration = expiration)
        .verdict()
    {
        CsrVerdict::Sign(leaf) => leaf.lifetime.as_secs(),
        CsrVerdict::Deny { reason } => panic!("{reason}"),
    };
    for (requested, expected) in [
        (None, YEAR),
        (Some(600), 600),
        (Some(3600), 3600),
        (Some(1), 600),
        (Some(-5), 600),
        (Some(i32::MAX), YEAR),
    ] {
        assert_eq!(lifetime(renewing(), requested), expected, "{requested:?}");
        assert_eq!(lifetime(serving_case(), requested), expected, "{requested:?}");
    }
}
