use serde_json::{Value, json};

use super::*;

const GIB: u64 = 1 << 30;

fn deployment(metadata: Value, spec: Value) -> MachineDeployment {
    let mut template_spec = json!({ "providerSpec": { "value": {} }, "versions": { "kubelet": "1.35.4" } });
    template_spec.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    serde_json::from_value(json!({
        "metadata": metadata,
        "spec": {
            "selector": { "matchLabels": { "group": "a" } },
            "template": { "metadata": { "labels": { "group": "a" } }, "spec": template_spec },
        },
    }))
    .unwrap()
}

fn scaled() -> Value {
    json!({ "annotations": { NODE_GROUP_MAX_SIZE: "5" } })
}

/// `4 8Gi arm64; cpu=2,pods=20`: processors, memory and architecture of the facts, and what an operator has entered. `-`:
/// without facts.
fn host(text: &str) -> HostObject {
    let (facts, capacity) = text.split_once(';').unwrap_or((text, ""));
    let facts: Vec<&str> = facts.split_whitespace().collect();
    let status = match facts.as_slice() {
        ["-"] => json!({}),
        [cpus, memory, rest @ ..] => json!({ "facts": {
            "machineId": "", "bootId": "", "operatingSystem": "debian", "operatingSystemVersion": "13",
            "architecture": rest.first().unwrap_or(&"amd64"), "kernel": "", "addresses": [],
            "cpus": cpus.parse::<u64>().unwrap(),
            "memory": memory.strip_suffix("Gi").unwrap().parse::<u64>().unwrap() * GIB,
        } }),
        other => panic!("{other:?}"),
    };
    let capacity = capacity.split(',').filter_map(|pair| pair.trim().split_once('='));
    let capacity: BTreeMap<&str, &str> = capacity.collect();
    let spec = json!({ "address": "192.0.2.1", "capacity": capacity });
    serde_json::from_value(json!({ "metadata": { "name": "h" }, "spec": spec, "status": status })).unwrap()
}

fn shown(node: &ExpectedNode) -> String {
    let all: Vec<String> = node.iter().map(|(name, value)| format!("{name}={value}")).collect();
    all.join(" ")
}

#[test]
fn a_node_has_the_least_of_the_hosts() {
    // What is left of 8 GiB, and of 16 GiB: 5 %, 330 MiB and 100 MiB are reserved.
    let (small, large) = ((8192 - 409 - 430) * MEBIBYTE, (16384 - 819 - 430) * MEBIBYTE);
    for (hosts, expected) in [
        ("", String::new()),
        ("4 8Gi", format!("cpu=3880m labels=kubernetes.io/arch=amd64,group=a maxPods=110 memory={small}")),
        (
            "4 16Gi | 8 8Gi",
            format!("cpu=3880m labels=kubernetes.io/arch=amd64,group=a maxPods=110 memory={small}"),
        ),
        (
            "8 16Gi arm64 | 8 16Gi arm64",
            format!("cpu=7840m labels=kubernetes.io/arch=arm64,group=a maxPods=110 memory={large}"),
        ),
        ("8 16Gi arm64 | 8 16Gi", format!("cpu=7840m labels=group=a maxPods=110 memory={large}")),
        // 8 processors have no fraction left: 8 * 990 - 80 = 7840; 8 are 8 by an operator.
        (
            "4 8Gi; cpu=8,memory=64Gi",
            "cpu=8 labels=kubernetes.io/arch=amd64,group=a maxPods=110 memory=64Gi".to_owned(),
        ),
        (
            "4 8Gi; memory=1024Mi | 4 8Gi; memory=1Gi | 4 8Gi; memory=2Gi",
            "cpu=3880m labels=kubernetes.io/arch=amd64,group=a maxPods=110 memory=1024Mi".to_owned(),
        ),
        // What an operator has entered is less than what another has by its facts.
        (
            "4 8Gi; cpu=3879m | 4 8Gi",
            format!("cpu=3879m labels=kubernetes.io/arch=amd64,group=a maxPods=110 memory={small}"),
        ),
        (
            "4 8Gi; pods=0.25k,ephemeral-storage=1Ti | 4 8Gi; pods=20,ephemeral-storage=900G",
            format!(
                "cpu=3880m ephemeral-disk=900G labels=kubernetes.io/arch=amd64,group=a maxPods=20 memory={small}"
            ),
        ),
        (
            "4 8Gi; pods=0.25k",
            format!("cpu=3880m labels=kubernetes.io/arch=amd64,group=a maxPods=250 memory={small}"),
        ),
        // The disk of one is unknown.
        (
            "4 8Gi; ephemeral-storage=1Ti | 4 8Gi",
            format!("cpu=3880m labels=kubernetes.io/arch=amd64,group=a maxPods=110 memory={small}"),
        ),
        ("-", "labels=group=a maxPods=110".to_owned()),
        ("-; cpu=2,memory=4Gi", "cpu=2 labels=group=a maxPods=110 memory=4Gi".to_owned()),
        // Other resources, and what is none, change nothing.
        (
            "4 8Gi; nvidia.com/gpu=2,cpu=x",
            format!("cpu=3880m labels=kubernetes.io/arch=amd64,group=a maxPods=110 memory={small}"),
        ),
        // Less than what is reserved.
        ("0 0Gi", "cpu=0 labels=kubernetes.io/arch=amd64,group=a maxPods=110 memory=0".to_owned()),
    ] {
        let mut hosts: Vec<HostObject> =
            hosts.split('|').filter(|one| !one.trim().is_empty()).map(host).collect();
        for _ in 0..2 {
            let node = of_template(&deployment(scaled(), json!({})), hosts.iter(), 110);
            let sorted =
                expected.replace("kubernetes.io/arch=amd64,group=a", "group=a,kubernetes.io/arch=amd64");
            let sorted =
                sorted.replace("kubernetes.io/arch=arm64,group=a", "group=a,kubernetes.io/arch=arm64");
            assert_eq!(shown(&node), sorted, "{hosts:?}");
            hosts.reverse();
        }
    }
}

#[test]
fn labels_and_taints_are_those_that_the_node_gets() {
    let taint = |key: &str, value: &str| json!({ "key": key, "value": value, "effect": "NoSchedule" });
    let spec = json!({
        "metadata": { "labels": { "disk": "ssd", "group": "b" }, "annotations": { "c": "d" } },
        "taints": [taint("only", "batch"), taint("x", "")],
    });
    let node = of_template(&deployment(scaled(), spec), [host("4 8Gi")].iter(), 110);
    assert_eq!(node["labels"], "disk=ssd,group=b,kubernetes.io/arch=amd64");
    assert_eq!(node["taints"], "only=batch:NoSchedule,x:NoSchedule");
}

#[test]
fn nothing_is_expected_where_nothing_reads_it() {
    let unscaled = of_template(&deployment(json!({}), json!({})), [host("4 8Gi")].iter(), 110);
    assert_eq!(unscaled, ExpectedNode::new());
    let mut leaving = host("4 8Gi");
    leaving.metadata.deletion_timestamp =
        Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    assert_eq!(of_template(&deployment(scaled(), json!({})), [leaving].iter(), 110), ExpectedNode::new());
}

#[test]
fn reservations_are_those_of_the_kubelet() {
    let template = include_str!("../../../templates/kubelet/config.yaml.j2");
    let kubelet = format!(
        "kubeReserved: {{ cpu: {{{{ facts.cpus * {KUBELET_CPU} }}}}m, \
         memory: {{{{ facts.memory // {KUBELET_MEMORY} // {MEBIBYTE} }}}}Mi }}"
    );
    for line in [
        format!("\nsystemReserved: {{ cpu: {SYSTEM_CPU}m, memory: {SYSTEM_MEMORY}Mi }}\n"),
        format!("\n{kubelet}\n"),
        format!("\n  memory.available: {EVICTION_MEMORY}Mi\n"),
    ] {
        assert!(template.contains(&line), "{line}");
    }
}
