//! The packages of metalform itself, built by the binary and read by the tools of distributions.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use metalform::bundle::component_list;
use metalform::bundle::manifest::Bundle;
use metalform::bundle::verify;
use tokio::process::Command;

use super::rpm_bundle::{files_below, run};
use super::{deb_tools, rpm_tools};

const SYSTEMS: &str = "architectures: [amd64, arm64]\noperating_systems:\n\
     - { distribution: debian, release: '13', suite: trixie, packages: [] }\n\
     - { distribution: rocky, release: '9', suite: 9/BaseOS/x86_64/os, packages: [] }\n";

/// The shipped component of metalform, as a list of its own.
fn list() -> String {
    let shipped = component_list::parse("shipped", component_list::SHIPPED).unwrap();
    let own: Vec<_> = shipped.components.into_iter().filter(|one| one.sources.program.is_some()).collect();
    let own = serde_saphyr::to_string(&own).unwrap();
    format!("apiVersion: metalform.dev/v1alpha1\nkind: ComponentList\n{SYSTEMS}components:\n{own}")
}

/// `metalform bundle build` in a directory. A small program takes the place of the one that runs, which has symbols.
async fn build(directory: &Path) -> String {
    let program = directory.join("program");
    if !program.exists() {
        fs::write(directory.join("program.c"), "int main(void) { return 0; }\n").unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-s", "-o", "program", "program.c"]).current_dir(directory);
        let (compiled, lines) = run(&mut compiler).await;
        assert!(compiled, "{lines}");
    }
    fs::write(directory.join("list.yaml"), list()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_metalform"));
    command.current_dir(directory).args([
        "bundle",
        "build",
        "-f",
        "list.yaml",
        "-o",
        "out",
        "--cache",
        "cache",
    ]);
    let (built, lines) = run(command.arg("--program").arg(&program)).await;
    assert!(built, "{lines}");
    lines
}

async fn output(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> String {
    let (done, lines) = run(Command::new(program).args(arguments)).await;
    assert!(done, "{lines}");
    lines
}

#[tokio::test]
async fn metalform_is_packaged_as_a_distribution_would() {
    let directory = tempfile::tempdir().unwrap();
    let lines = build(directory.path()).await;
    assert!(lines.contains("metalform: not packaged for arm64: --program names a program for it"), "{lines}");
    assert!(lines.contains("bundle written"), "{lines}");
    let lines = build(directory.path()).await;
    assert!(lines.contains("bundle is up to date"), "{lines}");

    let out = directory.path().join("out");
    let packages = files_below(&out.join("apt/pool"));
    let names: Vec<_> = packages.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(names, [format!("metalform_{version}_amd64.deb")]);
    assert_eq!(deb_tools::lint(&packages, "metalform").await, [""; 0]);
    let depends = output("dpkg-deb", &["-f", packages[0].to_str().unwrap(), "Depends"]).await;
    assert!(depends.starts_with("libc6 (>= 2."), "{depends}");

    let root = directory.path().join("root");
    output("dpkg-deb", &["-x", packages[0].to_str().unwrap(), root.to_str().unwrap()]).await;
    let packaged = fs::read(root.join("usr/bin/metalform")).unwrap();
    assert_eq!(packaged, fs::read(directory.path().join("program")).unwrap());
    let man = root.join("usr/share/man/man1");
    for page in ["metalform.1.gz", "metalform-deploy-node.1.gz", "metalform-bundle-verify.1.gz"] {
        assert!(man.join(page).exists(), "{page}");
    }

    let packages = files_below(&out.join("rpm/pool"));
    assert_eq!(rpm_tools::lint(&out.join("rpm/pool"), 1).await, [""; 0]);
    let requires = output("rpm", &["-qp", "--requires", packages[0].to_str().unwrap()]).await;
    assert!(requires.contains("libc.so.6()(64bit)") && requires.contains("(GLIBC_2."), "{requires}");

    let recorded = fs::read_to_string(out.join(component_list::FILE_NAME)).unwrap();
    assert!(recorded.contains("program:") && recorded.contains("amd64:"), "{recorded}");
    assert_eq!(Bundle::read(&out).unwrap().versions["metalform"], version);
    assert_eq!(verify::verify(&out, None, &BTreeMap::new(), None).unwrap(), BTreeSet::new());
}

#[tokio::test]
async fn a_file_that_is_no_program_is_refused_before_anything_is_built() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("list.yaml"), list()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_metalform"));
    command.current_dir(directory.path()).args(["bundle", "build", "-f", "list.yaml", "-o", "out"]);
    let output = command.args(["--cache", "cache", "--program", "list.yaml"]).output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let lines = String::from_utf8(output.stderr).unwrap();
    assert!(lines.contains("list.yaml is not a program for amd64 or arm64"), "{lines}");
    assert!(!directory.path().join("out").exists() && !directory.path().join("cache").exists());
}
