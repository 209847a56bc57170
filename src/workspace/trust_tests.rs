use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;

use jiff::SignedDuration;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tempfile::TempDir;

use super::*;
use crate::bundle::format::{IndexSignature, RepositoryIndex};
use crate::workspace::trust_file::ca_files;

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);
const INDEX: &str = "Origin: metalform\nSuite: debian-13\n";

fn subject() -> Subject {
    Subject {
        name: "bootstrap".parse().unwrap(),
        address: "192.0.2.1".parse().unwrap(),
        indexes: vec![index(INDEX)],
    }
}

fn index(text: &str) -> RepositoryIndex {
    RepositoryIndex {
        signed_path: "apt/dists/debian-13/InRelease".to_owned(),
        text: text.to_owned(),
        signature: IndexSignature::Clear,
    }
}

/// A bootstrap node.
struct Node {
    root: TempDir,
    layout: Layout,
    rng: StdRng,
}

impl Node {
    fn bare() -> Self {
        Self::seeded(1)
    }

    fn seeded(seed: u64) -> Self {
        let root = tempfile::tempdir().unwrap();
        Self { layout: Layout::below(root.path()), root, rng: StdRng::seed_from_u64(seed) }
    }

    fn bootstrapped(seed: u64) -> Self {
        let mut node = Self::seeded(seed);
        node.create().unwrap();
        node
    }

    fn create(&mut self) -> Result<Trust, TrustError> {
        create(&self.layout, &subject(), NOW, &mut self.rng)
    }

    /// Pending files, below the root, each with its reason.
    fn pending(&self, now: Timestamp) -> Vec<String> {
        let pending = pending(&self.layout, &subject(), now).unwrap();
        let line = |pending: &PendingFile| format!("{}: {}", self.name(&pending.file.path), pending.reason);
        pending.iter().map(line).collect()
    }

    fn name(&self, path: &Path) -> String {
        path.strip_prefix(self.root.path()).unwrap().display().to_string()
    }

    /// An error without the temporary directory.
    fn message<T>(&self, result: Result<T, TrustError>) -> String {
        let error = result.err().unwrap().to_string();
        error.replace(&self.root.path().display().to_string(), "")
    }

    /// Content and mode of every file, and every directory.
    fn tree(&self) -> BTreeMap<String, (u32, Vec<u8>)> {
        let mut tree = BTreeMap::new();
        let mut folders = vec![self.root.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let content = match entry.file_type().unwrap().is_dir() {
                    true => {
                        folders.push(entry.path());
                        Vec::new()
                    }
                    false => fs::read(entry.path()).unwrap(),
                };
                tree.insert(self.name(&entry.path()), (entry.metadata().unwrap().mode(), content));
            }
        }
        tree
    }

    /// Every function that only reads.
    fn read_everything(&self) {
        let _ = load(&self.layout);
        let _ = pending(&self.layout, &subject(), NOW);
        let _ = missing(&self.layout, &subject(), NOW);
        for ca in Ca::ALL {
            let _ = load_ca(&self.layout, ca);
        }
        files(&self.layout, &subject());
        Trust::in_memory(&subject(), NOW, &mut StdRng::seed_from_u64(9)).unwrap();
    }
}

#[test]
fn reading_an_empty_root_leaves_it_empty() {
    let node = Node::bare();
    node.read_everything();
    assert_eq!(node.tree(), BTreeMap::new());
    assert_eq!(
        node.message(load(&node.layout)),
        "/etc/kubernetes/pki/ca.key does not exist; restore it from a backup of this node, \
         or run `metalform bootstrap` if this is a new cluster"
    );
}

#[test]
fn the_files_that_are_pending_are_those_that_are_written() {
    let mut node = Node::bare();
    let listed = files(&node.layout, &subject());
    let paths = |files: &[TrustFile]| files.iter().map(|file| node.name(&file.path)).collect::<Vec<_>>();
    let expected = paths(&listed);
    insta::assert_snapshot!(expected.join("\n"), @"
    etc/kubernetes/pki/ca.crt
    etc/kubernetes/pki/ca.key
    etc/kubernetes/pki/etcd/ca.crt
    etc/kubernetes/pki/etcd/ca.key
    etc/kubernetes/pki/front-proxy-ca.crt
    etc/kubernetes/pki/front-proxy-ca.key
    etc/kubernetes/pki/sa.pub
    etc/kubernetes/pki/sa.key
    var/lib/metalform/repository.key
    etc/kubernetes/pki/encryption.key
    etc/kubernetes/pki/routing.key
    etc/metalform/pki/ssh.pub
    etc/metalform/pki/ssh
    etc/kubernetes/pki/etcd/metalform.crt
    etc/kubernetes/pki/etcd/metalform.key
    var/lib/metalform/serve/tls.crt
    var/lib/metalform/serve/tls.key
    etc/kubernetes/admin.conf
    etc/metalform/pki/machine-controller.conf
    etc/metalform/pki/machine-metrics.crt
    etc/metalform/pki/machine-metrics.key
    var/lib/metalform/push/tls.crt
    var/lib/metalform/push/tls.key
    var/lib/metalform/repository/apt/dists/debian-13/InRelease
    ");
    let pending: Vec<TrustFile> =
        pending(&node.layout, &subject(), NOW).unwrap().into_iter().map(|one| one.file).collect();
    assert_eq!(pending, listed);

    node.create().unwrap();
    assert_eq!(node.pending(NOW), [""; 0]);
    assert_eq!(missing(&node.layout, &subject(), NOW).unwrap(), BTreeSet::new());
    let written: BTreeSet<String> = node
        .tree()
        .into_iter()
        .filter(|(_, (mode, _))| mode & 0o170_000 == 0o100_000)
        .map(|(name, _)| name)
        // The mark is gone when the first member has started.
        .filter(|name| *name != node.name(&node.layout.new_cluster_mark()))
        .collect();
    assert_eq!(written, expected.into_iter().collect());
    for file in listed {
        let mode = fs::metadata(&file.path).unwrap().mode() & 0o7777;
        // The groups of the file server and of the push server read their keys; root alone reads every other one.
        let of_group = ["serve/tls.key", "push/tls.key"].iter().any(|name| file.path.ends_with(name));
        let private = if of_group { 0o640 } else { 0o600 };
        assert_eq!((mode, file.sensitive), (file.mode, file.mode == private), "{}", file.path.display());
    }
}

#[test]
fn a_second_creation_changes_nothing_and_loading_returns_the_same_keys() {
    let mut node = Node::bootstrapped(1);
    let before = node.tree();
    let created = node.create().unwrap();
    let loaded = load(&node.layout).unwrap();
    node.read_everything();
    assert_eq!(node.tree(), before);
    assert_eq!(loaded.encryption_key, created.encryption_key);
    assert_eq!(loaded.routing_key, created.routing_key);
    for ca in Ca::ALL {
        assert_eq!(loaded.authorities.ca(ca).key(), created.authorities.ca(ca).key());
    }
}

#[test]
fn the_loss_of_a_key_is_an_error_that_names_it_and_nothing_is_generated_again() {
    for (lost, message) in [
        (
            &["etc/kubernetes/pki/ca.crt", "etc/kubernetes/pki/ca.key"][..],
            "/etc/kubernetes/pki/ca.crt, /etc/kubernetes/pki/ca.key lost: \
             /etc/kubernetes/pki/etcd/metalform.crt shows that this cluster was created, and its keys are not \
             generated again; restore from a backup of this node",
        ),
        (
            &["var/lib/metalform/repository.key"],
            "/var/lib/metalform/repository.key lost: \
             /etc/kubernetes/pki/etcd/metalform.crt shows that this cluster was created, and its keys are not \
             generated again; restore from a backup of this node",
        ),
        (
            &["etc/kubernetes/pki/encryption.key"],
            "/etc/kubernetes/pki/encryption.key lost: \
             /etc/kubernetes/pki/etcd/metalform.crt shows that this cluster was created, and its keys are not \
             generated again; restore from a backup of this node; \
             /etc/kubernetes/encryption.yaml of every master has the same key as its secret",
        ),
        (
            &["etc/kubernetes/pki/routing.key"],
            "/etc/kubernetes/pki/routing.key lost: \
             /etc/kubernetes/pki/etcd/metalform.crt shows that this cluster was created, and its keys are not \
             generated again; restore from a backup of this node; \
             /etc/bird/bird.conf of every node has the same key as its password",
        ),
        (
            &["etc/kubernetes/pki/sa.key", "etc/kubernetes/pki/sa.pub"],
            "/etc/kubernetes/pki/sa.pub, /etc/kubernetes/pki/sa.key lost: \
             /etc/kubernetes/pki/etcd/metalform.crt shows that this cluster was created, and its keys are not \
             generated again; restore from a backup of this node; \
             every other master has the same sa.key and sa.pub in /etc/kubernetes/pki",
        ),
        (
            &["etc/kubernetes/pki/etcd/ca.key"],
            "/etc/kubernetes/pki/etcd/ca.crt exists, but its private key /etc/kubernetes/pki/etcd/ca.key does not; \
             restore both from a backup of this node",
        ),
    ] {
        let mut node = Node::bootstrapped(1);
        for file in lost {
            fs::remove_file(node.root.path().join(file)).unwrap();
        }
        let before = node.tree();
        let created = node.create();
        assert_eq!(node.message(created), message);
        assert_eq!(node.message(pending(&node.layout, &subject(), NOW)), message);
        assert_eq!(node.message(check(&node.layout, &subject())), message);
        assert!(load(&node.layout).is_err());
        node.read_everything();
        assert_eq!(node.tree(), before, "{lost:?}");
    }
}

#[test]
fn files_of_a_node_of_another_cluster_are_no_lost_keys() {
    let other = Node::bootstrapped(1);
    let copy = |node: &Node, file: &str| {
        let to = node.root.path().join(file);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(other.root.path().join(file), to).unwrap();
    };
    let worker = ["etc/kubernetes/pki/ca.crt"];
    let kubeadm = [
        "etc/kubernetes/pki/ca.crt",
        "etc/kubernetes/pki/ca.key",
        "etc/kubernetes/pki/etcd/ca.crt",
        "etc/kubernetes/pki/etcd/ca.key",
        "etc/kubernetes/pki/front-proxy-ca.crt",
        "etc/kubernetes/pki/front-proxy-ca.key",
        "etc/kubernetes/pki/sa.key",
        "etc/kubernetes/pki/sa.pub",
        "etc/kubernetes/admin.conf",
    ];
    let master = [
        "etc/kubernetes/pki/ca.crt",
        "etc/kubernetes/pki/etcd/ca.crt",
        "etc/kubernetes/pki/front-proxy-ca.crt",
        "etc/kubernetes/pki/sa.key",
        "etc/kubernetes/pki/sa.pub",
        "etc/metalform/pki/machine-controller.conf",
        "etc/metalform/pki/machine-metrics.crt",
        "etc/metalform/pki/machine-metrics.key",
    ];
    for files in [&worker[..], &kubeadm, &master] {
        let mut node = Node::seeded(2);
        files.iter().for_each(|file| copy(&node, file));
        let before = node.tree();
        let message = "this machine has been a node of another cluster: /etc/kubernetes/pki/ca.crt exists";
        assert_eq!(node.message(check(&node.layout, &subject())), message);
        assert_eq!(node.message(pending(&node.layout, &subject(), NOW)), message);
        let created = node.create();
        assert_eq!(node.message(created), message);
        assert_eq!(node.tree(), before, "{files:?}");
    }
    // A bootstrap node that has lost nearly everything.
    for left in [
        "var/lib/metalform/repository.key",
        "etc/kubernetes/pki/encryption.key",
        "etc/kubernetes/pki/routing.key",
        "etc/metalform/pki/ssh",
    ] {
        let node = Node::bare();
        ["etc/kubernetes/pki/ca.crt", left].iter().for_each(|file| copy(&node, file));
        let message = node.message(check(&node.layout, &subject()));
        assert!(message.ends_with("restore both from a backup of this node"), "{left}: {message}");
    }
}

#[test]
fn a_creation_that_ended_early_is_completed() {
    let whole = Node::bootstrapped(1);
    let artifacts = Artifact::all(&subject());
    for written in 0..artifacts.len() {
        let mut node = Node::seeded(2);
        // The first write of a run.
        atomic_file::write(&node.layout.new_cluster_mark(), NEW_CLUSTER, PUBLIC).unwrap();
        for artifact in &artifacts[..written] {
            for (from, to) in artifact.files(&whole.layout).into_iter().zip(artifact.files(&node.layout)) {
                fs::create_dir_all(to.path.parent().unwrap()).unwrap();
                fs::copy(from.path, to.path).unwrap();
            }
        }
        let before = node.tree();
        node.create().unwrap();
        assert_eq!(node.pending(NOW), [""; 0], "{written}");
        let after = node.tree();
        assert!(before.iter().all(|(name, content)| after.get(name) == Some(content)), "{written}");
    }
}

#[test]
fn what_was_issued_by_a_replaced_ca_is_issued_again() {
    let (mut node, other) = (Node::bootstrapped(1), Node::bootstrapped(2));
    for file in ["ca.crt", "ca.key"] {
        fs::copy(other.layout.pki().join(file), node.layout.pki().join(file)).unwrap();
    }
    assert_eq!(
        node.pending(NOW),
        [
            "var/lib/metalform/serve/tls.crt: issued by another CA",
            "var/lib/metalform/serve/tls.key: issued by another CA",
            "etc/kubernetes/admin.conf: has another server or CA",
            "etc/metalform/pki/machine-controller.conf: has another server or CA",
            "etc/metalform/pki/machine-metrics.crt: issued by another CA",
            "etc/metalform/pki/machine-metrics.key: issued by another CA",
            "var/lib/metalform/push/tls.crt: issued by another CA",
            "var/lib/metalform/push/tls.key: issued by another CA",
        ]
    );
    let etcd_client = fs::read(node.layout.etcd_client().0).unwrap();
    node.create().unwrap();
    assert_eq!(node.pending(NOW), [""; 0]);
    assert_eq!(fs::read(node.layout.etcd_client().0).unwrap(), etcd_client, "another CA's are left alone");
}

#[test]
fn an_index_that_was_signed_with_a_replaced_key_or_is_of_another_bundle_is_signed_again() {
    let (mut node, other) = (Node::bootstrapped(1), Node::bootstrapped(2));
    fs::copy(other.layout.repository_key(), node.layout.repository_key()).unwrap();
    let [pending] = node.pending(NOW).try_into().unwrap();
    assert!(
        pending.starts_with(
            "var/lib/metalform/repository/apt/dists/debian-13/InRelease: not signed with the repository's key"
        ),
        "{pending}"
    );
    node.create().unwrap();
    assert_eq!(node.pending(NOW), [""; 0]);

    // Its text contains all of the former one.
    let mut subject = subject();
    subject.indexes = vec![index("Origin: metalform\n")];
    assert_eq!(missing(&node.layout, &subject, NOW).unwrap().len(), 1);
}

#[test]
fn certificates_are_renewed_before_they_expire_and_for_another_address() {
    let mut node = Node::bootstrapped(1);
    let later = NOW + SignedDuration::from_hours(24 * 300);
    let due = missing(&node.layout, &subject(), later).unwrap();
    let due: Vec<String> = due.iter().map(|path| node.name(Path::new(path))).collect();
    assert_eq!(
        due,
        [
            "etc/kubernetes/admin.conf",
            "etc/kubernetes/pki/etcd/metalform.crt",
            "etc/kubernetes/pki/etcd/metalform.key",
            "etc/metalform/pki/machine-controller.conf",
            "etc/metalform/pki/machine-metrics.crt",
            "etc/metalform/pki/machine-metrics.key",
            "var/lib/metalform/push/tls.crt",
            "var/lib/metalform/push/tls.key",
            "var/lib/metalform/serve/tls.crt",
            "var/lib/metalform/serve/tls.key",
        ]
    );
    create(&node.layout, &subject(), later, &mut node.rng).unwrap();
    assert_eq!(node.pending(later), [""; 0]);

    let moved = Subject { address: "192.0.2.2".parse().unwrap(), ..subject() };
    assert_eq!(
        missing(&node.layout, &moved, later).unwrap().len(),
        6,
        "certificates and keys of metalform serve, of the push server and of the metrics"
    );
}

#[test]
fn only_the_public_half_of_an_ssh_key_is_written_again() {
    let mut node = Node::bootstrapped(1);
    let before = node.tree();
    fs::remove_file(node.layout.ssh_key().with_extension("pub")).unwrap();
    assert_eq!(node.pending(NOW), ["etc/metalform/pki/ssh.pub: does not exist"]);
    node.create().unwrap();
    assert_eq!(node.tree(), before);
}

#[test]
fn keys_in_memory_are_new_ones() {
    let trust = |seed| Trust::in_memory(&subject(), NOW, &mut StdRng::seed_from_u64(seed)).unwrap();
    assert_eq!(trust(1).authorities.kubernetes.key(), trust(1).authorities.kubernetes.key());
    assert_ne!(trust(1).authorities.kubernetes.key(), trust(2).authorities.kubernetes.key());
    assert_ne!(trust(1).encryption_key, trust(2).encryption_key);
    assert_ne!(trust(1).routing_key, trust(2).routing_key);
}

#[test]
fn processes_that_create_at_once_end_with_the_same_keys() {
    for round in 0..20 {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::below(root.path());
        let keys: BTreeSet<(String, String)> = std::thread::scope(|scope| {
            let creating = (0..4).map(|one| {
                let layout = &layout;
                scope.spawn(move || {
                    let mut rng = StdRng::seed_from_u64(10 * round + one);
                    let trust = create(layout, &subject(), NOW, &mut rng).map_err(|error| error.to_string());
                    let trust = trust.unwrap();
                    (trust.encryption_key, trust.authorities.ca(Ca::Kubernetes).certificate().to_owned())
                })
            });
            let creating: Vec<_> = creating.collect();
            creating.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(keys.len(), 1);
        assert_eq!(load(&layout).unwrap().encryption_key, keys.first().unwrap().0);
    }
}

#[test]
fn a_reader_beside_a_creation_sees_all_of_it_or_nothing() {
    for round in 0..20 {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::below(root.path());
        std::thread::scope(|scope| {
            let creating = scope.spawn(|| {
                let mut rng = StdRng::seed_from_u64(round);
                create(&layout, &subject(), NOW, &mut rng).map(drop).map_err(|error| error.to_string())
            });
            while !creating.is_finished() {
                // Before, the first file is reported; never a later one.
                if let Err(error) = load(&layout) {
                    let first = "/etc/kubernetes/pki/ca.key does not exist";
                    assert!(error.to_string().contains(first), "{error}");
                }
            }
            creating.join().unwrap().unwrap();
        });
    }
}

#[test]
fn a_cluster_is_new_only_where_all_its_keys_were_created_together() {
    let mark = |node: &Node| is_new_cluster(&node.layout);
    let mut node = Node::bare();
    assert!(!mark(&node));
    node.create().unwrap();
    assert!(mark(&node));
    node.create().unwrap();
    assert!(mark(&node), "its first member has not begun yet");
    remove_new_cluster_mark(&node.layout).unwrap();
    remove_new_cluster_mark(&node.layout).unwrap();
    // What is issued again, or restored from a backup, is of the same cluster.
    fs::remove_file(node.layout.admin_conf()).unwrap();
    node.create().unwrap();
    assert!(!mark(&node));
    let mut restored = Node::bare();
    let (certificate, key) = ca_files(&node.layout, Ca::Etcd);
    for path in [certificate, key, node.layout.routing_key()] {
        let to = restored.root.path().join(path.strip_prefix(node.root.path()).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(&path, &to).unwrap();
    }
    restored.create().unwrap();
    assert!(!mark(&restored), "the keys of an etcd cluster were there already");
}

#[test]
fn the_mark_of_a_new_cluster_outlives_a_kill_before_the_first_key() {
    let mut node = Node::bare();
    let mark = node.layout.new_cluster_mark();
    // As a run leaves it that is killed after its first write.
    fs::create_dir_all(mark.parent().unwrap()).unwrap();
    fs::write(&mark, NEW_CLUSTER).unwrap();
    node.create().unwrap();
    assert!(is_new_cluster(&node.layout));
}
