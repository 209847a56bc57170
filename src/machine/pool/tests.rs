use serde_json::{Value, json};

use super::*;

fn machine(name: &str, metadata: Value, status: Value) -> Arc<Machine> {
    let mut metadata = metadata;
    (metadata["namespace"], metadata["name"]) = (json!("a"), json!(name));
    metadata["uid"] = json!(format!("u-{name}"));
    metadata["creationTimestamp"] = json!("1970-01-01T00:00:00Z");
    let value = json!({ "cloudProvider": "metalform", "operatingSystem": "debian" });
    let spec = json!({ "providerSpec": { "value": value }, "versions": { "kubelet": "1.35.4" } });
    Arc::new(serde_json::from_value(json!({ "metadata": metadata, "spec": spec, "status": status })).unwrap())
}

/// Free, or claimed by this Machine.
fn host(name: &str, claimed_by: Option<&str>) -> Arc<HostObject> {
    let facts = json!({
        "machineId": "", "bootId": "", "operatingSystem": "debian", "operatingSystemVersion": "13",
        "architecture": "amd64", "kernel": "", "cpus": 4, "memory": 1, "addresses": [],
    });
    let mut status = json!({ "state": "Available", "facts": facts });
    if let Some(machine) = claimed_by {
        status = json!({ "state": "InUse", "facts": facts, "lastToken": 1, "claim": {
            "machine": { "namespace": "a", "name": machine, "uid": format!("u-{machine}") },
            "token": 1, "since": "1970-01-01T00:00:00Z",
        } });
    }
    let metadata = json!({ "name": name, "finalizers": ["metalform.dev/claim-released"] });
    let host = json!({ "metadata": metadata, "spec": { "address": "192.0.2.1" }, "status": status });
    Arc::new(serde_json::from_value(host).unwrap())
}

fn node(name: &str) -> Arc<Node> {
    let ready = json!([{ "type": "Ready", "status": "True" }]);
    let node = json!({ "metadata": { "name": name }, "status": { "conditions": ready } });
    Arc::new(serde_json::from_value(node).unwrap())
}

fn pool(machines: &[Arc<Machine>], hosts: &[Arc<HostObject>], nodes: &[Arc<Node>]) -> Pool {
    let hosts = hosts.iter().cloned().collect();
    Pool::new(machines.to_vec(), &hosts, nodes.to_vec(), &LifeRules::DEFAULT)
}

#[test]
fn a_machine_has_the_host_of_its_claim_before_the_one_that_it_has_noted() {
    let machines = [
        machine("m1", json!({}), json!({ "host": "h2" })),
        machine("m2", json!({}), json!({ "host": "h2" })),
        machine("m3", json!({}), Value::Null),
    ];
    let pool = pool(&machines, &[host("h1", Some("m1")), host("h2", None)], &[node("h1")]);
    let shown = |name: &str| {
        let found = pool.machine(&format!("u-{name}")).unwrap();
        let host = found.host.map(|host| host.name_any());
        (host.unwrap_or_default(), found.node.is_some(), format!("{:?}", found.choice))
    };
    assert_eq!(shown("m1"), ("h1".to_owned(), true, "None".to_owned()));
    assert_eq!(shown("m2"), ("h2".to_owned(), false, "Some(Host(HostName(\"h2\")))".to_owned()));
    let (host, _, choice) = shown("m3");
    assert_eq!(host, "");
    assert!(choice.contains("hosts: 2, in_use: 2"), "{choice}");
    let claimed = pool.host("h1").unwrap();
    assert_eq!(claimed.machine.map(|machine| machine.name_any()).as_deref(), Some("m1"));
    assert!(pool.host("h2").unwrap().machine.is_none() && pool.host("h3").is_none());
}

#[test]
fn pods_have_elsewhere_to_go_where_another_node_runs_or_joins() {
    let joined = json!({ "host": "h1", "nodeRef": {} });
    let m1 = machine("m1", json!({}), joined.clone());
    let h1 = host("h1", Some("m1"));
    let other = |status: Value| machine("m2", json!({}), status);
    let going =
        machine("m2", json!({ "deletionTimestamp": "1970-01-01T00:00:00Z" }), json!({ "host": "h2" }));
    let h2 = || host("h2", Some("m2"));
    for (pool, expected) in [
        (pool(std::slice::from_ref(&m1), std::slice::from_ref(&h1), &[node("h1")]), false),
        (pool(std::slice::from_ref(&m1), std::slice::from_ref(&h1), &[node("h1"), node("n2")]), true),
        (pool(&[m1.clone(), other(json!({ "host": "h2" }))], &[h1.clone(), h2()], &[node("h1")]), true),
        (pool(&[m1.clone(), other(json!({ "host": "h2", "nodeRef": {} }))], &[h1.clone(), h2()], &[]), false),
        (pool(&[m1.clone(), going], &[h1.clone(), h2()], &[node("h1")]), false),
        // One that waits for a host may wait for this one.
        (pool(&[m1.clone(), other(Value::Null)], std::slice::from_ref(&h1), &[node("h1")]), false),
    ] {
        assert_eq!(pool.machine("u-m1").unwrap().elsewhere, expected, "{pool:?}");
    }
}

#[test]
fn hosts_that_a_deployment_can_count_on_match_its_template() {
    let deployment = |system: &str| -> MachineDeployment {
        let value = json!({ "cloudProvider": "metalform", "operatingSystem": system });
        serde_json::from_value(json!({ "metadata": {}, "spec": {
            "selector": { "matchLabels": { "a": "b" } },
            "template": { "metadata": {}, "spec": {
                "providerSpec": { "value": value }, "versions": { "kubelet": "1.35.4" },
            } },
        } }))
        .unwrap()
    };
    let hosts = [host("h1", Some("m1")), host("h2", None), host("h3", None), host("h4", None)];
    let pool = pool(&[machine("m2", json!({}), json!({ "host": "h2" }))], &hosts, &[]);
    assert_eq!(pool.offer(&deployment("debian"), 110).free_hosts, 2);
    assert_eq!(pool.offer(&deployment("ubuntu"), 110).free_hosts, 0);
    assert_eq!(pool.offer(&deployment(""), 110).free_hosts, 0, "an invalid provider block matches nothing");
}

#[test]
fn a_machine_that_must_not_join_takes_no_host() {
    let servers = vec!["1.30.0".parse().unwrap()];
    let rules = LifeRules { servers, ..LifeRules::DEFAULT };
    let machines = [machine("m1", json!({}), Value::Null), machine("m2", json!({}), json!({ "host": "h1" }))];
    let hosts = [host("h1", None), host("h2", None)].into_iter().collect();
    let pool = Pool::new(machines, &hosts, [], &rules);
    assert_eq!(pool.machine("u-m1").unwrap().choice, None);
    let bundles = |versions: &[&str]| versions.iter().map(|&version| version.to_owned()).collect();
    for (versions, expected) in
        [(&["1.34.3", "1.35.3"][..], false), (&["1.34.3", "1.35.4"], true), (&[], true)]
    {
        let rules = LifeRules { bundles: bundles(versions), ..LifeRules::DEFAULT };
        let pool = Pool::new([machine("m1", json!({}), Value::Null)], &hosts, [], &rules);
        assert_eq!(pool.machine("u-m1").unwrap().choice.is_some(), expected, "{versions:?}");
    }
    assert_eq!(pool.machine("u-m2").unwrap().choice, Some(HostChoice::Host("h1".parse().unwrap())));
}
