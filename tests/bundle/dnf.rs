//! dnf with the RPM repository of a bundle: what it installs, and what it refuses.

use std::fs;

use metalform::pki::openpgp::RepositoryKey;
use tokio::process::Command;

use super::TestRun;
use super::rpm_bundle::{
    PACKAGE, REPOSITORY, ROCKY, bundle, document, files_below, key, run, signatures, signed_bundle,
};

/// A host as dnf sees it: a root with nothing but our repository as package source.
struct Host {
    root: tempfile::TempDir,
}

impl Host {
    fn new(uri: &str, key: &RepositoryKey) -> Self {
        Self::with_keys(uri, &key.public_armor().unwrap(), false)
    }

    /// `keys` are trusted; with `gpgcheck`, each package must be signed with one of them.
    fn with_keys(uri: &str, keys: &str, gpgcheck: bool) -> Self {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name).display().to_string();
        let gpgcheck = u8::from(gpgcheck);
        fs::write(at("key.asc"), keys).unwrap();
        let configuration = format!(
            "[main]\nreposdir=/dev/null\ncachedir={}\nlogdir={}\npersistdir={}\ngpgcheck={gpgcheck}\nretries=1\n\
             [metalform]\nname=metalform\nbaseurl={uri}\nrepo_gpgcheck=1\ngpgkey=file://{}\n",
            at("cache"),
            at("log"),
            at("state"),
            at("key.asc")
        );
        fs::write(at("dnf.conf"), configuration).unwrap();
        Self { root }
    }

    /// Without root in a user namespace: dnf changes its root directory.
    async fn install(&self, package: &str) -> (bool, String) {
        let mut command = Command::new("dnf");
        if !rustix::process::geteuid().is_root() {
            command = Command::new("unshare");
            command.args(["--map-root-user", "dnf"]);
        }
        let root = self.root.path();
        command.arg("--config").arg(root.join("dnf.conf")).arg("--installroot").arg(root.join("root"));
        command.args([
            "--releasever=9",
            "--forcearch=x86_64",
            "--noplugins",
            "--assumeyes",
            "install",
            package,
        ]);
        run(&mut command).await
    }

    fn has(&self, path: &str) -> bool {
        self.root.path().join("root").join(path).exists()
    }
}

#[tokio::test]
async fn dnf_installs_from_a_file_uri_what_it_can_verify() {
    let bundle = bundle(ROCKY).await;
    for (path, signed) in signatures(&bundle, &key(1)) {
        fs::write(bundle.output().join(path), signed).unwrap();
    }
    let host = Host::new(&format!("file://{}{REPOSITORY}", bundle.output().display()), &key(1));
    let (installed, said) = host.install("kubelet").await;
    assert!(installed, "{said}");
    for path in ["usr/bin/kubelet", "usr/lib/systemd/system/kubelet.service", "opt/cni/bin/bridge"] {
        assert!(host.has(path), "{path}: {said}");
    }
    let text = fs::read_to_string(host.root.path().join("root/usr/bin/kubelet")).unwrap();
    assert_eq!(text, "tool of version one");
}

#[tokio::test]
async fn dnf_verifies_packages_that_are_signed() {
    let (index, packages) = (key(1).public_armor().unwrap(), key(3).public_armor().unwrap());
    let both = format!("{index}{packages}");
    let signed = signed_bundle(ROCKY, key(3)).await;
    let own = fs::read_to_string(signed.output().join("rpm/keys/packages.asc")).unwrap();
    assert_eq!(own, packages);
    let unsigned = bundle(ROCKY).await;
    // Keys, and whether the kubelet is installed of it.
    for (bundle, keys, expected) in
        [(&signed, &both, true), (&signed, &index, false), (&unsigned, &both, false)]
    {
        for (path, signed) in signatures(bundle, &key(1)) {
            fs::write(bundle.output().join(path), signed).unwrap();
        }
        let uri = format!("file://{}{REPOSITORY}", bundle.output().display());
        let host = Host::with_keys(&uri, keys, true);
        let (installed, said) = host.install("kubelet").await;
        assert_eq!((installed, host.has("usr/bin/kubelet")), (expected, expected), "{said}");
    }
}

/// What is between the bundle and a host: all files of the repository over HTTP, and one of them altered.
async fn served(bundle: &TestRun, signed_with: &RepositoryKey) {
    for file in files_below(&bundle.output().join("rpm")) {
        let path = format!("/{}", file.strip_prefix(bundle.output()).unwrap().display());
        bundle.put(&path, fs::read(&file).unwrap());
    }
    for (path, signed) in signatures(bundle, signed_with) {
        bundle.put(&format!("/{path}"), signed);
    }
}

#[tokio::test]
async fn dnf_refuses_what_was_altered_on_the_way() {
    type Alter = fn(&TestRun);
    let cases: [(&str, Alter, Option<&str>); 6] = [
        ("nothing", |_| (), None),
        (
            "the signature is missing",
            |bundle| bundle.remove(&format!("{REPOSITORY}/repodata/repomd.xml.asc")),
            Some("repomd.xml.asc"),
        ),
        (
            "another key signed it",
            |bundle| {
                let (path, signed) = signatures(bundle, &key(2)).remove(0);
                bundle.put(&format!("/{path}"), signed);
            },
            Some("GPG"),
        ),
        (
            "the index is not what was signed",
            |bundle| {
                bundle.alter(&format!("{REPOSITORY}/repodata/repomd.xml"), |text| text.push(b'\n'));
            },
            Some("GPG"),
        ),
        (
            "a document of the index is not what the index names",
            |bundle| {
                let repository = bundle.output().join(REPOSITORY.trim_start_matches('/'));
                let primary = document(&repository, "primary");
                let name = primary.file_name().unwrap().to_string_lossy().into_owned();
                bundle.alter(&format!("{REPOSITORY}/repodata/{name}"), |content| {
                    *content.last_mut().unwrap() ^= 1;
                });
            },
            Some("hecksum"),
        ),
        (
            "the package was replaced",
            |bundle| {
                // The same size and header: only the digest differs.
                bundle.alter(PACKAGE, |content| *content.last_mut().unwrap() ^= 1);
            },
            Some("hecksum"),
        ),
    ];
    for (name, alter, expected) in cases {
        let bundle = bundle(ROCKY).await;
        served(&bundle, &key(1)).await;
        alter(&bundle);
        let host = Host::new(&bundle.url(REPOSITORY), &key(1));
        let (installed, said) = host.install("kubelet").await;
        match expected {
            None => assert!(installed && host.has("usr/bin/kubelet"), "{name}: {said}"),
            Some(reason) => {
                assert!(!installed && !host.has("usr/bin/kubelet"), "{name}: {said}");
                assert!(said.contains(reason), "{name}: {said}");
            }
        }
    }
}
