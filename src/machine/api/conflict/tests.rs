use super::*;

/// `created` is a year; an object without it has not been stored.
fn metadata(name: &str, created: Option<u16>) -> String {
    let created = created.map(|year| format!("creationTimestamp: '{year}-01-01T00:00:00Z', "));
    format!("metadata: {{{}namespace: kube-system, name: {name}}}", created.unwrap_or_default())
}

fn deployment(name: &str, created: Option<u16>, selector: &str, labels: &str) -> MachineDeployment {
    let yaml = format!(
        "{{apiVersion: cluster.k8s.io/v1alpha1, kind: MachineDeployment, {}, spec: {{
           selector: {{matchLabels: {{{selector}}}}}, template: {{metadata: {{labels: {{{labels}}}}}, spec: {{
           versions: {{kubelet: 1.35.4}}, providerSpec: {{value: {{}}}}}}}}}}}}",
        metadata(name, created)
    );
    serde_saphyr::from_str(&yaml).unwrap()
}

fn host(name: &str, created: Option<u16>, address: &str) -> HostObject {
    let yaml = format!(
        "{{apiVersion: metalform.dev/v1alpha1, kind: Host, {}, spec: {{address: '{address}'}}}}",
        metadata(name, created)
    );
    serde_saphyr::from_str(&yaml).unwrap()
}

#[test]
fn two_machine_deployments_do_not_share_machines() {
    let (a, b) = ("group: a", "group: b");
    let both = "group: a, tier: x";
    for (selector, labels, expected) in [
        (b, b, ""),
        (a, a, "selector group=a matches the Machines of MachineDeployment first"),
        ("tier: x", "tier: x", ""),
        // Its Machines have more labels, and are selected by the first one all the same.
        ("tier: x", both, "template.metadata.labels match the selector group=a of MachineDeployment first"),
        (both, both, "template.metadata.labels match the selector group=a of MachineDeployment first"),
    ] {
        let second = deployment("second", Some(2026), selector, labels);
        let others = [deployment("first", Some(2025), a, a), second.clone()];
        let found = of_machine_deployment(&second, &others);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.join("\n"), expected, "{selector} {labels}");
        assert_eq!(of_machine_deployment(&others[0], &others), [], "the first one is right");
    }
}

#[test]
fn the_earlier_machine_deployment_of_a_namespace_is_right() {
    let one = |name, created| deployment(name, created, "group: a", "group: a");
    for (subject, other, conflicts) in [
        (one("b", Some(2026)), one("a", Some(2025)), true),
        (one("a", Some(2025)), one("b", Some(2026)), false),
        (one("b", Some(2026)), one("a", Some(2026)), true),
        (one("a", Some(2026)), one("b", Some(2026)), false),
        (one("a", None), one("b", Some(2026)), true),
        (one("a", Some(2026)), one("b", None), false),
    ] {
        assert_eq!(!of_machine_deployment(&subject, std::slice::from_ref(&other)).is_empty(), conflicts);
        let mut elsewhere = other;
        elsewhere.metadata.namespace = Some("default".to_owned());
        assert_eq!(of_machine_deployment(&subject, &[elsewhere]), []);
    }
}

#[test]
fn a_host_has_an_address_of_its_own() {
    let hosts = [
        host("first", Some(2025), "192.0.2.21"),
        host("named", Some(2025), "rack.example"),
        host("sixth", Some(2025), "fd00::21"),
    ];
    for (address, expected) in [
        ("192.0.2.22", ""),
        ("192.0.2.21", "address 192.0.2.21 is that of Host first"),
        ("::ffff:192.0.2.21", "address ::ffff:192.0.2.21 is that of Host first"),
        ("RACK.example", "address RACK.example is that of Host named"),
        ("fd00:0::0021", "address fd00:0::0021 is that of Host sixth"),
    ] {
        let late = host("late", Some(2026), address);
        let found: Vec<String> = of_host(&late, &hosts, &[]).iter().map(ToString::to_string).collect();
        assert_eq!(found.join("\n"), expected, "{address}");
        assert_eq!(of_host(&hosts[0], [&late], &[]), [], "the first one is right");
    }
    assert_eq!(of_host(&hosts[0], &hosts, &[]), [], "it is not another one");
}

#[test]
fn a_host_is_no_node_but_the_one_that_it_became() {
    let node = |name: &str, address: &str, host: Option<&str>, is_bootstrap| OccupiedNode {
        name: name.to_owned(),
        addresses: vec![name.to_owned(), address.to_owned()],
        host: host.map(str::to_owned),
        is_bootstrap,
    };
    let nodes = [
        node("boot", "192.0.2.10", None, true),
        node("manual", "192.0.2.11", None, false),
        node("machine", "192.0.2.12", Some("first"), false),
    ];
    let first = host("first", Some(2025), "192.0.2.12");
    assert_eq!(of_host(&first, [], &nodes), [], "it became that node");
    let named = host("manual", Some(2026), "192.0.2.30");
    let found = of_host(&named, [], &nodes);
    assert_eq!(found, [HostConflict::NameOfNode], "its own Node would have the name");
    for (address, expected) in [
        ("192.0.2.30", ""),
        ("192.0.2.10", "address 192.0.2.10 is that of the bootstrap node boot"),
        ("boot", "address boot is that of the bootstrap node boot"),
        ("192.0.2.11", "address 192.0.2.11 is that of Node manual, which no Machine has deployed"),
        // The Host that became the node is named, and not the node too.
        ("192.0.2.12", "address 192.0.2.12 is that of Host first"),
    ] {
        let late = host("late", Some(2026), address);
        let found = of_host(&late, [&first], &nodes);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found.join("\n"), expected, "{address}");
    }
}
