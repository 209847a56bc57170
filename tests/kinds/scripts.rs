//! The shell scripts of kinds, run with `/etc` in a temporary directory.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use metalform::resource::Resource;
use metalform::resource::contract::change::Verdict;
use metalform::resource::contract::context::Context;
use metalform::resource::contract::ensure::Ensure;
use metalform::resource::contract::kind::Kind;
use metalform::resource::contract::pending::Pending;
use metalform::resource::contract::probe::{Answer, Observed, PathState, Probe, UnitState};
use metalform::resource::contract::step::Step;
use serde_json::{Value, json};
use tempfile::TempDir;

fn resource(kind: Kind, name: &str, fields: &Value, ensure: Ensure) -> Resource {
    Resource::parse(kind, name, fields.as_object().unwrap().clone(), ensure, false).unwrap()
}

/// A host where `/etc`, `/var` and systemctl are ours.
struct Host(TempDir);

impl Host {
    fn new() -> Self {
        let host = Self(tempfile::tempdir().unwrap());
        for directory in ["etc/apt/sources.list.d", "etc/yum.repos.d", "var/lib/dpkg/info", "bin"] {
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
        // In two turns: the root may lie below /var itself.
        let script = script.replace("/etc/", "@/etc/").replace("/var/", "@/var/").replace('@', root);
        let path = format!("{root}/bin:{}", std::env::var("PATH").unwrap());
        Command::new("sh").args(["-c", &script]).env("PATH", path).status().unwrap().code().unwrap()
    }

    /// Answers guards by running them; all else is absent.
    fn observe(&self, resource: &Resource) -> Observed {
        let answer = |probe: &Probe| match probe {
            Probe::Guard { script } => Answer::Guard(self.run(script)),
            Probe::Unit { .. } => Answer::Unit(UnitState {
                load: "loaded".into(),
                active: "active".into(),
                sub: "running".into(),
                unit_file: "enabled".into(),
                needs_daemon_reload: false,
            }),
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

/// Sets the time of writing, in seconds from now.
fn set_age(path: &Path, seconds: i64) {
    let touched =
        Command::new("touch").arg("-d").arg(format!("{seconds} seconds")).arg(path).status().unwrap();
    assert!(touched.success());
}

#[test]
fn a_restart_that_a_killed_run_owes_is_found_by_the_next() {
    let host = Host::new();
    let stamp = "#!/bin/sh\ndate -u -d '-100 seconds' '+%a %Y-%m-%d %H:%M:%S UTC'\n";
    host.write("bin/systemctl", stamp);
    assert!(Command::new("chmod").arg("755").arg(host.path("bin/systemctl")).status().unwrap().success());
    host.write("etc/it's a file", "");
    host.write("var/lib/dpkg/info/containerd:amd64.list", "");
    let ids = json!({"restart_when_changed": ["template:/etc/it's a file", "package:containerd", "file:/etc/none"]});
    let service = resource(Kind::Service, "containerd", &ids, Ensure::Present);
    let owed = |file_age, package_age| {
        set_age(&host.path("etc/it's a file"), file_age);
        set_age(&host.path("var/lib/dpkg/info/containerd:amd64.list"), package_age);
        matches!(diff(&service, &host.observe(&service)), Verdict::Change(_))
    };
    assert!(!owed(-200, -200), "both are older than the start");
    assert!(owed(-50, -200), "the file is newer");
    assert!(owed(-200, -50), "the package is newer");
    assert!(!owed(3600, 3600), "the clock was set back");
    host.write("bin/systemctl", "#!/bin/sh\necho\n");
    assert!(!owed(-50, -50), "it never started");
}
