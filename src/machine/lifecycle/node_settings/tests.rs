use super::*;

/// `a=1 b=2`.
fn pairs(text: &str) -> BTreeMap<String, String> {
    let pair = |word: &str| {
        let (key, value) = word.split_once('=').unwrap();
        (key.to_owned(), value.to_owned())
    };
    text.split_whitespace().map(pair).collect()
}

/// `key=value`; the effect is `NoSchedule`.
fn taints(text: &str) -> Vec<Taint> {
    let taint = |word: &str| {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        Taint { key: key.to_owned(), value: value.to_owned(), effect: "NoSchedule".to_owned() }
    };
    text.split_whitespace().map(taint).collect()
}

fn node(labels: &str, record: &str, node_taints: &str) -> MachineNode {
    let annotations = [(MACHINE_SETTINGS.to_owned(), record.to_owned())];
    MachineNode {
        provider_id: None,
        labels: pairs(labels),
        annotations: annotations.into_iter().filter(|(_, record)| !record.is_empty()).collect(),
        taints: taints(node_taints),
        unschedulable: false,
        ready: false,
        message: String::new(),
        pod_network: false,
    }
}

#[test]
fn only_labels_that_were_ours_are_removed() {
    for (goal, present, record, expected) in [
        ("", "", "", ""),
        ("a=1", "", "", "a=1"),
        ("a=1", "a=1", "label:a", ""),
        // Another client has changed it.
        ("a=1", "a=2", "label:a", "a=1"),
        ("", "a=1 b=2", "label:a", "a-"),
        ("", "b=2", "label:a", ""),
        ("b=1", "a=1 b=1 c=1", "label:a,label:b", "a-"),
        // An annotation and a taint of that name are others.
        ("", "a=1", "annotation:a,taint:a:NoSchedule", ""),
    ] {
        let settings = NodeSettings { labels: pairs(goal), ..NodeSettings::default() };
        let change = settings.change(&node(present, record, ""), false);
        let shown = change.labels.iter().map(|(key, value)| match value {
            Some(value) => format!("{key}={value}"),
            None => format!("{key}-"),
        });
        assert_eq!(shown.collect::<Vec<_>>().join(" "), expected, "{goal} {present} {record}");
    }
}

#[test]
fn only_taints_that_were_ours_are_removed() {
    for (goal, present, record, admitted, expected) in [
        ("", "", "", false, None),
        ("a=1", "", "", false, Some("a=1")),
        ("a=1", "a=2", "", false, Some("a=1")),
        ("a=1", "a=1", "taint:a:NoSchedule", false, None),
        ("", "a=1 b=1", "taint:a:NoSchedule", false, Some("b=1")),
        ("", "a=1 b=1", "taint:a:NoExecute", false, None),
        ("", "a=1 b=1", "", true, None),
        ("", "b metalform.dev/not-ready", "", false, None),
        ("", "b metalform.dev/not-ready", "", true, Some("b")),
        ("c=1", "metalform.dev/not-ready", "", true, Some("c=1")),
    ] {
        let settings = NodeSettings { taints: taints(goal), ..NodeSettings::default() };
        let change = settings.change(&node("", record, present), admitted);
        assert_eq!(change.taints, expected.map(taints), "{goal} {present} {record}");
    }
}

#[test]
fn a_change_that_is_made_is_not_made_again() {
    let template = NodeSettings { labels: pairs("a=1"), annotations: pairs("b=2"), taints: taints("c=3") };
    let settings = template.of_machine("kube-system", "web-1", "u-1");
    let mut node = node("x=1", "", "y metalform.dev/not-ready");
    let change = settings.change(&node, true);
    node.labels.extend(change.labels.into_iter().filter_map(|(key, value)| Some((key, value?))));
    node.annotations.extend(change.annotations.into_iter().filter_map(|(key, value)| Some((key, value?))));
    node.taints = change.taints.unwrap();
    assert!(settings.change(&node, true).is_empty());
    assert_eq!(node.labels[MACHINE_UID], "u-1");
    assert_eq!(node.annotations[NODE_MACHINE], "kube-system/web-1");
    assert_eq!(
        node.annotations[MACHINE_SETTINGS],
        "annotation:b,annotation:cluster.k8s.io/machine,label:a,label:metalform.dev/machine-uid,taint:c:NoSchedule"
    );
}
