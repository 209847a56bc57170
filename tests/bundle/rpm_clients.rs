//! The RPM repository of a bundle with rpm, dnf and createrepo_c: what they read in it, and what they refuse.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use jiff::Timestamp;
use metalform::bundle::component_build::SourceMode;
use metalform::bundle::format::RepositoryIndex;
use metalform::bundle::manifest::Bundle;
use metalform::pki::openpgp::RepositoryKey;
use quick_xml::events::Event;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::process::Command;

use super::TestRun;

const ROCKY: &str = "{distribution: rocky, release: '9', suite: '9/BaseOS/x86_64/os', packages: []}";
const BOTH: &str = "{distribution: rocky, release: '9', suite: a, packages: []}, \
     {distribution: almalinux, release: '9', suite: a, packages: []}";

const REPOSITORY: &str = "/rpm/rocky-9-amd64";
const PACKAGE: &str = "/rpm/pool/all/kubelet-1.35.4-1.x86_64.rpm";

/// The kubelet and what it depends on, of which no program runs.
const KUBELET: &str = r#"
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

fn key(seed: u64) -> RepositoryKey {
    RepositoryKey::create("metalform repository (test)", now(), &mut StdRng::seed_from_u64(seed)).unwrap()
}

async fn bundle(systems: &'static str) -> TestRun {
    let run = TestRun::of_systems(systems).await;
    let said = run.build(KUBELET, SourceMode::Release).await;
    assert!(said.contains("bundle written"), "{said}");
    run
}

/// The signatures of the bundle's indexes, as the bootstrap node makes them: the path below the bundle, and the text.
fn signatures(run: &TestRun, key: &RepositoryKey) -> Vec<(String, String)> {
    let sign = |paths: metalform::bundle::format::IndexPaths| {
        let text = fs::read_to_string(run.output().join(&paths.unsigned)).unwrap();
        let (signed_path, signature) = (paths.signed, paths.signature);
        let index = RepositoryIndex { signed_path, text, signature };
        let signed = index.sign(key, now()).unwrap();
        index.verify(key, &signed).unwrap();
        (index.signed_path, signed)
    };
    Bundle::read(&run.output()).unwrap().indexes().into_iter().map(sign).collect()
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] });
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    files
}

/// Runs a program to its end: whether it succeeded, and all that it wrote.
async fn run(command: &mut Command) -> (bool, String) {
    let output = command.env("LC_ALL", "C").kill_on_drop(true).output().await.unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

/// A host as dnf sees it: a root with nothing but our repository as package source.
struct Host {
    root: tempfile::TempDir,
}

impl Host {
    fn new(uri: &str, key: &RepositoryKey) -> Self {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name).display().to_string();
        fs::write(at("key.asc"), key.public_armor().unwrap()).unwrap();
        let configuration = format!(
            "[main]\nreposdir=/dev/null\ncachedir={}\nlogdir={}\npersistdir={}\ngpgcheck=0\nretries=1\n\
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
                // The same size and a valid package: only the digest differs.
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

#[tokio::test]
async fn rpm_shows_the_fields_and_files_of_a_package() {
    let bundle = bundle(ROCKY).await;
    let package = bundle.output().join(PACKAGE.trim_start_matches('/'));
    let database = tempfile::tempdir().unwrap();
    let rpm = async |arguments: &[&str]| {
        let mut command = Command::new("rpm");
        command.arg("--dbpath").arg(database.path()).args(arguments).arg(&package).env("TZ", "UTC");
        run(&mut command).await
    };
    let (_, said) = rpm(&["-qip"]).await;
    let fields: Vec<&str> = said.lines().map(str::trim_end).collect();
    insta::assert_snapshot!(fields.join("\n"), @r"
    Name        : kubelet
    Version     : 1.35.4
    Release     : 1
    Architecture: x86_64
    Install Date: (not installed)
    Group       : System Environment/Base
    Size        : 55
    License     : Apache-2.0
    Signature   : (none)
    Source RPM  : (none)
    Build Date  : Thu Jan  1 00:00:00 2026
    Build Host  : reproducible
    Packager    : metalform <packages@metalform.dev>
    Vendor      : metalform
    URL         : https://kubernetes.io
    Summary     : Kubernetes node agent
    Description :
    Kubernetes node agent.
    ");
    let (_, said) = rpm(&["-qlvp"]).await;
    insta::assert_snapshot!(said, @r"
    -rwxr-xr-x    1 root     root                       19 Jan  1  2026 /usr/bin/kubelet
    -rw-r--r--    1 root     root                       36 Jan  1  2026 /usr/lib/systemd/system/kubelet.service
    ");
    let (_, said) = rpm(&["-qp", "--requires", "--provides", "--conflicts", "--obsoletes"]).await;
    insta::assert_snapshot!(said, @r"
    kubernetes-cni >= 1.0
    rpmlib(CompressedFileNames) <= 3.0.4-1
    rpmlib(FileDigests) <= 4.6.0-1
    rpmlib(PayloadFilesHavePrefix) <= 4.0-1
    rpmlib(PayloadIsZstd) <= 5.4.18-1
    kubelet = 1.35.4-1
    kubelet(x86-64) = 1.35.4-1
    node-agent = 1.35.4-1
    node-agent
    node-agent < 1.35.4-1
    ");
    let (_, said) = rpm(&["-qp", "--scripts"]).await;
    assert_eq!(said, "", "as of the Debian package");
    let (whole, said) = rpm(&["-K"]).await;
    assert!(whole && said.trim_end().ends_with("digests OK"), "{said}");
    assert_eq!(lint(&bundle.output().join("rpm/pool")).await, [""; 0]);
}

/// The errors of rpmlint, without those of what is on purpose.
async fn lint(packages: &Path) -> Vec<String> {
    let on_purpose = [
        // The index is signed.
        "no-signature",
        // The tests' programs are texts.
        "no-binary",
        "script-without-shebang",
        // Where every container runtime looks for plugins.
        "dir-or-file-in-opt",
        // Taken for a translation into a language cni.
        "no-dependency-on locales-cni",
    ];
    let configuration = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    fs::write(configuration.path(), format!("Filters = {on_purpose:?}\n")).unwrap();
    let mut command = Command::new("rpmlint");
    let (_, said) = run(command.arg("--config").arg(configuration.path()).arg(packages)).await;
    assert!(said.contains("2 packages and 0 specfiles checked"), "{said}");
    said.lines().filter(|line| line.contains(": E: ")).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_indexes_mean_what_those_of_createrepo_mean() {
    let bundle = bundle(ROCKY).await;
    let repository = tempfile::tempdir().unwrap();
    for file in files_below(&bundle.output().join("rpm/pool")) {
        fs::copy(&file, repository.path().join(file.file_name().unwrap())).unwrap();
    }
    let mut command = Command::new("createrepo_c");
    let (made, said) =
        run(command.args(["--no-database", "--quiet", "--general-compress-type=gz"]).arg(repository.path()))
            .await;
    assert!(made, "{said}");
    let own = bundle.output().join(REPOSITORY.trim_start_matches('/'));
    for kind in ["primary", "filelists", "other"] {
        let (ours, theirs) = (facts(&own, kind), facts(repository.path(), kind));
        assert!(ours.len() > 5, "{ours:?}");
        assert_eq!(ours, theirs, "{kind}");
    }
}

#[tokio::test]
async fn platforms_share_packages_and_have_a_repository_each() {
    let bundle = bundle(BOTH).await;
    let manifest = Bundle::read(&bundle.output()).unwrap();
    let signed: Vec<String> = manifest.indexes().into_iter().map(|index| index.signed).collect();
    let asc = |platform: &str| format!("rpm/{platform}/repodata/repomd.xml.asc");
    assert_eq!(signed, [asc("almalinux-9-amd64"), asc("rocky-9-amd64")]);
    let packages = manifest.files.keys().filter(|path| path.ends_with(".rpm")).collect::<Vec<_>>();
    assert_eq!(
        packages,
        ["rpm/pool/all/kubelet-1.35.4-1.x86_64.rpm", "rpm/pool/all/kubernetes-cni-1.35.4-1.x86_64.rpm"]
    );
    for platform in ["almalinux-9-amd64", "rocky-9-amd64"] {
        let versions = manifest.packages_of(&platform.parse().unwrap());
        assert_eq!(versions["kubelet"], "1.35.4-1");
    }
    let records = |platform: &str| {
        let of_platform =
            manifest.files.iter().filter(|(path, _)| path.starts_with(&format!("rpm/{platform}/")));
        of_platform.map(|(_, record)| record.clone()).collect::<Vec<_>>()
    };
    assert_eq!(records("almalinux-9-amd64").len(), 4);
    assert_eq!(records("almalinux-9-amd64"), records("rocky-9-amd64"), "the same bytes of the same packages");
    assert_eq!(bundle.verify(KUBELET), [""; 0]);
    bundle.build(&KUBELET.replace("(>= 1.0)", "(>= 2)"), SourceMode::Release).await;
    let unmet = "package kubelet depends on kubernetes-cni >= 2, which is missing";
    assert_eq!(
        bundle.verify(KUBELET),
        [format!("almalinux-9-amd64: {unmet}"), format!("rocky-9-amd64: {unmet}")]
    );
}

/// The file of a document of a repository.
fn document(repository: &Path, kind: &str) -> PathBuf {
    let mut files = files_below(&repository.join("repodata"));
    files.retain(|file| file.to_string_lossy().ends_with(&format!("-{kind}.xml.gz")));
    let [file] = &files[..] else { panic!("{kind}: {files:?}") };
    file.clone()
}

/// Every element of a document with its package, attributes and text, without those that say where a package is and
/// when its file was written.
fn facts(repository: &Path, kind: &str) -> BTreeSet<String> {
    let mut text = String::new();
    GzDecoder::new(fs::File::open(document(repository, kind)).unwrap()).read_to_string(&mut text).unwrap();
    let mut reader = quick_xml::Reader::from_str(&text);
    reader.config_mut().expand_empty_elements = true;
    let (mut facts, mut path, mut content, mut package) = (BTreeSet::new(), Vec::new(), String::new(), 0);
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) => {
                let name = String::from_utf8_lossy(start.name().as_ref().as_ref()).into_owned();
                package += usize::from(name == "package");
                let mut attributes: Vec<String> = start
                    .attributes()
                    .map(|attribute| {
                        let attribute = attribute.unwrap();
                        let key = String::from_utf8_lossy(attribute.key.as_ref().as_ref()).into_owned();
                        format!("{key}={}", String::from_utf8_lossy(attribute.value.as_ref().as_ref()))
                    })
                    .filter(|text| !(name == "time" && text.starts_with("file=")) && name != "location")
                    .collect();
                attributes.sort();
                path.push(format!("{name}[{}]", attributes.join(" ")));
                content.clear();
            }
            Event::Text(part) => content.push_str(&String::from_utf8_lossy(part.as_ref().as_ref())),
            Event::GeneralRef(part) => {
                content.push_str(&format!("&{};", String::from_utf8_lossy(part.as_ref().as_ref())));
            }
            Event::End(_) => {
                facts.insert(format!("{package} {} {}", path.join("/"), content.trim()));
                path.pop();
                content.clear();
            }
            Event::Eof => return facts,
            _ => {}
        }
    }
}
