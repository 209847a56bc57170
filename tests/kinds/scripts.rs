//! The shell scripts of kinds, run with `/etc` in a temporary directory.

use std::collections::BTreeMap;
use std::process::Command;

use metalform::resource::Resource;
use metalform::resource::contract::change::Verdict;
use metalform::resource::contract::context::Context;
use metalform::resource::contract::ensure::Ensure;
use metalform::resource::contract::kind::Kind;
use metalform::resource::contract::pending::Pending;
use metalform::resource::contract::probe::{Answer, Observed, PathState, Probe};
use metalform::resource::contract::step::Step;
use serde_json::{Value, json};
use tempfile::TempDir;

fn resource(kind: Kind, name: &str, fields: &Value, ensure: Ensure) -> Resource {
    Resource::parse(kind, name, fields.as_object().unwrap().clone(), ensure, false).unwrap()
}

/// A host where `/etc` is ours.
struct Host(TempDir);

impl Host {
    fn new() -> Self {
        let host = Self(tempfile::tempdir().unwrap());
        for directory in ["etc/apt/sources.list.d", "etc/yum.repos.d"] {
            std::fs::create_dir_all(host.0.path().join(directory)).unwrap();
        }
        host
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.path(path), text).unwrap();
    }

    fn run(&self, script: &str) -> i32 {
        let root = self.0.path().to_str().unwrap();
        let script = script.replace("/etc/", &format!("{root}/etc/"));
        Command::new("sh").args(["-c", &script]).status().unwrap().code().unwrap()
    }

    /// Answers guards by running them; all else is absent.
    fn observe(&self, resource: &Resource) -> Observed {
        let answer = |probe: &Probe| match probe {
            Probe::Guard { script } => Answer::Guard(self.run(script)),
            _ => Answer::Path(PathState::Absent),
        };
        Observed(resource.probes().into_iter().map(|probe| (probe.clone(), answer(&probe))).collect())
    }

    /// Runs the shell text among the steps of its change, if it has any.
    fn apply(&self, resource: &Resource) -> Option<i32> {
        match diff(resource, &self.observe(resource)) {
            Verdict::Change(change) => change.steps.iter().find_map(|step| match step {
                Step::Run { script } => Some(self.run(script)),
                _ => None,
            }),
            _ => None,
        }
    }
}

fn diff(resource: &Resource, observed: &Observed) -> Verdict {
    let now = super::case::NOW.parse().unwrap();
    resource.diff(
        observed,
        &Context { now, authorities: &BTreeMap::new(), own_boot_id: None, pending: &Pending::default() },
    )
}

#[test]
fn other_package_sources_go_and_come_back() {
    let host = Host::new();
    let fields = json!({
        "uri": "http://repository.example/", "suite": "./", "exclusive": true,
        "key": "-----BEGIN PGP PUBLIC KEY BLOCK-----",
    });
    let only = resource(Kind::PackageRepository, "metalform", &fields, Ensure::Present);
    host.write("etc/apt/sources.list", "# nothing here\n\n");
    host.write("etc/apt/sources.list.d/metalform.sources", "Types: deb\n");
    assert_eq!(host.apply(&only), None, "a list of comments may stay");

    let others =
        ["etc/apt/sources.list", "etc/apt/sources.list.d/a b.list", "etc/apt/sources.list.d/debian.sources"];
    others.iter().for_each(|other| host.write(other, "deb http://archive.example/debian trixie main\n"));
    assert_eq!(host.apply(&only), Some(0));
    assert!(others.iter().all(|other| !host.path(other).exists()));
    assert!(host.path("etc/apt/sources.list.d/metalform.sources").exists());
    assert_eq!(host.apply(&only), None);

    let removed = resource(Kind::PackageRepository, "metalform", &fields, Ensure::Absent);
    assert_eq!(host.apply(&removed), Some(0));
    assert!(others.iter().all(|other| host.path(other).exists()));
    assert_eq!(host.apply(&removed), None);
}

#[test]
fn other_sources_of_dnf_go_and_come_back() {
    let host = Host::new();
    let fields = json!({
        "format": "rpm", "uri": "http://repository.example/", "exclusive": true,
        "key": "-----BEGIN PGP PUBLIC KEY BLOCK-----",
    });
    let only = resource(Kind::PackageRepository, "metalform", &fields, Ensure::Present);
    for name in ["metalform", "base", "it's"] {
        host.write(&format!("etc/yum.repos.d/{name}.repo"), "[x]\n");
    }
    assert_eq!(host.apply(&only), Some(0));
    assert!(host.path("etc/yum.repos.d/metalform.repo").exists());
    assert!(
        !host.path("etc/yum.repos.d/base.repo").exists() && !host.path("etc/yum.repos.d/it's.repo").exists()
    );
    assert_eq!(host.apply(&only), None);
    let removed = resource(Kind::PackageRepository, "metalform", &fields, Ensure::Absent);
    assert_eq!(host.apply(&removed), Some(0));
    assert!(
        host.path("etc/yum.repos.d/base.repo").exists() && host.path("etc/yum.repos.d/it's.repo").exists()
    );
}
