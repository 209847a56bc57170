use std::path::Path;

use super::*;

fn parse(text: &str) -> Result<BootstrapConfiguration, String> {
    BootstrapConfiguration::parse(&Document { file: "bootstrap.yaml", text })
        .map_err(|problems| problems.to_string())
}

/// With the given networks; the rest is right.
fn with_networks(networks: &str) -> Result<BootstrapConfiguration, String> {
    parse(&format!("apiVersion: {API_VERSION}\nkind: {KIND}\nbundles: /srv/bundle\nnetworks: {networks}\n"))
}

#[test]
fn a_full_file_of_ours_is_read_whole() {
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
    assert_eq!(read.bundles, [Path::new("/srv/metalform/1.35"), Path::new("/srv/metalform/extra")]);
    assert_eq!(
        read.kubernetes,
        KubernetesOptions {
            feature_gates: [("SomeGate".to_owned(), true)].into(),
            terminated_pod_gc_threshold: 100,
            dns_host_forward: false,
            max_pods: 200,
        }
    );
}

#[test]
fn defaults_stand_for_what_is_left_out() {
    let read =
        with_networks("{controlPlane: {cidr: 10.0.0.0/24}, workloadPlane: {cidr: 10.0.0.0/24}}").unwrap();
    assert_eq!(read.networks.pods.to_string(), "10.233.0.0/16");
    assert_eq!(read.networks.services.to_string(), "10.96.0.0/12");
    assert_eq!(read.networks.workload_plane.mtu, 1460);
    assert_eq!(read.kubernetes, KubernetesOptions::default());
    assert_eq!(read.ca_node, None);
}

#[test]
fn files_of_metalk8s_are_read_and_say_what_they_ignore() {
    let read = parse(include_str!("../../../tests/config/good/metalk8s-v1alpha3.yaml")).unwrap();
    assert_eq!(read.bundles, [Path::new("/srv/metalk8s.iso")]);
    assert_eq!(read.ca_node.unwrap().as_str(), "bootstrap");
    assert!(!read.kubernetes.dns_host_forward);
    let warnings: Vec<String> = read.warnings.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(warnings.join("\n"), @r"
        bootstrap.yaml:11:5: networks.portmap has no meaning here and is ignored
        bootstrap.yaml:13:3: proxies has no meaning here and is ignored
        bootstrap.yaml:19:3: addons has no meaning here and is ignored
        bootstrap.yaml:24:7: kubernetes.apiServer.oidc has no meaning here and is ignored
        bootstrap.yaml:30:7: kubernetes.coreDNS.affinity has no meaning here and is ignored
        bootstrap.yaml:33:15: kubernetes.coreDNS.replicas has no meaning here and is ignored
        bootstrap.yaml:35:3: salt has no meaning here and is ignored
        bootstrap.yaml:37:8: debug has no meaning here and is ignored
        ");

    let older = parse(include_str!("../../../tests/config/good/metalk8s-v1alpha2.yaml")).unwrap();
    assert_eq!(older.networks.control_plane, ["192.168.1.0/24".parse().unwrap()]);
    assert_eq!(older.warnings, []);
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
        ("fd00:1::/64", "fd00:2::/64", "\"fd00:3::/56\"", "\"fd00:4::/112\"", ""),
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
