//! The bridge of the pods, on a host whose Node has got another part of the pod network.

use std::process::Command;

use metalform::resource::contract::kind::Kind;
use metalform::resource::contract::resource_id::ResourceId;

use crate::library;
use crate::node::Node;

/// Stands for `ip`, with the bridge as a file.
const IP: &str = r#"#!/bin/sh
case "$*" in
"-o -4 address show dev cni0")
    test ! -e ROOT/bridge || echo "5: cni0    inet $(cat ROOT/bridge) brd 10.233.7.255 scope global cni0\\" ;;
"link delete cni0") rm ROOT/bridge ;;
*) exit 9 ;;
esac
"#;

/// Stands for `ctr`, with each task as a file.
const CTR: &str = r#"#!/bin/sh
case "$*" in
"--namespace k8s.io tasks list")
    echo "TASK PID STATUS"
    cd ROOT/tasks && for task in *; do echo "$task 7 $(cat "$task")"; done ;;
"--namespace k8s.io tasks kill --signal SIGKILL "*)
    shift 6
    echo STOPPED >"ROOT/tasks/$1" ;;
*) exit 9 ;;
esac
"#;

/// The plugin refuses pods on a bridge with the address of another part of the pod network.
#[test]
fn the_bridge_of_an_earlier_part_of_the_pod_network_goes_after_the_pods_on_it() {
    let library = library();
    let node = Node::all().into_iter().find(|node| node.title == "node").unwrap();
    let compiled = node.compiled(&library);
    let all = || compiled.iter().flat_map(|(_, resources)| resources);
    let is_wanted = |id: &ResourceId| id.kind == Kind::Command && id.name.starts_with("The bridge ");
    let command = all().find(|one| is_wanted(&one.id)).unwrap();
    let root = tempfile::tempdir().unwrap();
    let place = |name: &str| root.path().join(name);
    let run = |script: &str, arguments: &[&str]| {
        let path = format!("{}:{}", place("bin").display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).args(arguments).env("PATH", path);
        shell.status().unwrap().success()
    };
    let field = |name: &str| {
        let script = command.fields[name].as_str().unwrap();
        let networks = place("networks").display().to_string();
        run(&script.replace("/var/lib/cni/networks/metalform", &networks), &[])
    };
    for directory in ["bin", "networks", "tasks"] {
        std::fs::create_dir(place(directory)).unwrap();
    }
    for (name, text) in [("bin/ip", IP), ("bin/ctr", CTR)] {
        let text = text.replace("ROOT", &root.path().display().to_string());
        // By another process: no child of a test beside this one has it open for writing.
        assert!(run(
            "printf %s \"$2\" >\"$1\" && chmod 0755 \"$1\"",
            &[place(name).to_str().unwrap(), &text]
        ));
    }
    for (name, text) in [
        ("networks/10.233.7.2", "one\r\neth0"),
        ("networks/10.233.7.3", "two\r\neth0"),
        ("networks/10.233.7.4", "gone\r\neth0"),
        ("networks/last_reserved_ip.0", "etcd"),
        ("tasks/one", "RUNNING"),
        ("tasks/two", "RUNNING"),
        ("tasks/etcd", "RUNNING"),
    ] {
        std::fs::write(place(name), text).unwrap();
    }
    assert!(!field("only_if"), "there is no bridge");
    std::fs::write(place("bridge"), "10.233.1.1/24").unwrap();
    assert!(!field("only_if"), "it is the node's");
    std::fs::write(place("bridge"), "10.233.7.1/24").unwrap();
    assert!(field("only_if"), "it is of an earlier part");
    assert!(field("run"));
    let tasks =
        ["one", "two", "etcd"].map(|task| std::fs::read_to_string(place("tasks").join(task)).unwrap());
    assert_eq!(tasks.each_ref().map(|state| state.trim()), ["STOPPED", "STOPPED", "RUNNING"]);
    assert!(!place("bridge").exists() && !field("only_if"), "it stays");
}
