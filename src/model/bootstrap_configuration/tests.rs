use std::path::Path;

use super::*;

fn parse(text: &str) -> Result<BootstrapConfiguration, String> {
    BootstrapConfiguration::parse(&Document { file: "bootstrap.yaml", text })
        .map_err(|problems| problems.to_string())
}

/// A valid file with the given networks.
fn with_networks(networks: &str) -> Result<BootstrapConfiguration, String> {
    parse(&format!("apiVersion: {API_VERSION}\nkind: {KIND}\nbundles: /srv/bundle\nnetworks: {networks}\n"))
}

#[test]
fn every_field_is_parsed() {
    let read = parse(include_str!("../../../tests/config/good/full.yaml")).unwrap();
    assert_eq!(read.networks.control_plane, ["10.10.0.0/24".parse().unwrap()]);
    assert_eq!(
        read.networks.workload_plane.cidrs,
        ["10.20.0.0/24".parse().unwrap(), "10.21.0.0/24".parse().unwrap()]
    );
    assert_eq!(read.networks.workload_plane.mtu, 9000);
    assert_eq!(read.networks.api_service_ip.to_string(), "172.20.0.1");
    assert_eq!(read.networks.dns_ip.to_string(), "172.20.0.10");
    assert_eq!(read.ca_node.unwrap().as_str(), "bootstrap");
    assert_eq!(read.bundles, ["/srv/metalform/1.35", "/srv/metalform/1.34"].map(Path::new));
    assert!(read.bundle_key.is_some_and(|key| key.as_str().starts_with("RWQf6L")));
    let node_ports = ["10.10.0.0/24", "10.20.0.0/24", "10.21.0.0/24"].map(|network| network.parse().unwrap());
    assert_eq!(read.networks.node_ports, node_ports);
    assert_eq!(
        read.kubernetes,
        KubernetesOptions {
            feature_gates: [("SomeGate".to_owned(), true)].into(),
            terminated_pod_gc_threshold: 100,
            dns_host_forward: false,
            max_pods: 200,
        }
    );
    assert_eq!(read.etcd_snapshots, EtcdSnapshotOptions { interval_hours: 12, keep: 14 });
}

#[test]
fn absent_fields_have_defaults() {
    let read =
        with_networks("{controlPlane: {cidr: 10.0.0.0/24}, workloadPlane: {cidr: 10.0.0.0/24}}").unwrap();
    assert_eq!(read.networks.pods.to_string(), "10.233.0.0/16");
    assert_eq!(read.networks.services.to_string(), "10.96.0.0/12");
    assert_eq!(read.networks.workload_plane.mtu, 1460);
    assert_eq!(read.kubernetes, KubernetesOptions::default());
    assert_eq!(read.etcd_snapshots, EtcdSnapshotOptions { interval_hours: 6, keep: 5 });
    assert_eq!(read.ca_node, None);
    assert_eq!(read.bundle_key, None);
    assert_eq!(read.networks.node_ports, read.networks.workload_plane.cidrs);
}

#[test]
fn fields_are_accepted_or_refused_with_their_location() {
    let planes = "controlPlane: {cidr: 10.0.0.0/24}, workloadPlane: {cidr: 10.0.1.0/24}";
    let ours = |networks: &str, rest: &str| {
        parse(&format!("apiVersion: {API_VERSION}\nkind: {KIND}\nnetworks: {{{planes}{networks}}}\n{rest}\n"))
    };
    let theirs = |networks: &str, rest: &str| {
        parse(&format!(
            "apiVersion: {}\nkind: {KIND}\nca: {{minion: b}}\nnetworks: {{{planes}{networks}}}\n{rest}\n",
            METALK8S_API_VERSIONS[0]
        ))
    };
    for (found, expected) in [
        (ours("", "bundles: /a"), Ok(vec!["10.0.1.0/24"])),
        (ours(", nodePorts: [workloadPlane]", "bundles: /a"), Ok(vec!["10.0.1.0/24"])),
        (ours(", nodePorts: controlPlane", "bundles: /a"), Ok(vec!["10.0.0.0/24"])),
        (
            ours(", nodePorts: [workloadPlane, controlPlane, controlPlane]", "bundles: [/a]"),
            Ok(vec!["10.0.0.0/24", "10.0.1.0/24"]),
        ),
        (theirs(", nodeport: {cidr: 0.0.0.0/0}", "archives: /a"), Ok(vec!["0.0.0.0/0"])),
        (theirs("", "archives: [/a]"), Ok(vec!["10.0.1.0/24"])),
        (ours("", "bundles: [/a, /b, /c]"), Ok(vec!["10.0.1.0/24"])),
        (theirs("", "archives: [/a, /b]"), Ok(vec!["10.0.1.0/24"])),
        (ours("", "bundles: [/a, /b, /a]"), Err("bootstrap.yaml:4:19: bundle \"/a\" is specified twice")),
        (
            ours("", "bundles: /a\nkubernetes: {coreDNS: {replicas: 1}}"),
            Err(
                "bootstrap.yaml:5:34: kubernetes.coreDNS.replicas is not supported: CoreDNS is a DaemonSet, with one pod on each infra node; remove the field",
            ),
        ),
        (
            theirs("", "archives: /a\nkubernetes: {coreDNS: {replicas: 2}}"),
            Err(
                "bootstrap.yaml:6:34: kubernetes.coreDNS.replicas is not supported: CoreDNS is a DaemonSet, with one pod on each infra node; remove the field",
            ),
        ),
        (
            ours(", nodePorts: [pods]", "bundles: /a"),
            Err(
                "bootstrap.yaml:3:95: networks.nodePorts: \"pods\" is not a plane; the planes are controlPlane and workloadPlane",
            ),
        ),
        (
            theirs(", nodeport: {cidr: 10.0.1.7/24}", "archives: /a"),
            Err(
                "bootstrap.yaml:4:100: networks.nodeport.cidr 10.0.1.7/24 has host bits set; the network is 10.0.1.0/24",
            ),
        ),
    ] {
        let found =
            found.map(|read| read.networks.node_ports.iter().map(ToString::to_string).collect::<Vec<_>>());
        let expected = expected.map(|all| all.into_iter().map(str::to_owned).collect());
        assert_eq!(found, expected.map_err(str::to_owned));
    }
}

#[test]
fn files_of_metalk8s_are_accepted_with_a_warning_for_each_ignored_field() {
    let read = parse(include_str!("../../../tests/config/good/metalk8s-v1alpha3.yaml")).unwrap();
    assert_eq!(read.bundles, [Path::new("/srv/metalk8s.iso")]);
    let node_ports = ["192.168.2.0/24", "192.168.1.0/24"].map(|network| network.parse().unwrap());
    assert_eq!(read.networks.node_ports, node_ports);
    assert_eq!(read.ca_node.unwrap().as_str(), "bootstrap");
    assert!(!read.kubernetes.dns_host_forward);
    let warnings: Vec<String> = read.warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(warnings.join("\n"), @r"
        bootstrap.yaml:11:5: networks.portmap has no meaning here and is ignored
        bootstrap.yaml:15:3: proxies has no meaning here and is ignored
        bootstrap.yaml:21:3: addons has no meaning here and is ignored
        bootstrap.yaml:26:7: kubernetes.apiServer.oidc has no meaning here and is ignored
        bootstrap.yaml:32:7: kubernetes.coreDNS.affinity has no meaning here and is ignored
        bootstrap.yaml:36:3: salt has no meaning here and is ignored
        bootstrap.yaml:38:8: debug has no meaning here and is ignored
        ");

    let older = parse(include_str!("../../../tests/config/good/metalk8s-v1alpha2.yaml")).unwrap();
    assert_eq!(older.networks.control_plane, ["192.168.1.0/24".parse().unwrap()]);
    assert_eq!(older.warnings, []);
    assert_eq!(older.networks.node_ports, older.networks.workload_plane.cidrs);
}

#[test]
fn networks_must_not_overlap_but_the_planes_may_be_one() {
    let case = |control: &str, workload: &str, pods: &str, services: &str| {
        with_networks(&format!(
            "{{controlPlane: {{cidr: {control}}}, workloadPlane: {{cidr: {workload}}}, pods: {pods}, services: {services}}}"
        ))
        .map(|_| ())
        .map_err(|error| {
            let messages: Vec<&str> = error.lines().map(|line| line.split_once(": ").unwrap().1).collect();
            messages.join("\n")
        })
    };
    let cases = [
        ("10.0.0.0/24", "10.0.1.0/24", "10.2.0.0/16", "10.3.0.0/16", ""),
        ("10.0.0.0/24", "10.0.0.0/24", "10.2.0.0/16", "10.3.0.0/16", ""),
        ("[10.0.0.0/24, 10.0.1.0/24]", "[10.0.1.0/24, 10.0.0.0/24]", "10.2.0.0/16", "10.3.0.0/16", ""),
        (
            "10.0.0.0/8",
            "10.0.0.0/24",
            "192.168.0.0/16",
            "172.16.0.0/12",
            "networks.workloadPlane.cidr 10.0.0.0/24 overlaps networks.controlPlane.cidr 10.0.0.0/8",
        ),
        (
            "[10.0.0.0/16, 10.0.1.0/24]",
            "10.1.0.0/24",
            "10.2.0.0/16",
            "10.3.0.0/16",
            "networks.controlPlane.cidr 10.0.1.0/24 overlaps networks.controlPlane.cidr 10.0.0.0/16",
        ),
        (
            "10.0.0.0/24",
            "10.0.1.0/24",
            "10.0.0.0/16",
            "10.3.0.0/16",
            "networks.pods 10.0.0.0/16 overlaps networks.controlPlane.cidr 10.0.0.0/24\n\
             networks.pods 10.0.0.0/16 overlaps networks.workloadPlane.cidr 10.0.1.0/24",
        ),
        (
            "10.0.0.0/24",
            "10.0.1.0/24",
            "10.2.0.0/16",
            "10.2.0.0/16",
            "networks.services 10.2.0.0/16 overlaps networks.pods 10.2.0.0/16",
        ),
        ("10.0.0.0/24", "[\"fd00:2::/64\", 10.0.1.0/24]", "10.2.0.0/16", "10.3.0.0/16", ""),
        (
            "10.0.0.0/24",
            "fd00:2::/64",
            "\"fd00:3::/56\"",
            "\"fd00:4::/112\"",
            "networks.workloadPlane.cidr has no network of IPv4, which the pod network needs\n\
             networks.pods fd00:3::/56 is of IPv6, which pods and services do not support\n\
             networks.services fd00:4::/112 is of IPv6, which pods and services do not support",
        ),
    ];
    for (control, workload, pods, services, expected) in cases {
        let expected = if expected.is_empty() { Ok(()) } else { Err(expected.to_owned()) };
        assert_eq!(
            case(control, workload, pods, services),
            expected,
            "{control} {workload} {pods} {services}"
        );
    }
}
