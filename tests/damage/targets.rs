//! One test a parser. Each checks that there is no panic and no endless work, that positions are inside the text, and that
//! a parsed value is parsed again from its text.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use metalform::engine::nonce::Nonce;
use metalform::engine::{facts, observe};
use metalform::model::bootstrap_configuration::BootstrapConfiguration;
use metalform::model::document::{self, Document, Problems};
use metalform::model::facts::Facts;
use metalform::model::node::NodeSpec;
use metalform::model::roster::Roster;
use metalform::model::selector::Selector;
use metalform::model::ssh_target::HostKeyPolicy;
use metalform::render::values_of;
use metalform::resource::contract::probe::Probe;
use metalform::resource::kinds;
use metalform::state::{Library, ResourceId, Shapes, StateError, StateName, Tree, check, compile, literals};
use metalform::transport::known_hosts::{KnownHosts, algorithms, verdict};
use metalform::transport::{Output, Program};
use russh::keys::PublicKey;

use super::harness::{run, top};
use super::shell;

const YAML: &[&str] = &[
    "\n",
    "  ",
    "\t",
    "- ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    "{{ ",
    " }}",
    "\"",
    "'",
    "#",
    "|\n",
    ">-\n",
    "&a ",
    "*a",
    "<<: ",
    "!!str ",
    "!x ",
    "---\n",
    "...\n",
    "? ",
    ",",
    "~",
    "0644",
    "1.30",
    "yes",
    "\r\n",
    "\u{feff}",
    "é",
    "\0",
    "%",
    "@",
    "about: ",
    "resources:\n",
    "when: ",
    "each: ",
    "after: ",
    "ensure: absent\n",
    "source: ",
    "item",
];
const TEMPLATE: &[&str] = &[
    "{{ ",
    " }}",
    "{% ",
    " %}",
    "{# ",
    " #}",
    "{%- ",
    "-%}",
    "if ",
    "endif",
    "for x in ",
    "endfor",
    "include ",
    "'a.j2'",
    "set x = ",
    "macro m()",
    "endmacro",
    "raw",
    "endraw",
    "filter ",
    "|",
    ".",
    "(",
    ")",
    "[",
    "]",
    "'",
    "\"",
    "is ",
    "not ",
    "facts.os.",
    "cluster",
    "range(999)",
    "~",
    "é",
    "\n",
    "\0",
    "loop",
    "recursive",
    "self",
    "m()",
    "\\",
];
const LINES: &[&str] = &[
    " ",
    "\n",
    "\t",
    "0",
    "-1",
    "99999999999999999999",
    "/",
    ":",
    ",",
    "=",
    "|",
    "!",
    "*",
    "?",
    "@revoked ",
    "#",
    "\0",
    "é",
    "\u{fffd}",
    "\\",
    "\"",
    "'",
    "[",
    "]",
    "%",
    "failed",
    "absent",
];

fn named(folder: &str, ends: &str) -> Vec<Vec<u8>> {
    fn walk(folder: &std::path::Path, ends: &str, found: &mut Vec<Vec<u8>>) {
        let mut paths: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                walk(&path, ends, found);
            } else if path.to_string_lossy().ends_with(ends) {
                found.push(std::fs::read(path).unwrap());
            }
        }
    }
    let mut found = Vec::new();
    walk(&top(folder), ends, &mut found);
    found
}

fn tree(files: &[(&str, &[u8])]) -> Tree {
    let mut tree = Tree::default();
    for (path, bytes) in files {
        tree.insert(path, bytes.to_vec());
    }
    tree
}

/// The position is in the text, or directly after it; also where the bytes are not text.
fn assert_place(bytes: &[u8], line: u64, column: u64, said: &str) {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    // YAML ends a line with a carriage return too.
    let lines = text.replace("\r\n", "\n").matches(['\n', '\r']).count() as u64 + 1;
    let longest = text.split('\n').map(|line| line.chars().count()).max().unwrap_or(0) as u64;
    // A fault at the end may be on the line after the last.
    assert!(line > 0 && line <= lines + 1 && column > 0 && column <= longest + 2, "{said}");
}

fn assert_places(bytes: &[u8], file: &str, errors: &[StateError]) {
    for error in errors.iter().filter(|error| error.at.file == file) {
        let said = error.to_string();
        assert!(!said.contains('\n'), "{said}");
        if let (Some(line), Some(column)) = (error.at.line, error.at.column) {
            assert_place(bytes, line, column, &said);
        }
    }
}

/// A tree without faults compiles for a host, or has further faults.
fn compiled(tree: &Tree) {
    let Ok(library) = Library::read(tree) else { return };
    literals(&library, kinds());
    let [facts, _] = Facts::examples();
    let values = values_of(&serde_json::json!({
        "cluster": { "name": "a" }, "node": { "name": "n" }, "facts": facts, "peers": {},
    }));
    let Ok(states) = library.states_of(&["node"]) else { return };
    let _ = compile(&library, &states, kinds(), &values);
}

#[test]
fn damaged_states_are_read_or_refused() {
    let mut seeds = named("states", ".yaml");
    seeds.extend(named("tests/bad/state", "a.yaml"));
    seeds.retain(|seed| seed.len() < 4096);
    run("state", &seeds, YAML, |bytes| {
        let tree = tree(&[("states/top.yaml", b"node: {states: [a]}"), ("states/a.yaml", bytes)]);
        assert_places(bytes, "states/a.yaml", &check(&tree, kinds(), &Shapes::of_any_host()));
        compiled(&tree);
    });
}

#[test]
fn a_damaged_top_is_read_or_refused() {
    run("top", &named("tests/bad/state", "top.yaml"), YAML, |bytes| {
        let state = b"about: x\nresources: []\n";
        let tree = tree(&[("states/top.yaml", bytes), ("states/a.yaml", state), ("states/b.yaml", state)]);
        assert_places(bytes, "states/top.yaml", &check(&tree, kinds(), &Shapes::of_any_host()));
        compiled(&tree);
    });
}

#[test]
fn damaged_templates_are_rendered_or_refused() {
    let mut seeds = named("templates", ".j2");
    seeds.extend(named("tests/bad/state", ".j2"));
    seeds.retain(|seed| seed.len() < 8192);
    run("template", &seeds, TEMPLATE, |bytes| {
        let state = b"about: x\nresources:\n  - template: /a\n    source: a.j2\n";
        let top = b"node: {states: [a]}";
        let tree = tree(&[("states/top.yaml", top), ("states/a.yaml", state), ("templates/a.j2", bytes)]);
        assert_places(bytes, "templates/a.j2", &check(&tree, kinds(), &Shapes::of_any_host()));
        compiled(&tree);
    });
}

fn assert_problems(bytes: &[u8], problems: Option<Problems>) {
    for problem in problems.iter().flat_map(|problems| &problems.0) {
        let said = problem.to_string();
        assert!(!said.contains('\n'), "{said}");
        assert_place(bytes, problem.line, problem.column, &said);
    }
}

fn with_text(bytes: &[u8], read: impl FnOnce(&Document<'_>) -> Option<Problems>) {
    match document::text(bytes.to_vec()) {
        Ok(text) => assert_problems(bytes, read(&Document { file: "f", text: &text })),
        Err(error) => {
            let (line, column) = error.position();
            assert_place(bytes, line, column, &error.to_string());
        }
    }
}

#[test]
fn damaged_rosters_are_read_or_refused() {
    let mut seeds = named("tests/bad/roster", ".yaml");
    seeds.extend(named("roster", ".yaml"));
    run("roster", &seeds, YAML, |bytes| with_text(bytes, |document| Roster::parse(&[*document]).err()));
}

#[test]
fn damaged_configurations_are_read_or_refused() {
    let mut seeds = named("tests/bad/configuration", ".yaml");
    seeds.extend(named("tests/config/good", ".yaml"));
    run("configuration", &seeds, YAML, |bytes| {
        with_text(bytes, |document| BootstrapConfiguration::parse(document).err());
    });
}

#[test]
fn damaged_nodes_are_read_or_refused() {
    let seed = "metadata: {name: node-1, labels: {node-role.kubernetes.io/etcd: ''}, annotations: {metalform.dev/ssh-host: \
                10.0.0.2, metalform.dev/ssh-port: '22', metalk8s.scality.com/ssh-sudo: 'true'}}\nspec: {taints: [{effect: \
                NoSchedule, key: a}]}\n";
    run("node", &[seed.into()], YAML, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(node) = serde_saphyr::from_str(&text) {
            let _ = NodeSpec::from_node(&node).map_err(|problems| problems.to_string());
        }
    });
}

#[test]
fn damaged_selectors_mean_hosts_or_are_refused() {
    let text = include_str!("../../roster/example.yaml");
    let roster = Roster::parse(&[Document { file: "r", text }]).unwrap();
    let seeds: Vec<Vec<u8>> =
        ["node-*,!node-2", "role:etcd,rack=a", "!role:infra", "node-?,*"].map(Vec::from).into();
    run("selector", &seeds, LINES, |bytes| {
        if let Ok(selector) = String::from_utf8_lossy(bytes).parse::<Selector>() {
            let _ = selector.select(&roster).map(|hosts| assert!(!hosts.is_empty()));
        }
    });
}

#[test]
fn damaged_names_read_as_they_are_written() {
    let seeds: Vec<Vec<u8>> =
        ["package:a", "image:registry.k8s.io/a:1", "cluster/etcd-3"].map(Vec::from).into();
    run("name", &seeds, LINES, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(id) = text.parse::<ResourceId>() {
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        if let Ok(name) = text.parse::<StateName>() {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
    });
}

#[test]
fn damaged_known_hosts_are_read() {
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFdvrUKgYXnEjtUQ0WqTGVdXE2fVoVzVGyYaPBAMwXv2";
    let other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVbSP8ECuA8UUG7xCW1DnaTvFDUGGEETFcaZ9yOhPcG";
    let seed = format!(
        "# by hand\nnode-1,10.0.0.2 {key}\n[node-1]:2222 {other} me\n@revoked * {other}\n*.a,!b.a {key}\n\
         |1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg= {key}\n@cert-authority *.b {key}\n"
    );
    let shown = PublicKey::from_openssh(key).unwrap();
    run("known_hosts", &[seed.into_bytes()], LINES, |bytes| {
        let known = KnownHosts::parse("known_hosts", &String::from_utf8_lossy(bytes));
        for policy in [HostKeyPolicy::Known, HostKeyPolicy::AcceptNew, HostKeyPolicy::Pinned(key.to_owned())]
        {
            for (host, port) in [("node-1", 22), ("node-1", 2222), ("c.a", 22), ("fd00::1", 22)] {
                let _ = verdict(&policy, &known, host, port, &shown);
                let _ = algorithms(&policy, &known, host, port);
            }
        }
    });
}

fn nonce() -> Nonce {
    Nonce::new(7)
}

/// The parts of a frame: before its content, the content, and after it.
fn unframed(stdout: &[u8]) -> (String, Vec<u8>, String) {
    let text = String::from_utf8(stdout.to_vec()).unwrap();
    let (before, rest) = text.split_once(" begin\n").unwrap();
    let end = rest.rfind("\nmetalform-").unwrap();
    let encoded: String = rest[..end].split_whitespace().collect();
    (format!("{before} begin\n"), BASE64_STANDARD.decode(encoded).unwrap(), rest[end..].to_owned())
}

/// The answer of a host, with damage in its frame and with damage to the frame itself.
fn damaged_answers(name: &str, script: Program, parse: impl Fn(&Output) + std::panic::RefUnwindSafe) {
    let output = shell::run(&script);
    let (before, inner, after) = unframed(&output.stdout);
    let answer = |stdout: Vec<u8>| Output { status: 0, stdout, stderr: Vec::new() };
    run(name, std::slice::from_ref(&inner), LINES, |bytes| {
        parse(&answer(format!("{before}{}{after}", BASE64_STANDARD.encode(bytes)).into_bytes()));
    });
    run(&format!("{name}_frame"), std::slice::from_ref(&output.stdout), LINES, |bytes| {
        parse(&answer(bytes.to_vec()))
    });
}

#[test]
fn damaged_facts_are_read_or_refused() {
    damaged_answers("facts", facts::program(&nonce()), |output| {
        let _ = facts::parse(&nonce(), output).map_err(|error| error.to_string());
    });
}

#[test]
fn damaged_observations_are_read_or_refused() {
    let path = |path: &str| Probe::Path { path: path.to_owned(), unless_sha256: None };
    let probes: BTreeSet<Probe> = [
        path("/etc/passwd"),
        path("/etc"),
        path("/nonexistent"),
        path("/a b'\n\"ä"),
        Probe::Content { path: "/etc/hostname".to_owned() },
        Probe::Package { name: "bash".to_owned() },
        Probe::Package { name: "no-such-package".to_owned() },
        Probe::Unit { name: "ssh.service".to_owned() },
        Probe::Sysctl { key: "net.ipv4.ip_forward".to_owned() },
        Probe::Sysctl { key: "no.such.key".to_owned() },
        Probe::Module { name: "overlay".to_owned() },
        Probe::Swap,
        Probe::Image { reference: "registry.k8s.io/pause:3.10".to_owned() },
        Probe::KeyPair { key: "/a.key".to_owned(), certificate: "/a.crt".to_owned() },
        Probe::Route { destination: "10.96.0.0/12".to_owned() },
        Probe::Guard { script: "true".to_owned() },
        Probe::Guard { script: "false".to_owned() },
    ]
    .into();
    damaged_answers("observation", observe::program(&probes, &nonce()), |output| {
        if let Ok(observed) = observe::parse(&probes, &nonce(), output) {
            // Every probe has an answer.
            let answers: &BTreeMap<_, _> = &observed.0;
            assert!(probes.iter().all(|probe| answers.contains_key(probe)));
        }
    });
}
