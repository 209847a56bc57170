//! A bundle with an RPM repository, and what the bootstrap node adds to it.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use metalform::bundle::component_build::SourceMode;
use metalform::bundle::format::{IndexPaths, RepositoryIndex};
use metalform::bundle::manifest::Bundle;
use metalform::pki::openpgp::RepositoryKey;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::process::Command;

use super::TestRun;

pub const ROCKY: &str = "{distribution: rocky, release: '9', suite: '9/BaseOS/x86_64/os', packages: []}";
pub const BOTH: &str = "{distribution: rocky, release: '9', suite: a, packages: []}, \
     {distribution: almalinux, release: '9', suite: a, packages: []}";

pub const REPOSITORY: &str = "/rpm/rocky-9-amd64";
pub const PACKAGE: &str = "/rpm/pool/all/kubelet-1.35.4-1.x86_64.rpm";

/// The kubelet and what it depends on, of which no program runs.
pub const KUBELET: &str = r#"
  - name: kubernetes
    version: 1.35.4
    license: Apache-2.0
    homepage: https://kubernetes.io
    sources:
      release: [{ url: "SERVER/tool", sha256_url: "{url}.sha256", binary: tool }]
    packages:
      - name: kubelet
        description: Kubernetes node agent
        depends: [kubernetes-cni (>= 1.0)]
        provides: [node-agent]
        conflicts: [node-agent]
        replaces: [node-agent]
        files: { /usr/bin/kubelet: tool }
        texts: { /lib/systemd/system/kubelet.service: "[Unit]\nDescription=<kubelet> & more\n" }
      - { name: kubernetes-cni, description: "Network plugins", files: { /opt/cni/bin/bridge: tool } }
"#;

/// In the past of any machine that runs the tests: gpg accepts no key from the future.
fn now() -> Timestamp {
    Timestamp::from_second(1_767_225_600).unwrap()
}

pub fn key(seed: u64) -> RepositoryKey {
    RepositoryKey::create("metalform repository (test)", now(), &mut StdRng::seed_from_u64(seed)).unwrap()
}

pub async fn bundle(systems: &'static str) -> TestRun {
    built(TestRun::of_systems(systems).await).await
}

/// The same with signed packages.
pub async fn signed_bundle(systems: &'static str, key: RepositoryKey) -> TestRun {
    built(TestRun { package_key: Some(key), ..TestRun::of_systems(systems).await }).await
}

async fn built(run: TestRun) -> TestRun {
    let said = run.build(KUBELET, SourceMode::Release).await;
    assert!(said.contains("bundle written"), "{said}");
    run
}

/// The signatures of the bundle's indexes, as the bootstrap node makes them: the path below the bundle, and the text.
pub fn signatures(run: &TestRun, key: &RepositoryKey) -> Vec<(String, String)> {
    let sign = |paths: IndexPaths| {
        let text = fs::read_to_string(run.output().join(&paths.unsigned)).unwrap();
        let (signed_path, signature) = (paths.signed, paths.signature);
        let index = RepositoryIndex { signed_path, text, signature };
        let signed = index.sign(key, now()).unwrap();
        index.verify(key, &signed).unwrap();
        (index.signed_path, signed)
    };
    Bundle::read(&run.output()).unwrap().indexes().into_iter().map(sign).collect()
}

pub fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] });
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    files
}

/// Runs a program to its end: whether it succeeded, and all that it wrote.
pub async fn run(command: &mut Command) -> (bool, String) {
    let output = command.env("LC_ALL", "C").kill_on_drop(true).output().await.unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// The file of a document of a repository.
pub fn document(repository: &Path, kind: &str) -> PathBuf {
    let mut files = files_below(&repository.join("repodata"));
    files.retain(|file| file.to_string_lossy().ends_with(&format!("-{kind}.xml.gz")));
    assert_eq!(files.len(), 1, "{kind}: {files:?}");
    files.remove(0)
}
