use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use rand::SeedableRng;
use rand::rngs::StdRng;
use tempfile::TempDir;

use super::*;

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

/// The disk of one machine; paths are below `/etc/kubernetes`, but for the repository's key.
struct Disk(TempDir);

impl Disk {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn layout(&self) -> Layout {
        Layout::below(self.0.path())
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join("etc/kubernetes").join(file)
    }

    /// With other keys in every call.
    fn create(&self) -> Result<Authorities, AuthorityFilesError> {
        create(&self.layout(), NOW, &mut StdRng::seed_from_u64(rand::random()))
    }

    fn load(&self) -> Result<Authorities, AuthorityFilesError> {
        load(&self.layout())
    }

    /// Paths below the root that do not exist and would be created.
    fn absent(&self) -> Result<Vec<String>, AuthorityFilesError> {
        let root = self.0.path().join("etc/kubernetes");
        let absent = absent(&self.layout())?;
        Ok(absent
            .iter()
            .filter_map(|path| path.strip_prefix(&root).ok()?.to_str().map(str::to_owned))
            .collect())
    }

    /// Mode and content of every file.
    fn files(&self) -> BTreeMap<String, (u32, Vec<u8>)> {
        let mut files = BTreeMap::new();
        for folder in ["etc/kubernetes/pki", "etc/kubernetes/pki/etcd", "var/lib/metalform"] {
            for entry in fs::read_dir(self.0.path().join(folder)).into_iter().flatten().map(Result::unwrap) {
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
    assert_eq!(disk.absent().unwrap().len(), 8, "and the repository's key");
    disk.create().unwrap();
    let modes: Vec<(String, u32)> = disk.files().into_iter().map(|(name, (mode, _))| (name, mode)).collect();
    let expected = [
        ("etc/kubernetes/pki/ca.crt", 0o644),
        ("etc/kubernetes/pki/ca.key", 0o600),
        ("etc/kubernetes/pki/etcd/ca.crt", 0o644),
        ("etc/kubernetes/pki/etcd/ca.key", 0o600),
        ("etc/kubernetes/pki/front-proxy-ca.crt", 0o644),
        ("etc/kubernetes/pki/front-proxy-ca.key", 0o600),
        ("etc/kubernetes/pki/sa.key", 0o600),
        ("etc/kubernetes/pki/sa.pub", 0o644),
        ("var/lib/metalform/repository.key", 0o600),
    ];
    assert_eq!(modes, expected.map(|(name, mode)| (name.to_owned(), mode)));
    assert_eq!(disk.absent().unwrap(), [""; 0]);
}

#[test]
fn reading_an_empty_machine_creates_nothing() {
    let disk = Disk::new();
    let error = disk.load().err().unwrap().to_string();
    assert_eq!(
        error.replace(&format!("{}/", disk.0.path().display()), "/"),
        "/etc/kubernetes/pki/ca.key does not exist; restore it from a backup of this node, \
         or run `metalform bootstrap` if this is a new cluster"
    );
    for ca in Ca::ALL {
        assert!(matches!(load_ca(&disk.layout(), ca).err(), Some(AuthorityFilesError::Absent { .. })));
    }
    disk.absent().unwrap();
    assert_eq!(fs::read_dir(disk.0.path()).unwrap().count(), 0);
}

#[test]
fn a_second_run_changes_nothing() {
    let disk = Disk::new();
    let made = disk.create().unwrap();
    let before = disk.files();
    disk.create().unwrap();
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
        disk.create().unwrap();
        fs::remove_file(disk.path(missing)).unwrap();
        let before = disk.files();
        let root = format!("{}/", disk.path("").display()).replace("//", "/");
        let message = format!("{message}; restore both from a backup of this node");
        let errors = [disk.create().err(), disk.load().err(), disk.absent().err()];
        for error in errors {
            assert_eq!(error.unwrap().to_string().replace(&root, ""), message);
        }
        assert_eq!(disk.files(), before, "{missing}");
    }
}

#[test]
fn a_creation_that_was_killed_is_completed_by_the_next() {
    let disk = Disk::new();
    let whole = disk.create().unwrap();
    // Killed before the key was renamed.
    fs::rename(disk.path("pki/ca.key"), disk.path("pki/ca.key.staged")).unwrap();
    assert_eq!(disk.absent().unwrap(), ["pki/ca.key"]);
    assert!(matches!(disk.load().err(), Some(AuthorityFilesError::Staged { .. })));
    assert!(disk.path("pki/ca.key.staged").exists(), "loading does not complete it");
    assert_eq!(disk.create().unwrap().kubernetes.key(), whole.kubernetes.key());
    assert!(!disk.path("pki/ca.key.staged").exists());
    // Killed before the certificate was written: that key has never signed anything.
    fs::rename(disk.path("pki/ca.key"), disk.path("pki/ca.key.staged")).unwrap();
    fs::remove_file(disk.path("pki/ca.crt")).unwrap();
    assert_eq!(disk.absent().unwrap(), ["pki/ca.crt", "pki/ca.key"]);
    assert_ne!(disk.create().unwrap().kubernetes.key(), whole.kubernetes.key());
    assert!(!disk.path("pki/ca.key.staged").exists());
    // Killed between the two halves of the service account key.
    fs::remove_file(disk.path("pki/sa.pub")).unwrap();
    assert_eq!(disk.absent().unwrap(), ["pki/sa.pub"]);
    assert!(disk.load().unwrap().service_account.public() == whole.service_account.public());
    assert!(!disk.path("pki/sa.pub").exists());
    assert!(disk.create().unwrap().service_account.public() == whole.service_account.public());
    assert!(disk.path("pki/sa.pub").exists());
}

#[test]
fn halves_of_different_pairs_are_refused() {
    let (one, other) = (Disk::new(), Disk::new());
    one.create().unwrap();
    other.create().unwrap();
    fs::copy(other.path("pki/ca.key"), one.path("pki/ca.key")).unwrap();
    let mismatch = |error: Option<AuthorityFilesError>| {
        matches!(error, Some(AuthorityFilesError::Authority { source: AuthorityError::Mismatch, .. }))
    };
    assert!(mismatch(one.create().err()) && mismatch(one.load().err()));
    fs::copy(one.path("pki/sa.pub"), other.path("pki/sa.pub")).unwrap();
    let mismatch = |error| matches!(error, Some(AuthorityFilesError::ServiceAccountMismatch { .. }));
    assert!(mismatch(other.create().err()) && mismatch(other.load().err()));
}

#[test]
fn a_staged_key_of_a_complete_pair_is_removed() {
    let disk = Disk::new();
    let whole = disk.create().unwrap();
    // Killed during the rename: both names are the same file.
    fs::hard_link(disk.path("pki/ca.key"), disk.path("pki/ca.key.staged")).unwrap();
    assert_eq!(disk.load().unwrap().kubernetes.key(), whole.kubernetes.key());
    assert_eq!(disk.create().unwrap().kubernetes.key(), whole.kubernetes.key());
    assert!(!disk.path("pki/ca.key.staged").exists());
}
