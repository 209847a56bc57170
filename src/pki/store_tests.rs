use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use rand::SeedableRng;
use rand::rngs::StdRng;
use tempfile::TempDir;

use super::*;

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

/// An empty machine.
struct Disk(TempDir);

impl Disk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn load(&self) -> Result<Authorities, StoreError> {
        let rng = &mut StdRng::seed_from_u64(5);
        Authorities::load_or_create(&self.path("pki"), &self.path("lib/repository.key"), NOW, rng)
    }

    /// Mode and content of every file.
    fn files(&self) -> BTreeMap<String, (u32, Vec<u8>)> {
        let mut files = BTreeMap::new();
        for folder in ["pki", "pki/etcd", "lib"] {
            for entry in fs::read_dir(self.path(folder)).unwrap().map(Result::unwrap) {
                if entry.file_type().unwrap().is_file() {
                    let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
                    let mode = entry.metadata().unwrap().permissions().mode() & 0o7777;
                    files.insert(name, (mode, fs::read(entry.path()).unwrap()));
                }
            }
        }
        files
    }
}

#[test]
fn an_empty_machine_gets_all_of_it_and_keys_are_for_root_only() {
    let disk = Disk::new();
    disk.load().unwrap();
    let modes: Vec<(String, u32)> = disk.files().into_iter().map(|(name, (mode, _))| (name, mode)).collect();
    let expected = [
        ("lib/repository.key", 0o600),
        ("pki/ca.crt", 0o644),
        ("pki/ca.key", 0o600),
        ("pki/etcd/ca.crt", 0o644),
        ("pki/etcd/ca.key", 0o600),
        ("pki/front-proxy-ca.crt", 0o644),
        ("pki/front-proxy-ca.key", 0o600),
        ("pki/sa.key", 0o600),
        ("pki/sa.pub", 0o644),
    ];
    assert_eq!(modes, expected.map(|(name, mode)| (name.to_owned(), mode)));
}

#[test]
fn a_second_run_changes_nothing() {
    let disk = Disk::new();
    let made = disk.load().unwrap();
    let before = disk.files();
    let loaded = disk.load().unwrap();
    assert_eq!(disk.files(), before);
    assert_eq!(loaded.kubernetes.certificate(), made.kubernetes.certificate());
    assert_eq!(loaded.repository.fingerprint(), made.repository.fingerprint());
}

#[test]
fn half_a_pair_is_refused_with_both_names_and_left_alone() {
    for (missing, message) in [
        ("pki/ca.crt", "pki/ca.key exists, but its certificate pki/ca.crt does not"),
        ("pki/ca.key", "pki/ca.crt exists, but its private key pki/ca.key does not"),
        ("pki/etcd/ca.crt", "pki/etcd/ca.key exists, but its certificate pki/etcd/ca.crt does not"),
        ("pki/sa.key", "pki/sa.pub exists, but its private key pki/sa.key does not"),
    ] {
        let disk = Disk::new();
        disk.load().unwrap();
        fs::remove_file(disk.path(missing)).unwrap();
        let before = disk.files();
        let error = disk.load().err().unwrap().to_string();
        assert_eq!(error.replace(&format!("{}/", disk.0.path().display()), ""), message);
        assert_eq!(disk.files(), before, "{missing}");
    }
}

#[test]
fn a_run_that_was_killed_half_way_is_finished() {
    let disk = Disk::new();
    let whole = disk.load().unwrap();
    // Killed before the key got its name.
    fs::rename(disk.path("pki/ca.key"), disk.path("pki/ca.key.staged")).unwrap();
    assert_eq!(disk.load().unwrap().kubernetes.key(), whole.kubernetes.key());
    assert!(!disk.path("pki/ca.key.staged").exists());
    // Killed before the certificate was written: that key is of no use to anybody.
    fs::rename(disk.path("pki/ca.key"), disk.path("pki/ca.key.staged")).unwrap();
    fs::remove_file(disk.path("pki/ca.crt")).unwrap();
    assert_ne!(disk.load().unwrap().kubernetes.key(), whole.kubernetes.key());
    assert!(!disk.path("pki/ca.key.staged").exists());
    // Killed between the two halves of the service account key.
    fs::remove_file(disk.path("pki/sa.pub")).unwrap();
    assert!(disk.load().unwrap().service_account.public() == whole.service_account.public());
}

#[test]
fn halves_of_different_pairs_are_refused() {
    let (one, other) = (Disk::new(), Disk::new());
    one.load().unwrap();
    other.load().unwrap();
    fs::copy(other.path("pki/ca.key"), one.path("pki/ca.key")).unwrap();
    assert!(matches!(one.load().err(), Some(StoreError::Authority { source: AuthorityError::Mismatch, .. })));
    fs::copy(one.path("pki/sa.pub"), other.path("pki/sa.pub")).unwrap();
    assert!(matches!(other.load().err(), Some(StoreError::ServiceAccountMismatch { .. })));
}

#[test]
fn a_staged_key_left_behind_by_a_finished_pair_is_removed() {
    let disk = Disk::new();
    let whole = disk.load().unwrap();
    // Killed between the two halves of promoting: both names are the same file.
    fs::hard_link(disk.path("pki/ca.key"), disk.path("pki/ca.key.staged")).unwrap();
    assert_eq!(disk.load().unwrap().kubernetes.key(), whole.kubernetes.key());
    assert!(!disk.path("pki/ca.key.staged").exists());
}
