//! The bootstrap node has the version of the first bundle, whichever that is: its Node names none.

use metalform::model::api_contract::VERSION;
use metalform::model::node::NodeSpec;
use serde_json::{Value, json};

use crate::scripts::Play;

impl Play {
    fn bootstrap_node(&self) -> Value {
        self.stage.api.lock().store.get("nodes", "bootstrap").cloned().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn the_bootstrap_node_has_the_version_of_the_first_bundle() {
    let mut play = Play::new();
    play.prepare("host bootstrap bootstrap master etcd infra").await.unwrap();
    play.prepare("deployed bootstrap").await.unwrap();
    let labels = play.bootstrap_node()["metadata"]["labels"].clone();
    assert!(labels.get(VERSION).is_none(), "{labels}");

    // As earlier builds wrote it, for the bundle of that time.
    play.stage.api.lock().store.change("nodes", "", "bootstrap", |node| {
        node["metadata"]["labels"][VERSION] = json!("1.35.3");
    });
    let node = serde_json::from_value(play.bootstrap_node()).unwrap();
    let spec = NodeSpec::from_node(&node).unwrap();
    assert_eq!(spec.check_version(&play.workspace.bundles.versions()), Ok(()));
    let lines = play.play("deploy bootstrap").await.unwrap();
    assert!(lines.last().is_some_and(|last| last.starts_with("all hold")), "{}", lines.join("\n"));
}
