use super::*;

fn parse(texts: &[&str]) -> Result<Roster, String> {
    let names = ["a.yaml", "b.yaml"];
    let documents: Vec<Document<'_>> =
        names.into_iter().zip(texts).map(|(file, text)| Document { file, text }).collect();
    Roster::parse(&documents).map_err(|problems| problems.to_string())
}

#[test]
fn a_host_has_the_defaults_of_absent_fields() {
    let roster = parse(&["
defaults: { user: ops, sudo: true, key: /k, labels: { rack: a, site: x }, vars: { disks: [sda] }, bastion: gate }
hosts:
  node-1:
  node-2:
    address: 10.0.0.2
    port: 2222
    user: root
    key: [/k1, /k2]
    sudo: false
    roles: [control-plane, etcd]
    labels: { rack: b }
    vars: { disks: [sdb, sdc], level: 3 }
"])
    .unwrap();
    let [one, two] = roster.hosts.values().collect::<Vec<_>>()[..] else { unreachable!() };
    assert_eq!(
        (one.ssh.host.as_str(), one.ssh.port, one.ssh.user.as_str(), one.ssh.sudo),
        ("node-1", 22, "ops", true)
    );
    assert_eq!(one.ssh.bastion.as_ref().unwrap().host, "gate");
    assert_eq!(one.roles, BTreeSet::from([Role::Node]));
    assert_eq!(one.labels, BTreeMap::from([("rack".into(), "a".into()), ("site".into(), "x".into())]));
    assert_eq!(
        (two.ssh.host.as_str(), two.ssh.port, two.ssh.user.as_str(), two.ssh.sudo),
        ("10.0.0.2", 2222, "root", false)
    );
    assert_eq!(two.ssh.identity_files, [std::path::Path::new("/k1"), std::path::Path::new("/k2")]);
    assert_eq!(two.roles, BTreeSet::from([Role::Master, Role::Etcd]));
    assert_eq!(two.labels, BTreeMap::from([("rack".into(), "b".into()), ("site".into(), "x".into())]));
    assert_eq!(two.vars["disks"], serde_json::json!(["sdb", "sdc"]));
    assert_eq!(two.vars["level"], 3);
    assert_eq!(roster.vars["disks"], serde_json::json!(["sda"]));
}

#[test]
fn every_problem_has_its_location() {
    let found = parse(&[
        "
hosts:
  Node_1: { roles: [worker] }
  node-2: { host_key: abc, key: id, bastion: '@', port: 0, address: '' }
  node-4: { vars: { name: other } }
",
        "hosts: { node-3: { adress: a } }",
    ])
    .unwrap_err();
    insta::assert_snapshot!(found, @r#"
    a.yaml:3:3: "Node_1" is not a host name: use lowercase letters, digits, '-' and '.', at most 253 characters (RFC 1123)
    a.yaml:3:21: "worker" is not a role; the roles are bootstrap, master (or control-plane), etcd, mirror, infra and node
    a.yaml:4:23: "abc" is neither a public host key, such as "ssh-ed25519 AAAA...", nor accept-new
    a.yaml:4:33: "id" is neither an absolute path nor a path below ~/
    a.yaml:4:46: "@" is not a bastion, such as "user@host:22"; separate several by commas, first hop first
    a.yaml:4:57: port 0 is not between 1 and 65535
    a.yaml:4:69: address "" is empty or contains whitespace
    a.yaml:5:3: vars cannot set "name", which is a field of every node
    b.yaml:1:20: unknown field "adress"; did you mean "address"?
    "#);
    assert_eq!(parse(&["hosts: {a: {}, a: {}}"]).unwrap_err(), "a.yaml:1:16: duplicate key \"a\"");
}

#[test]
fn a_host_is_defined_in_one_file_only() {
    let found = parse(&["hosts: {a: }", "hosts: {b: , a: }"]).unwrap_err();
    assert_eq!(found, "b.yaml:1:14: host a is also defined in another file");
}

#[test]
fn a_node_is_a_host_with_its_recorded_addresses() {
    let manifest = serde_saphyr::from_str(
        "metadata: {name: node-1, labels: {rack: a}, annotations: {metalform.dev/ssh-host: 10.0.0.2, metalform.dev/control-plane-ip: 10.0.0.3}}",
    )
    .unwrap();
    let roster: Roster = [Host::from(NodeSpec::parse(&manifest).unwrap())].into_iter().collect();
    let host = &roster.hosts[&"node-1".parse().unwrap()];
    assert_eq!((host.ssh.host.as_str(), host.labels["rack"].as_str()), ("10.0.0.2", "a"));
    assert_eq!(host.roles, BTreeSet::from([Role::Node]));
    assert_eq!(host.vars, BTreeMap::from([("control_plane_ip".into(), "10.0.0.3".into())]));
}

#[test]
fn the_shipped_example_is_a_roster() {
    let roster = parse(&[include_str!("../../roster/example.yaml")]).unwrap();
    assert_eq!(roster.hosts.len(), 3);
}
