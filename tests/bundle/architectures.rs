//! Bundles for two architectures: what they contain for each, and that the parts of one are those of a bundle for it alone.

use std::io::Read;
use std::process::Command;

use super::*;

/// A small program as image and package.
const PAUSE: &str = r#"
  - name: pause
    version: 3.10.1
    sources: { go: { mains: { pause: "package main\n\nfunc main() { select {} }\n" } } }
    images:
      - { reference: "example.org/pause:{version}", files: { /pause: pause }, entrypoint: [/pause] }
    packages:
      - { name: pause, description: A pause, files: { /usr/bin/pause: pause } }
"#;

/// `e_machine` of the two (ELF specification, `EM_X86_64` and `EM_AARCH64`).
const MACHINES: [(&str, u16); 2] = [("amd64", 62), ("arm64", 183)];

async fn run() -> TestRun {
    let systems = "{distribution: debian, release: '13', suite: trixie, packages: []}, \
                   {distribution: rocky, release: '9', suite: '9', packages: []}";
    TestRun { architectures: "amd64, arm64", ..TestRun::of_systems(systems).await }
}

fn machine(program: &[u8]) -> u16 {
    assert_eq!(program[..4], *b"\x7fELF");
    u16::from_le_bytes([program[18], program[19]])
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The file of that name in an archive.
fn unpacked(archive: impl Read, name: &str) -> Vec<u8> {
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        if entry.path().unwrap().ends_with(name) {
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            return content;
        }
    }
    unreachable!("no {name}")
}

#[tokio::test]
async fn each_architecture_has_its_image_and_its_package() {
    let run = TestRun { architectures: "amd64", ..run().await };
    run.build(PAUSE, SourceMode::Go).await;
    let alone = Bundle::read(&run.output()).unwrap();
    let run = TestRun { architectures: "amd64, arm64", ..run };
    let said = run.build(PAUSE, SourceMode::Go).await;
    insta::assert_snapshot!(said.rsplit_once('\n').unwrap().0, @r"
    pause (amd64): unchanged
    pause (arm64): from go: source in the list
    pause (arm64): done
    ");
    assert_eq!(run.verify(PAUSE), [""; 0]);

    let (bundle, blobs) = (Bundle::read(&run.output()).unwrap(), run.output().join("images/blobs/sha256"));
    let blob =
        |of: &serde_json::Value| blobs.join(of["digest"].as_str().unwrap().trim_start_matches("sha256:"));
    let index = json(&blobs.join(bundle.images["example.org/pause:3.10.1"].as_str()));
    let manifests = index["manifests"].as_array().unwrap();
    assert_eq!(manifests.len(), 2);
    assert_eq!(manifests[0]["digest"], format!("sha256:{}", alone.images["example.org/pause:3.10.1"]));
    for (described, (architecture, expected)) in manifests.iter().zip(MACHINES) {
        assert_eq!(described["platform"], serde_json::json!({ "architecture": architecture, "os": "linux" }));
        let manifest = json(&blob(described));
        assert_eq!(json(&blob(&manifest["config"]))["architecture"], architecture);
        let layer = File::open(blob(&manifest["layers"][0])).unwrap();
        assert_eq!(machine(&unpacked(zstd::Decoder::new(layer).unwrap(), "pause")), expected);

        let package = run.output().join(format!("apt/pool/all/pause_3.10.1_{architecture}.deb"));
        let dpkg = |option: &str, field: &[&str]| {
            let output = Command::new("dpkg-deb").arg(option).arg(&package).args(field).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            output.stdout
        };
        assert_eq!(dpkg("--field", &["Architecture"]), format!("{architecture}\n").as_bytes());
        assert_eq!(machine(&unpacked(dpkg("--fsys-tarfile", &[]).as_slice(), "usr/bin/pause")), expected);
        assert_eq!(with_apt(&run, architecture), format!("pause_3.10.1_{architecture}.deb"));
        for platform in ["debian-13", "rocky-9"] {
            let platform = format!("{platform}-{architecture}").parse().unwrap();
            let packages = bundle.packages.iter().filter(|package| package.platforms.contains(&platform));
            assert_eq!(packages.count(), 1, "{platform}");
        }
    }
    if let Ok(output) = Command::new("skopeo")
        .args(["--override-arch=arm64", "inspect", "--format={{.Architecture}}"])
        .arg(format!("oci:{}:example.org/pause:3.10.1", run.output().join("images").display()))
        .output()
    {
        assert_eq!(String::from_utf8_lossy(&output.stdout), "arm64\n", "{output:?}");
    }
}

/// The file that apt would install on a host of this architecture.
fn with_apt(run: &TestRun, architecture: &str) -> String {
    let root = run.directory.path().join(format!("apt-{architecture}"));
    fs::create_dir_all(root.join("lists/partial")).unwrap();
    fs::create_dir_all(root.join("cache/archives/partial")).unwrap();
    fs::write(root.join("status"), "").unwrap();
    let source = format!("deb [trusted=yes] file:{} debian-13 main\n", run.output().join("apt").display());
    fs::write(root.join("sources.list"), source).unwrap();
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        let at = |name: &str| root.join(name).display().to_string();
        for (key, value) in [
            ("Dir::State::lists", at("lists")),
            ("Dir::State::status", at("status")),
            ("Dir::Cache", at("cache")),
            ("Dir::Etc::SourceList", at("sources.list")),
            ("Dir::Etc::SourceParts", "/dev/null".to_owned()),
            ("APT::Architecture", architecture.to_owned()),
            ("APT::Architectures", architecture.to_owned()),
            ("APT::Sandbox::User", String::new()),
        ] {
            command.args(["-o", &format!("{key}={value}")]);
        }
        let output = command.args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    apt(&["update"]);
    let found = apt(&["-qq", "--print-uris", "install", "pause"]);
    let url = found.split('\'').nth(1).unwrap().to_owned();
    url.rsplit('/').next().unwrap().to_owned()
}

#[tokio::test]
async fn an_index_is_pushed_with_its_manifests_and_verified_with_them() {
    let run = run().await;
    run.build(PAUSE, SourceMode::Go).await;
    let bundle = Bundle::read(&run.output()).unwrap();
    let (shelf, socket) = registry_below(run.directory.path());
    for expected in [1, 0] {
        let pushed = bundle_images::load(&run.output(), &bundle, &socket, &|_, _| ()).await.unwrap();
        assert_eq!(pushed, expected);
    }
    let name = |kind: &str, of: &str| format!("/v2/example.org/pause/{kind}/{of}");
    let digest = bundle.images["example.org/pause:3.10.1"].to_string();
    let blobs = run.output().join("images/blobs/sha256");
    assert_eq!(shelf.lock().unwrap()[&name("manifests", "3.10.1")], fs::read(blobs.join(&digest)).unwrap());
    let manifests = json(&blobs.join(&digest))["manifests"].as_array().unwrap().clone();
    for described in &manifests {
        let digest = described["digest"].as_str().unwrap();
        let manifest: serde_json::Value =
            serde_json::from_slice(&shelf.lock().unwrap()[&name("manifests", digest)]).unwrap();
        for blob in [&manifest["config"], &manifest["layers"][0]] {
            let blob = blob["digest"].as_str().unwrap();
            assert!(shelf.lock().unwrap().contains_key(&name("blobs", blob)), "{blob}");
        }
    }

    let only_amd64 = TestRun { architectures: "amd64", ..run };
    only_amd64.build(PAUSE, SourceMode::Go).await;
    let run = TestRun { architectures: "amd64, arm64", ..only_amd64 };
    let found = run.verify(PAUSE);
    assert!(found.contains(&"image example.org/pause:3.10.1 for arm64: missing".to_owned()), "{found:?}");
    assert!(found.contains(&"debian-13-arm64: no package index".to_owned()), "{found:?}");
    run.build(PAUSE, SourceMode::Go).await;
    let arm64 = manifests[1]["digest"].as_str().unwrap().trim_start_matches("sha256:").to_owned();
    fs::remove_file(blobs.join(&arm64)).unwrap();
    let expected = format!("images/blobs/sha256/{arm64} (image example.org/pause:3.10.1): missing");
    assert_eq!(run.verify(PAUSE), [expected, "image example.org/pause:3.10.1 for arm64: missing".to_owned()]);
}

/// A long test: half an hour of two processors. Go needs no other compiler for it.
#[tokio::test]
async fn kubernetes_is_built_for_arm64_by_go() {
    if std::env::var_os("METALFORM_LONG").is_none_or(|value| value.is_empty()) {
        return;
    }
    let mut list = component_list::parse("shipped", component_list::SHIPPED).unwrap();
    list.components.retain(|component| component.name == "kubernetes");
    list.architectures = vec!["arm64".parse().unwrap()];
    list.operating_systems.iter_mut().for_each(|system| system.packages.clear());
    let directory = tempfile::tempdir().unwrap();
    let request = BuildRequest {
        list,
        output: directory.path().join("out"),
        cache: directory.path().join("cache"),
        source: SourceMode::Go,
        program: OwnProgram::default(),
        package_key: None,
        archive: None,
        pinned: false,
        refresh: false,
        downloads: DownloadLimits::new(NonZeroUsize::MIN),
        now: jiff::Timestamp::from_second(1_800_000_000).unwrap(),
    };
    let bundle = build::build(&request, &|_| ()).await.unwrap();
    let blobs = request.output.join("images/blobs/sha256");
    assert_eq!(bundle.images.len(), 3);
    for (reference, digest) in &bundle.images {
        let manifest = json(&blobs.join(digest.as_str()));
        let layer =
            manifest["layers"][0]["digest"].as_str().unwrap().trim_start_matches("sha256:").to_owned();
        let name = reference.rsplit('/').next().unwrap().split(':').next().unwrap();
        let layer = zstd::Decoder::new(File::open(blobs.join(layer)).unwrap()).unwrap();
        assert_eq!(machine(&unpacked(layer, name)), MACHINES[1].1, "{reference}");
    }
    assert_eq!(bundle.packages.len(), 3);
    for package in &bundle.packages {
        let path = request.output.join(&package.path);
        let output = Command::new("dpkg-deb").arg("--fsys-tarfile").arg(path).output().unwrap();
        assert_eq!(
            machine(&unpacked(output.stdout.as_slice(), &package.name)),
            MACHINES[1].1,
            "{}",
            package.name
        );
    }
}
