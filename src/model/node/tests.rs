use super::*;
use crate::model::ssh_target::HostKeyPolicy;

fn node(yaml: &str) -> Result<NodeSpec, Vec<String>> {
    let node: Node = serde_saphyr::from_str(yaml).unwrap();
    NodeSpec::from_node(&node).map_err(|problems| problems.to_string().lines().map(str::to_owned).collect())
}

/// A Node with these entries besides the host.
fn with(labels: &str, annotations: &str) -> Result<NodeSpec, Vec<String>> {
    let host = "metalform.dev/ssh-host: 10.0.0.2";
    node(&format!("metadata: {{name: node-1, labels: {{{labels}}}, annotations: {{{host}, {annotations}}}}}"))
}

#[test]
fn a_manifest_written_for_metalk8s_is_read() {
    let spec = node(
        r#"
apiVersion: v1
kind: Node
metadata:
  name: node-1
  annotations:
    metalk8s.scality.com/ssh-key-path: /etc/metalk8s/pki/salt-bootstrap
    metalk8s.scality.com/ssh-host: 10.0.0.2
    metalk8s.scality.com/ssh-sudo: 'false'
  labels:
    metalk8s.scality.com/version: 128.0.0
    node-role.kubernetes.io/master: ''
    node-role.kubernetes.io/etcd: ''
spec:
  taints:
    - {effect: NoSchedule, key: node-role.kubernetes.io/master}
    - {effect: NoExecute, key: a, value: b}
"#,
    )
    .unwrap();
    assert_eq!(spec.name.as_str(), "node-1");
    assert_eq!(spec.roles, BTreeSet::from([Role::Master, Role::Etcd]));
    assert_eq!(spec.version.as_deref(), Some("128.0.0"));
    let expected = SshTarget {
        host: "10.0.0.2".into(),
        port: 22,
        user: "root".into(),
        identity_files: vec!["/etc/metalform/pki/ssh".into()],
        identities_only: true,
        sudo: false,
        host_key: HostKeyPolicy::Known,
        bastion: None,
    };
    assert_eq!(spec.ssh, expected);
    let taints: Vec<String> = spec.taints.iter().map(ToString::to_string).collect();
    assert_eq!(taints, ["node-role.kubernetes.io/master:NoSchedule", "a=b:NoExecute"]);
}

#[test]
fn ssh_settings_of_ours_are_read() {
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFdvrUKgYXnEjtUQ0WqTGVdXE2fVoVzVGyYaPBAMwXv2";
    let spec = with(
        "",
        &format!(
            "metalform.dev/ssh-port: '2222', metalform.dev/ssh-user: ops, metalform.dev/ssh-key-path: /k, \
             metalform.dev/ssh-sudo: 'true', metalform.dev/ssh-host-key: {key}, metalform.dev/ssh-bastion: gate"
        ),
    )
    .unwrap();
    let ssh = spec.ssh;
    assert_eq!((ssh.port, ssh.user.as_str(), ssh.sudo), (2222, "ops", true));
    assert_eq!(ssh.identity_files, [std::path::Path::new("/k")]);
    assert_eq!(ssh.host_key, HostKeyPolicy::Pinned(key.into()));
    assert_eq!(ssh.bastion.unwrap().user, "ops");
}

#[test]
fn roles_come_from_labels() {
    let role = |name: &str| format!("node-role.kubernetes.io/{name}: ''");
    for (labels, expected) in [
        (String::new(), vec![Role::Node]),
        (role("control-plane"), vec![Role::Master]),
        ([role("control-plane"), role("master")].join(", "), vec![Role::Master]),
        (
            [role("infra"), role("bootstrap"), role("node")].join(", "),
            vec![Role::Bootstrap, Role::Infra, Role::Node],
        ),
        ("node-role.kubernetes.io/etcd: 'true'".to_owned(), vec![Role::Etcd]),
    ] {
        assert_eq!(with(&labels, "").unwrap().roles, BTreeSet::from_iter(expected), "{labels}");
    }
}

#[test]
fn both_prefixes_may_say_the_same_but_not_different_things() {
    assert!(with("", "metalk8s.scality.com/ssh-host: 10.0.0.2").is_ok());
    assert_eq!(
        with("", "metalk8s.scality.com/ssh-host: 10.0.0.3").unwrap_err(),
        [
            "node node-1: metalform.dev/ssh-host is \"10.0.0.2\", but metalk8s.scality.com/ssh-host is \"10.0.0.3\"; keep one of them"
        ]
    );
}

#[test]
fn every_problem_is_told_at_once() {
    let found = node(
        r#"
metadata:
  name: Node_1
  labels:
    node-role.kubernetes.io/worker: ''
    node-role.kubernetes.io/etcd: 'false'
  annotations:
    metalform.dev/ssh-port: '0'
    metalform.dev/ssh-user: ''
    metalform.dev/ssh-sudo: 'yes'
    metalform.dev/ssh-host-key: abc
    metalform.dev/ssh-bastion: '@'
    metalform.dev/ssh-hots: 10.0.0.2
    metalk8s.scality.com/ssh-key-path: id
spec:
  taints: [{key: a, effect: NoRun}]
"#,
    )
    .unwrap_err();
    insta::assert_snapshot!(found.join("\n"), @r#"
    node Node_1: "Node_1" is not a host name: use lowercase letters, digits, '-' and '.', at most 253 characters (RFC 1123)
    node Node_1: label node-role.kubernetes.io/etcd has the value "false"; write "", or remove the label if the role is not wanted
    node Node_1: label node-role.kubernetes.io/worker: "worker" is not a role; the roles are bootstrap, master (or control-plane), etcd, infra and node
    node Node_1: annotation metalform.dev/ssh-hots is not known; known are ssh-host, ssh-port, ssh-user, ssh-key-path, ssh-sudo, ssh-host-key, ssh-bastion
    node Node_1: annotation metalform.dev/ssh-host is missing
    node Node_1: annotation metalform.dev/ssh-port is "0"; a number from 1 to 65535 is expected
    node Node_1: annotation metalform.dev/ssh-user is ""; a text without blanks is expected
    node Node_1: annotation metalk8s.scality.com/ssh-key-path: "id" is not an absolute path
    node Node_1: annotation metalform.dev/ssh-sudo is "yes"; true or false is expected
    node Node_1: annotation metalform.dev/ssh-host-key: "abc" is not a public host key, such as "ssh-ed25519 AAAA...", nor accept-new
    node Node_1: annotation metalform.dev/ssh-bastion: "@" is not a bastion, such as "user@host:22"; several are separated by commas, the first to go through first
    node Node_1: taint a:NoRun: its effect is not NoSchedule, PreferNoSchedule or NoExecute
    "#);
    assert_eq!(
        node("metadata: {annotations: {metalform.dev/ssh-host: a}}").unwrap_err(),
        ["node (without a name): metadata.name is missing"]
    );
}

#[test]
fn what_kubernetes_taints_a_node_with_for_a_while_is_no_part_of_the_manifest() {
    let spec = node(
        "metadata: {name: node-1, annotations: {metalform.dev/ssh-host: 10.0.0.2}}
spec:
  taints:
    - {effect: NoSchedule, key: node.kubernetes.io/not-ready}
    - {effect: NoSchedule, key: node-role.kubernetes.io/infra}
    - {effect: NoSchedule, key: node.kubernetes.io/unschedulable}",
    )
    .unwrap();
    let taints: Vec<String> = spec.taints.iter().map(ToString::to_string).collect();
    assert_eq!(taints, ["node-role.kubernetes.io/infra:NoSchedule"]);
}
