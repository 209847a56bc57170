//! The bootstrap node loses roles and gets them again: the keys of the cluster are on it, and stay.

use std::collections::BTreeMap;

use metalform::workspace::layout::Layout;
use metalform::workspace::trust;

use crate::host::tree::of_root;
use crate::scripts::Play;

/// Of a control plane alone, on whatever node.
const OF_A_MASTER: [&str; 3] = [
    "/etc/kubernetes/encryption.yaml",
    "/etc/kubernetes/pki/apiserver.key",
    "/etc/kubernetes/manifests/kube-apiserver.yaml",
];

impl Play {
    async fn all_holds(&mut self, command: &str) {
        let lines = self.play(command).await.unwrap();
        let ended = lines.last().is_some_and(|last| last.starts_with("all hold"));
        assert!(ended, "{command}:\n{}", lines.join("\n"));
    }

    fn files_of_the_bootstrap_node(&self, paths: &[String]) -> BTreeMap<String, Option<String>> {
        let session = self.stage.session("bootstrap").unwrap();
        let host = session.lock();
        paths.iter().map(|path| (path.clone(), host.tree.text(path))).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn the_keys_of_the_cluster_stay_on_a_bootstrap_node_that_loses_roles() {
    let mut play = Play::new();
    for line in [
        "host bootstrap bootstrap master etcd infra",
        "host master-2 master etcd",
        "host master-3 master etcd",
    ] {
        play.prepare(line).await.unwrap();
    }
    play.prepare("deployed bootstrap master-2 master-3").await.unwrap();
    let files = trust::files(&Layout::default(), &play.workspace.subject);
    let keys: Vec<String> = files.iter().map(|file| file.path.display().to_string()).collect();
    {
        let session = play.stage.session("bootstrap").unwrap();
        let tree = &mut session.lock().tree;
        for key in keys.iter().filter(|key| tree.text(key).is_none()).collect::<Vec<_>>() {
            tree.write(key, key.as_str().into(), of_root(0o600), 1);
        }
    }
    let before = play.files_of_the_bootstrap_node(&keys);
    play.all_holds("bootstrap").await;
    for (roles, master) in [("bootstrap infra", false), ("bootstrap infra master etcd", true)] {
        assert_eq!(play.play(&format!("the roles of bootstrap are {roles}")).await, Ok(Vec::new()));
        for command in ["deploy bootstrap", "bootstrap"] {
            play.all_holds(command).await;
            assert_eq!(play.files_of_the_bootstrap_node(&keys), before, "{roles}: {command}");
            let own = play.files_of_the_bootstrap_node(&OF_A_MASTER.map(str::to_owned));
            assert!(own.values().all(|text| text.is_some() == master), "{roles}: {command}: {own:?}");
        }
    }
}
