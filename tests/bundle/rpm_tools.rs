//! The RPM repository of a bundle with rpm, rpmlint and createrepo_c.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use metalform::bundle::component_build::SourceMode;
use metalform::bundle::manifest::Bundle;
use quick_xml::events::Event;
use tokio::process::Command;

use super::rpm_bundle::{BOTH, KUBELET, PACKAGE, REPOSITORY, ROCKY, bundle, document, files_below, run};

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
    Size        : 11729
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
    drwxr-xr-x    2 root     root                        0 Jan  1  2026 /usr/share/licenses/kubelet
    -rw-r--r--    1 root     root                    11358 Jan  1  2026 /usr/share/licenses/kubelet/LICENSE
    -rw-r--r--    1 root     root                      316 Jan  1  2026 /usr/share/licenses/kubelet/copyright
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
    assert_eq!(lint(&bundle.output().join("rpm/pool"), 2).await, [""; 0]);
}

/// The errors of rpmlint, without those of what is on purpose.
pub async fn lint(packages: &Path, count: usize) -> Vec<String> {
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
    assert!(said.contains(&format!("{count} packages and 0 specfiles checked")), "{said}");
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
