use super::*;
use crate::model::document::Document;
use crate::model::facts::Os;
use crate::model::roster::Roster;
use crate::state::Tree;

const ROSTER: &str = "
defaults: { vars: { site: north, level: 1 } }
hosts:
  a: { address: 192.0.2.1, roles: [master, etcd], labels: { rack: r1 }, vars: { level: 2 } }
  b: { address: 192.0.2.2 }
  c: { address: 192.0.2.3 }
";

/// Of a plain host.
pub(crate) fn facts() -> Facts {
    Facts {
        hostname: "a".into(),
        machine_id: "m".into(),
        boot_id: "b".into(),
        os: Os {
            id: "debian".into(),
            family: "debian".into(),
            version: "13".into(),
            codename: "trixie".into(),
        },
        arch: "arm64".into(),
        kernel: "6".into(),
        cpus: 2,
        memory: 1,
        cgroup: 2,
        container: false,
        may_lower_oom_score: true,
        addresses: BTreeMap::new(),
        default_route: false,
        nameservers: Vec::new(),
        swap: false,
        clock: 0,
        disk_free: 1,
        resolv_conf: "/etc/resolv.conf".into(),
    }
}

/// The contents of the files that a state with these resources gives the host `a`.
fn contents(states: &[(&str, &str)], named: &[&str]) -> Result<Vec<String>, Vec<String>> {
    let said = |faults: Vec<RosterFault>| faults.iter().map(ToString::to_string).collect::<Vec<_>>();
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("states")).unwrap();
    for (name, text) in states {
        std::fs::write(directory.path().join("states").join(name), text).unwrap();
    }
    let library = Library::read(&Tree::directory(directory.path()).unwrap()).unwrap();
    let roster = Roster::parse(&[Document { file: "roster.yaml", text: ROSTER }]).unwrap();
    // The third was not selected.
    let hosts: Vec<Host> = roster.hosts.values().take(2).cloned().collect();
    let named: Vec<StateName> = named.iter().map(|name| name.parse().unwrap()).collect();
    let setting =
        RosterContext { library: &library, states: &named, cluster: &roster.vars, hosts: hosts.as_slice() };
    let compiled = compiled(setting, &hosts[0], &facts()).map_err(said)?;
    let texts = compiled.iter().filter_map(|one| one.fields.get("content")?.as_str().map(str::to_owned));
    let texts = texts.collect();
    desired(compiled, Timestamp::UNIX_EPOCH).map_err(said)?;
    Ok(texts)
}

fn state(resources: &str) -> String {
    format!("about: A test.\nresources:\n{resources}\n")
}

const TOP: &str = "node: {states: [a]}\netcd: {states: [b]}\nmaster: {states: []}\n";

#[test]
fn templates_see_the_roster_the_host_its_facts_and_its_peers() {
    let text = "{{ cluster.site }} {{ cluster.level }} {{ node.name }} {{ node.address }} {{ node.roles | join('+') }} {{ node.labels.rack }} {{ node.site }} {{ node.level }} {{ facts.arch }} {{ peers.b.address }} {{ peers.b.roles | join('+') }} {{ peers | length }}";
    let a = state(&format!("- file: /x\n  content: \"{text}\""));
    assert_eq!(
        contents(&[("top.yaml", TOP), ("a.yaml", &a)], &["a"]),
        Ok(vec!["north 1 a 192.0.2.1 master+etcd r1 north 2 arm64 192.0.2.2 node 1".to_owned()])
    );
}

#[test]
fn states_come_from_the_roles_unless_they_are_named() {
    let a = state("- file: /a\n  content: a");
    let b = state("- file: /b\n  content: b").replace("resources", "requires: [c]\nresources");
    let c = state("- file: /c\n  content: c");
    let states = [("top.yaml", TOP), ("a.yaml", a.as_str()), ("b.yaml", &b), ("c.yaml", &c)];
    assert_eq!(contents(&states, &[]), Ok(vec!["c".to_owned(), "b".to_owned()]));
    assert_eq!(contents(&states, &["a"]), Ok(vec!["a".to_owned()]));
}

#[test]
fn a_certificate_is_refused_outside_a_cluster() {
    let a = state(
        "- certificate: /a.crt\n  key: /a.key\n  authority: etcd\n  common_name: a\n  usages: [server]",
    );
    let faults = contents(&[("top.yaml", TOP), ("a.yaml", &a)], &["a"]).unwrap_err();
    assert_eq!(faults, ["states/a.yaml:3:3: certificate:/a.crt requires a CA, which only a cluster has"]);
}

#[test]
fn states_that_do_not_depend_on_facts_are_compiled_before_the_host_is_observed() {
    for (content, depends) in
        [("{{ node.name }}", false), ("{{ facts.arch }}", true), ("{{ node.nmae }}", false)]
    {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir(tree.path().join("states")).unwrap();
        std::fs::write(tree.path().join("states/top.yaml"), TOP).unwrap();
        for name in ["a.yaml", "b.yaml"] {
            let text = state(&format!("- file: /x\n  content: \"{content}\""));
            std::fs::write(tree.path().join("states").join(name), text).unwrap();
        }
        let library = Library::read(&Tree::directory(tree.path()).unwrap()).unwrap();
        let roster = Roster::parse(&[Document { file: "roster.yaml", text: ROSTER }]).unwrap();
        let hosts: Vec<Host> = roster.hosts.values().cloned().collect();
        let named = ["a".parse().unwrap()];
        let setting =
            RosterContext { library: &library, states: &named, cluster: &roster.vars, hosts: &hosts };
        let known = compiled_without_facts(setting, &hosts[0]);
        assert_eq!(known.is_none(), depends, "{content}");
        if let Some(known) = known {
            assert_eq!(known, compiled(setting, &hosts[0], &facts()), "{content}");
        }
    }
}

#[test]
fn addresses_on_the_planes_come_from_vars_then_from_facts_then_from_ssh() {
    let roster = "
defaults:
  vars: { networks: { control_plane: [192.0.2.0/24], workload_plane: { cidrs: [198.51.100.0/24] } } }
hosts:
  a: { address: gate.example, vars: { workload_plane_ip: 203.0.113.1 } }
  b: { address: 192.0.2.2 }
  c: { address: c.example }
";
    let roster = Roster::parse(&[Document { file: "roster.yaml", text: roster }]).unwrap();
    let hosts: Vec<Host> = roster.hosts.values().cloned().collect();
    let tree = tempfile::tempdir().unwrap();
    std::fs::create_dir(tree.path().join("states")).unwrap();
    std::fs::write(tree.path().join("states/top.yaml"), "node: {states: [a]}\n").unwrap();
    let text = "{{ node.control_plane_ip }} {{ node.control_plane_interface }} {{ node.workload_plane_ip }} {{ peers.b.control_plane_ip }} {{ peers.c.control_plane_ip is defined }}";
    std::fs::write(tree.path().join("states/a.yaml"), state(&format!("- file: /x\n  content: \"{text}\"")))
        .unwrap();
    let library = Library::read(&Tree::directory(tree.path()).unwrap()).unwrap();
    let context = RosterContext { library: &library, states: &[], cluster: &roster.vars, hosts: &hosts };
    assert_eq!(compiled_without_facts(context, &hosts[0]), None);
    let [facts, _] = Facts::examples();
    let compiled = compiled(context, &hosts[0], &facts).unwrap();
    assert_eq!(compiled[0].fields["content"], "192.0.2.1 eth0 203.0.113.1 192.0.2.2 false");
}

#[test]
fn a_missing_value_is_named_with_the_part_of_the_roster_that_sets_it() {
    for (content, expected) in [
        ("{{ node.pod_cidr }}", "set pod_cidr in the vars of the host in the roster"),
        ("{{ cluster.registry }}", "set registry in the vars of the roster's defaults"),
    ] {
        let tree = tempfile::tempdir().unwrap();
        std::fs::create_dir(tree.path().join("states")).unwrap();
        std::fs::write(tree.path().join("states/top.yaml"), "node: {states: [a]}\n").unwrap();
        std::fs::write(
            tree.path().join("states/a.yaml"),
            state(&format!("- file: /x\n  content: \"{content}\"")),
        )
        .unwrap();
        let library = Library::read(&Tree::directory(tree.path()).unwrap()).unwrap();
        let roster = Roster::parse(&[Document { file: "roster.yaml", text: ROSTER }]).unwrap();
        let hosts: Vec<Host> = roster.hosts.values().cloned().collect();
        let context = RosterContext { library: &library, states: &[], cluster: &roster.vars, hosts: &hosts };
        let faults = compiled(context, &hosts[1], &facts()).unwrap_err();
        assert_eq!(faults[0].hint().as_deref(), Some(expected), "{faults:?}");
    }
}
