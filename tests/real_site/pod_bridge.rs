//! The bridge of the pods, on a node whose Node comes back with another part of the pod network.

use metalform::model::facts::Cidr;
use serde_json::json;

use crate::host::session::HostSession;
use crate::scripts::Play;

const COMMAND: &str = "run set -eu\ntries=100\n";

fn give(session: &HostSession, address: &str) {
    let bridge = Cidr { address: address.parse().unwrap(), prefix: 24 };
    session.lock().facts.addresses.insert("cni0".to_owned(), vec![bridge]);
}

/// How often the bridge was removed.
fn removals(session: &HostSession) -> usize {
    session.lock().performed.iter().filter(|title| title.starts_with(COMMAND)).count()
}

#[tokio::test(start_paused = true)]
async fn a_bridge_outside_the_pod_network_of_its_node_is_removed_once() {
    let mut play = Play::new();
    for line in
        ["host bootstrap bootstrap master etcd infra", "host worker node", "deployed bootstrap worker"]
    {
        play.prepare(line).await.unwrap();
    }
    let session = play.stage.session("worker").unwrap();
    play.stage.api.lock().store.change("nodes", "", "worker", |node| {
        node["spec"]["podCIDR"] = json!("10.233.9.0/24");
    });
    for (address, removed) in [("10.233.9.1", 0), ("10.233.4.1", 1)] {
        give(&session, address);
        let lines = play.play("deploy worker").await.unwrap();
        assert!(lines.last().is_some_and(|last| last.starts_with("all hold")), "{}", lines.join("\n"));
        assert_eq!(removals(&session), removed, "{address}");
    }
    assert!(!session.lock().facts.addresses.contains_key("cni0"));
    play.play("deploy worker").await.unwrap();
    assert_eq!(removals(&session), 1);
}
