//! The packages of the shipped component list, as lintian sees them. Their programs are small ones, unless `METALFORM_LONG=1`
//! and `METALFORM_BUNDLE` names the directory of a bundle.

use std::fs;
use std::path::{Path, PathBuf};

use metalform::bundle::component::{Component, ReleaseArtefact, Sources};
use metalform::bundle::component_build::SourceMode;
use metalform::bundle::component_list;
use metalform::bundle::digest::Sha256;
use metalform::model::platform::Architecture;
use tokio::process::Command;

use super::TestRun;
use super::rpm_bundle::{files_below, run};

/// Debian's archive accepts no zstd, which dpkg of Debian 12 and later reads, and which takes a tenth of the time of xz.
const ON_PURPOSE: &str = "malformed-deb-archive";

const NO_MANUAL: &str = "W: kubelet: no-manual-page";

/// The component with one program as each of its binaries, and without images.
fn with_program(component: &Component, (url, program): (&str, &[u8])) -> Component {
    let artefact = |binary: &str| ReleaseArtefact {
        url: url.to_owned(),
        sha256_url: None,
        sha256: [(Architecture::Amd64, Sha256::of(program))].into(),
        binary: Some(binary.to_owned()),
        members: [].into(),
    };
    let packaged = Component { images: Vec::new(), ..component.clone() };
    let release = packaged.binaries().into_iter().map(artefact).collect();
    let sources = Sources { release, go: None, program: None };
    Component { sources, ..packaged }
}

async fn program(directory: &Path) -> Vec<u8> {
    fs::write(directory.join("program.go"), "package main\n\nfunc main() {}\n").unwrap();
    let mut command = Command::new("go");
    command.args(["build", "-ldflags", "-s -w", "-o", "program", "program.go"]).env("CGO_ENABLED", "0");
    let (built, lines) = run(command.env("GOARCH", "amd64").current_dir(directory)).await;
    assert!(built, "{lines}");
    fs::read(directory.join("program")).unwrap()
}

/// The errors of lintian, which has seen a package if it finds a fault that it has.
pub async fn lint(packages: &[PathBuf], fault: &str) -> Vec<String> {
    let mut command = Command::new("lintian");
    command.args(["--allow-root", "--tag-display-limit", "0", "--suppress-tags", ON_PURPOSE]);
    let (_, lines) = run(command.args(packages)).await;
    assert!(lines.contains(fault), "lintian has seen no package: {lines}");
    lines.lines().filter(|line| line.starts_with("E: ")).map(str::to_owned).collect()
}

#[tokio::test]
async fn lintian_finds_no_error_in_a_package() {
    let bundle = TestRun::new().await;
    let program = program(bundle.directory.path()).await;
    bundle.put("/program", &program);
    let shipped = component_list::parse("shipped", component_list::SHIPPED).unwrap();
    let components = shipped.components.iter().filter(|component| !component.packages.is_empty());
    let url = bundle.url("/program");
    let components: Vec<Component> =
        components.map(|component| with_program(component, (&url, &program))).collect();
    let text = serde_saphyr::to_string(&components).unwrap();
    let lines = bundle.build(&text, SourceMode::Release).await;
    assert!(lines.contains("bundle written"), "{lines}");
    let packages = files_below(&bundle.output().join("apt/pool/all"));
    assert_eq!(packages.len(), components.iter().flat_map(|component| &component.packages).count());
    assert_eq!(lint(&packages, NO_MANUAL).await, [""; 0]);
}

#[tokio::test]
async fn lintian_finds_no_error_in_a_real_package() {
    let directory = std::env::var("METALFORM_BUNDLE").ok();
    let is_long = std::env::var("METALFORM_LONG").is_ok_and(|value| value == "1");
    let Some(directory) = directory.filter(|_| is_long) else { return };
    let packages = files_below(&Path::new(&directory).join("apt/pool/all"));
    assert_eq!(lint(&packages, NO_MANUAL).await, [""; 0]);
}
