use super::*;
use crate::model::ssh_target::HostKeyPolicy;

fn node(yaml: &str) -> Result<NodeSpec, Vec<String>> {
    let manifest: NodeManifest = serde_saphyr::from_str(yaml).unwrap();
    NodeSpec::parse(&manifest).map_err(|problems| problems.to_string().lines().map(str::to_owned).collect())
}

/// A Node with these entries besides the host.
fn with(labels: &str, annotations: &str) -> Result<NodeSpec, Vec<String>> {
    let host = "metalform.dev/ssh-host: 10.0.0.2";
    node(&format!("metadata: {{name: node-1, labels: {{{labels}}}, annotations: {{{host}, {annotations}}}}}"))
}

#[test]
fn a_manifest_written_for_metalk8s_is_accepted() {
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
    assert_eq!(spec.version, None);
    assert_eq!(
        spec.warnings,
        [
            "label metalk8s.scality.com/version (\"128.0.0\") is a release of MetalK8s; it has no meaning here and is ignored"
        ]
    );
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
fn ssh_settings_are_parsed() {
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
fn both_prefixes_may_be_set_to_the_same_value_only() {
    assert!(with("", "metalk8s.scality.com/ssh-host: 10.0.0.2").is_ok());
    assert_eq!(
        with("", "metalk8s.scality.com/ssh-host: 10.0.0.3").unwrap_err(),
        [
            "node node-1: metalform.dev/ssh-host is \"10.0.0.2\", but metalk8s.scality.com/ssh-host is \"10.0.0.3\"; keep one of them"
        ]
    );
}

#[test]
fn all_problems_are_reported_at_once() {
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
    node Node_1: label node-role.kubernetes.io/etcd has the value "false", expected ""; to remove the role, remove the label
    node Node_1: label node-role.kubernetes.io/worker: "worker" is not a role; the roles are bootstrap, master (or control-plane), etcd, mirror, infra and node
    node Node_1: unknown annotation metalform.dev/ssh-hots; known are ssh-host, ssh-port, ssh-user, ssh-key-path, ssh-sudo, ssh-host-key, ssh-bastion
    node Node_1: annotation metalform.dev/ssh-host is missing
    node Node_1: annotation metalform.dev/ssh-port is "0", expected a number from 1 to 65535
    node Node_1: annotation metalform.dev/ssh-user is "", expected a string without blanks
    node Node_1: annotation metalk8s.scality.com/ssh-key-path: "id" is not an absolute path
    node Node_1: annotation metalform.dev/ssh-sudo is "yes", expected true or false
    node Node_1: annotation metalform.dev/ssh-host-key: "abc" is neither a public host key, such as "ssh-ed25519 AAAA...", nor accept-new
    node Node_1: annotation metalform.dev/ssh-bastion: "@" is not a bastion, such as "user@host:22"; separate several by commas, first hop first
    node Node_1: taint a:NoRun: the effect is not NoSchedule, PreferNoSchedule or NoExecute
    "#);
    assert_eq!(
        node("metadata: {annotations: {metalform.dev/ssh-host: a}}").unwrap_err(),
        ["node (without a name): metadata.name is missing"]
    );
}

#[test]
fn transient_taints_are_not_part_of_the_manifest() {
    let spec = node(
        "metadata: {name: node-1, annotations: {metalform.dev/ssh-host: 10.0.0.2}}
spec:
  taints:
    - {effect: NoSchedule, key: node.kubernetes.io/not-ready}
    - {effect: NoSchedule, key: node-role.kubernetes.io/infra}
    - {effect: NoSchedule, key: node.cloudprovider.kubernetes.io/uninitialized, value: 'true'}
    - {effect: NoSchedule, key: node.kubernetes.io/unschedulable}",
    )
    .unwrap();
    let taints: Vec<String> = spec.taints.iter().map(ToString::to_string).collect();
    assert_eq!(taints, ["node-role.kubernetes.io/infra:NoSchedule"]);
}

#[test]
fn a_requested_version_is_one_of_the_bundles_or_refused() {
    let both: &[&str] = &["1.35.4", "1.34.4"];
    let newer: &[&str] = &["1.35.4", "1.36.0"];
    let master = "node-role.kubernetes.io/master: '', metalform.dev/version: '1.34.4'";
    let patched = "node-role.kubernetes.io/bootstrap: '', metalform.dev/version: '1.35.3'";
    let upgraded = "node-role.kubernetes.io/bootstrap: '', node-role.kubernetes.io/etcd: '', metalform.dev/version: '1.34.4'";
    for (labels, available, expected) in [
        ("", both, None),
        ("metalform.dev/version: '1.35.4'", &both[..1], None),
        ("metalform.dev/version: v1.35.4", both, None),
        ("metalform.dev/version: '1.34.4'", both, None),
        (
            "metalform.dev/version: '1.34.4'",
            &both[..1],
            Some("label metalform.dev/version is \"1.34.4\", but the bundle contains Kubernetes 1.35.4"),
        ),
        (
            "metalform.dev/version: '1.35'",
            both,
            Some(
                "label metalform.dev/version is \"1.35\", but the bundle contains Kubernetes 1.35.4 and 1.34.4",
            ),
        ),
        (
            "metalform.dev/version: '1.36.0'",
            newer,
            Some(
                "label metalform.dev/version is \"1.36.0\", but kubelet 1.36.0 is newer than the API server 1.35.4: upgrade the control plane first",
            ),
        ),
        (
            master,
            both,
            Some(
                "label metalform.dev/version is \"1.34.4\", but nodes with the role master have the version of the first bundle, 1.35.4",
            ),
        ),
        // As metalform wrote it while the first bundle was one with an earlier version.
        (patched, both, None),
        (upgraded, both, None),
    ] {
        let found = with(labels, "").unwrap().check_version(available);
        let expected = expected.map(|problem| format!("node node-1: {problem}"));
        assert_eq!(found.err().map(|problems| problems.to_string()), expected, "{labels}");
    }
}

#[test]
fn recorded_addresses_are_part_of_the_manifest() {
    let spec = with("", "metalform.dev/control-plane-ip: 10.0.0.2, metalform.dev/workload-plane-ip: fd00::2")
        .unwrap();
    assert_eq!(spec.control_plane_ip, Some("10.0.0.2".parse().unwrap()));
    assert_eq!(spec.workload_plane_ip, Some("fd00::2".parse().unwrap()));
}
