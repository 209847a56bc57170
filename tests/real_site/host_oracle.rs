//! The scripted host against the kinds: over the case files of `tests/kinds`, a host in the state that the case
//! observed gives those very answers, and once it has performed the steps of the change the kind finds nothing to do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use metalform::resource::contract::change::Verdict;
use metalform::resource::contract::context::Context;
use metalform::resource::contract::kind::Kind;
use metalform::resource::contract::pending::Pending;
use metalform::resource::contract::probe::{
    Answer, GroupEntry, GroupState, MountState, Observed, PathState, Probe,
};
use metalform::resource::contract::step::{CertificateRequest, Step};
use metalform::resource::{Resource, kinds};

use crate::case::{Case, Expect, NOW};
use crate::certificates::Authorities;
use crate::host::ScriptedHost;

/// All cases, by `kind/name`.
fn cases() -> BTreeMap<String, (Kind, Case)> {
    let mut all = BTreeMap::new();
    for kind in kinds() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kinds").join(kind.kind.name());
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let case = serde_saphyr::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
            all.insert(format!("{}/{}", kind.kind, path.file_stem().unwrap().display()), (kind.kind, case));
        }
    }
    all
}

struct Bench {
    authorities: Authorities,
    verdicts: BTreeMap<&'static str, usize>,
    steps: BTreeSet<String>,
    failures: Vec<String>,
}

impl Bench {
    fn diff(&self, resource: &Resource, observed: &Observed, pending: &Pending) -> Verdict {
        let context = Context {
            now: NOW.parse().unwrap(),
            authorities: self.authorities.certificates(),
            own_boot_id: Some("own"),
            pending,
        };
        resource.diff(observed, &context)
    }

    fn check(&mut self, name: &str, kind: Kind, case: &Case) {
        let Ok(resource) = case.resource(kind) else { return };
        let probes: BTreeSet<Probe> = resource.probes().into_iter().collect();
        let observed = case.answers(&resource.probes(), &self.authorities);
        let mut host = ScriptedHost::new(metalform::model::facts::Facts::examples()[0].clone());
        if !host.seed(&observed) {
            return;
        }
        self.count("seeded");
        let seen = host.answers(&probes);
        for (probe, answer) in &observed.0 {
            let seen = &seen.0[probe];
            if !is_same(probe, answer, seen, &observed) {
                self.failures.push(format!("{name}: {probe}\n  case {answer:?}\n  host {seen:?}"));
            }
        }
        // What earlier resources will do is not done here.
        if case.has_pending() || !matches!(case.expect, Expect::Change { .. }) {
            return;
        }
        let Verdict::Change(change) = self.diff(&resource, &seen, &case.pending()) else {
            self.failures.push(format!("{name}: no change for the scripted host"));
            return;
        };
        let absent = observed.0.iter().find(|(_, answer)| **answer == Answer::Path(PathState::Absent));
        for step in &change.steps {
            if let (Step::Run { script }, Kind::Command, Some((Probe::Path { path, .. }, _))) =
                (step, kind, absent)
            {
                host.brings.insert(script.clone(), path.clone());
            }
        }
        let authorities = &self.authorities;
        let sign = |request: &CertificateRequest, csr: &str| authorities.sign(request, csr);
        for step in &change.steps {
            self.steps.insert(variant(step));
            if let Err(failing) = host.perform(step, &sign) {
                self.failures.push(format!("{name}: {step:?} fails: {failing:?}"));
                return;
            }
        }
        let after = self.diff(&resource, &host.answers(&probes), &Pending::default());
        if !matches!(after, Verdict::NoChange { .. }) {
            self.failures.push(format!("{name}: after {:?}\n  {after:?}", change.steps));
        }
        self.count("converged");
        self.check_after_boot(name, &resource, &probes, host);
    }

    /// What holds `after a reboot` by the kind's own words does.
    fn check_after_boot(
        &mut self,
        name: &str,
        resource: &Resource,
        probes: &BTreeSet<Probe>,
        mut host: ScriptedHost,
    ) {
        let lasts = match name.split('/').next().unwrap_or_default() {
            // A reboot of its own, and what is live only: routes are not persisted.
            "route" | "reboot" | "wait" | "command" => false,
            // A boot starts what is enabled.
            "service" => {
                !["stop_what_starts_at_boot", "unmask_disabled"].iter().any(|case| name.ends_with(case))
            }
            _ => true,
        };
        host.boot();
        let after = self.diff(resource, &host.answers(probes), &Pending::default());
        if lasts && !matches!(after, Verdict::NoChange { .. }) {
            self.failures.push(format!("{name}: after a reboot {after:?}"));
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.verdicts.entry(what).or_default() += 1;
    }
}

/// Whether the host answers as the case does. A case may give more than a host could: for a certificate a path and a
/// content of their own, a device that was not asked for; and it leaves out that a user is in its own group.
fn is_same(probe: &Probe, case: &Answer, host: &Answer, observed: &Observed) -> bool {
    match (probe, case, host) {
        (Probe::Path { path, .. }, _, _)
            if observed.get(&Probe::Content { path: path.clone() }).is_some() =>
        {
            true
        }
        (Probe::Mount { source: None, .. }, Answer::Mount(Some(case)), Answer::Mount(Some(host))) => {
            *host == MountState { expected_device: None, ..case.clone() }
        }
        (_, Answer::Group(GroupState { group: Some(case), holder }), Answer::Group(host)) => {
            let group = |group: &GroupEntry| (group.gid, group.local);
            *holder == host.holder
                && host.group.as_ref().is_some_and(|host| {
                    group(case) == group(host)
                        && case.primary_of.iter().all(|user| host.primary_of.contains(user))
                })
        }
        _ => case == host,
    }
}

/// `WriteFile` of `WriteFile { .. }`.
fn variant(step: &Step) -> String {
    let text = format!("{step:?}");
    text.split([' ', '(', '{']).next().unwrap_or_default().to_owned()
}

#[test]
fn a_step_brings_about_what_its_kind_then_finds() {
    let mut bench = Bench {
        authorities: Authorities::new(),
        verdicts: BTreeMap::new(),
        steps: BTreeSet::new(),
        failures: Vec::new(),
    };
    for (name, (kind, case)) in cases() {
        bench.check(&name, kind, &case);
    }
    assert!(bench.failures.is_empty(), "{}\n{:?}", bench.failures.join("\n"), bench.verdicts);
    assert!(bench.verdicts["converged"] > 80, "{:?}", bench.verdicts);
    let all = [
        "WriteFile",
        "EditFile",
        "WriteAuthorizedKeys",
        "MakeDirectory",
        "SetAccess",
        "Symlink",
        "Remove",
        "Download",
        "Unpack",
        "Await",
        "Reboot",
        "RefreshPackageIndex",
        "InstallPackages",
        "RemovePackages",
        "HoldPackage",
        "VerifyUnit",
        "ReloadUnitFiles",
        "Unit",
        "SetSysctl",
        "LoadModule",
        "SwapOff",
        "PullImage",
        "IssueCertificate",
        "ReplaceRoute",
        "Account",
        "SetPassword",
        "Mount",
        "Run",
    ];
    let missing: Vec<&str> = all.into_iter().filter(|step| !bench.steps.contains(*step)).collect();
    assert!(missing.is_empty(), "no case performs {missing:?}");
}
