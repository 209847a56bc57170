//! A case file and the verdict of its resource.

use std::collections::BTreeMap;

use jiff::Timestamp;
use metalform::resource::Resource;
use metalform::resource::contract::change::{Change, Difference, Verdict};
use metalform::resource::contract::context::Context;
use metalform::resource::contract::ensure::Ensure;
use metalform::resource::contract::kind::Kind;
use metalform::resource::contract::pending::Pending;
use metalform::resource::contract::probe::{Observed, Probe};
use metalform::resource::contract::remote_file::RemoteFile;
use metalform::resource::contract::step::{Access, Step};
use metalform::resource::fields::field_error::FieldError;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::answer;
use super::certificates::Authorities;

/// The clock of all cases.
pub const NOW: &str = "2026-11-21T00:00:00Z";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// As in a state file, with the shared keys `ensure` and `sensitive`.
    resource: Map<String, Value>,
    /// By the display form of a probe (`path /etc/hosts`); guards are numbered in their order (`guard 1`).
    #[serde(default)]
    observed: Map<String, Value>,
    /// Ids of earlier resources with changes; `absent file:/a` where it is removed.
    #[serde(default)]
    pending: Vec<String>,
    /// What earlier resources will have written, by path, or `~user` for the user's keys.
    #[serde(default)]
    written: BTreeMap<String, String>,
    /// Files whose text must never be shown.
    #[serde(default)]
    secret: Vec<String>,
    pub expect: Expect,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case", tag = "verdict")]
pub enum Expect {
    NoChange { reason: String },
    Change { differences: Vec<String>, steps: Vec<String> },
    Refuse { reason: String },
    FieldError { reason: String },
}

impl Expect {
    pub fn verdict(&self) -> &'static str {
        match self {
            Self::NoChange { .. } => "no_change",
            Self::Change { .. } => "change",
            Self::Refuse { .. } => "refuse",
            Self::FieldError { .. } => "field_error",
        }
    }
}

impl Case {
    pub fn is_removal(&self) -> bool {
        self.resource.get("ensure").is_some_and(|ensure| ensure == "absent")
    }

    pub fn resource(&self, kind: Kind) -> Result<Resource, FieldError> {
        let mut fields = self.resource.clone();
        let name = fields.remove(kind.name()).and_then(|name| name.as_str().map(str::to_owned)).unwrap();
        let ensure =
            fields.remove("ensure").map_or(Ensure::Present, |value| serde_json::from_value(value).unwrap());
        let sensitive = fields.remove("sensitive").is_some_and(|value| value.as_bool().unwrap());
        Resource::parse(kind, &name, fields, ensure, sensitive)
    }

    /// The verdict of a case of this kind.
    pub fn decide(&self, kind: Kind, authorities: &Authorities) -> Expect {
        let resource = match self.resource(kind) {
            Ok(resource) => resource,
            Err(error) => return Expect::FieldError { reason: error.to_string() },
        };
        let pending = self.pending();
        let context = Context {
            now: NOW.parse::<Timestamp>().unwrap(),
            authorities: authorities.certificates(),
            own_boot_id: Some("own"),
            pending: &pending,
        };
        match resource.diff(&self.answers(&resource.probes(), authorities), &context) {
            Verdict::NoChange { reason } => Expect::NoChange { reason },
            Verdict::Refuse { reason } => Expect::Refuse { reason },
            Verdict::Change(change) => Expect::Change {
                differences: change.differences.iter().map(difference_text).collect(),
                steps: change.steps.iter().map(step_text).collect(),
            },
        }
    }

    pub fn has_pending(&self) -> bool {
        !self.pending.is_empty() || !self.written.is_empty()
    }

    pub fn pending(&self) -> Pending {
        let mut pending = Pending::hiding(self.secret.iter().map(String::as_str));
        for id in &self.pending {
            match id.strip_prefix("absent ") {
                Some(id) => pending.record(id.parse().unwrap(), Ensure::Absent, &Change::default()),
                None => pending.record(id.parse().unwrap(), Ensure::Present, &Change::default()),
            }
        }
        for (path, text) in &self.written {
            if let Some(user) = path.strip_prefix('~') {
                let (user, content) = (user.to_owned(), text.clone().into_bytes());
                let step = Step::WriteAuthorizedKeys { user, found: None, content };
                let change = Change { differences: Vec::new(), steps: vec![step] };
                pending.record("authorized_key:an earlier one".parse().unwrap(), Ensure::Present, &change);
                continue;
            }
            let step = Step::WriteFile {
                path: path.clone(),
                content: text.clone().into_bytes(),
                access: Access::root(0o644),
                sensitive: false,
            };
            let change = Change { differences: Vec::new(), steps: vec![step] };
            pending.record("line:an earlier one".parse().unwrap(), Ensure::Present, &change);
        }
        pending
    }

    /// Every probe must have an answer in the case, and every answer in the case a probe.
    pub fn answers(&self, probes: &[Probe], authorities: &Authorities) -> Observed {
        let mut answers = self.observed.clone();
        let mut guards = 0;
        let mut observed = Observed::default();
        for probe in probes {
            let key = match probe {
                Probe::Guard { .. } => {
                    guards += 1;
                    format!("guard {guards}")
                }
                _ => probe.to_string(),
            };
            let value =
                answers.remove(&key).unwrap_or_else(|| panic!("no answer to {key:?}: {:?}", self.resource));
            observed.0.insert(probe.clone(), answer::answer(probe, &value, authorities));
        }
        assert!(answers.is_empty(), "answers without a probe: {answers:?}");
        observed
    }
}

fn difference_text(difference: &Difference) -> String {
    let shown = |value: &Option<String>| value.as_deref().unwrap_or("(none)").to_owned();
    match difference {
        Difference::Field { name, before, after } => format!("{name}: {} → {}", shown(before), shown(after)),
        Difference::Text { path: _, before, after } => format!("text: {before:?} → {after:?}"),
        Difference::Hidden { what } => format!("hidden: {what}"),
    }
}

fn access_text(access: &Access) -> String {
    format!("{}:{} {:04o}", access.owner, access.group, access.mode)
}

fn download_text(from: &RemoteFile) -> String {
    let ca = from.ca.as_ref().map(|ca| format!(" by {ca}")).unwrap_or_default();
    format!("{}{ca} {}", from.url, &from.sha256[..8])
}

fn step_text(step: &Step) -> String {
    match step {
        Step::WriteFile { path, content, access, sensitive } => {
            let secret = if *sensitive { " sensitive" } else { "" };
            format!("write {path} {}{secret} {:?}", access_text(access), String::from_utf8_lossy(content))
        }
        Step::EditFile { path, found, content, access, sensitive } => {
            let upon = match found {
                Some(sha256) => format!("upon {}", &sha256[..8]),
                None => access_text(access),
            };
            let secret = if *sensitive { " sensitive" } else { "" };
            format!("edit {path} {upon}{secret} {:?}", String::from_utf8_lossy(content))
        }
        Step::WriteAuthorizedKeys { user, found, content } => {
            let upon = found.as_ref().map(|sha256| format!(" upon {}", &sha256[..8])).unwrap_or_default();
            format!("authorize {user}{upon} {:?}", String::from_utf8_lossy(content))
        }
        Step::Account { tool, arguments } => format!("{tool:?} {}", arguments.join(" ")),
        Step::SetPassword { user, hash } => format!("set password of {user} {hash}"),
        Step::Mount { point, verb } => format!("{verb:?} {point}").to_lowercase(),
        Step::MakeDirectory { path, access } => format!("make directory {path} {}", access_text(access)),
        Step::SetAccess { path, access } => format!("set access {path} {}", access_text(access)),
        Step::Symlink { path, target } => format!("link {path} to {target}"),
        Step::Remove { path, recursive } => {
            format!("remove {path}{}", if *recursive { " recursively" } else { "" })
        }
        Step::Download { from, path, access } => {
            format!("download {path} {} from {}", access_text(access), download_text(from))
        }
        Step::Unpack { from, path, strip, marker, access } => format!(
            "unpack {path} {} strip {strip} {marker:?} from {}",
            access_text(access),
            download_text(from)
        ),
        Step::Reboot { boot_id, seconds } => format!("reboot {boot_id} within {seconds} s"),
        Step::Await { condition, seconds } => format!("await {seconds} s {}", condition.wish()),
        Step::VerifyUnit { name, files, sensitive } => {
            let secret = if *sensitive { " sensitive" } else { "" };
            let files: Vec<String> =
                files.iter().map(|file| format!("{} {:?}", file.name, file.text)).collect();
            format!("verify {name}{secret} among {}", files.join(", "))
        }
        Step::RefreshPackageIndex => "refresh package index".to_owned(),
        Step::InstallPackages(packages) => {
            let one = |package: &metalform::resource::contract::step::PackageVersion| {
                let version =
                    package.version.as_ref().map(|version| format!("={version}")).unwrap_or_default();
                format!("{}{version}{}", package.name, if package.hold { " held" } else { "" })
            };
            format!("install {}", packages.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        Step::RemovePackages(names) => format!("remove packages {}", names.join(", ")),
        Step::HoldPackage { name, hold } => format!("{} {name}", if *hold { "hold" } else { "release" }),
        Step::ReloadUnitFiles => "reload unit files".to_owned(),
        Step::ReloadUnit(name) => format!("reload {name} if its files have changed"),
        Step::Unit { name, verb } => format!("{verb:?} {name}").to_lowercase(),
        Step::SetSysctl { key, value } => format!("set {key} = {value}"),
        Step::LoadModule(name) => format!("load module {name}"),
        Step::SwapOff => "swap off".to_owned(),
        Step::PullImage(reference) => format!("pull {reference}"),
        Step::IssueCertificate(request) => format!("issue {request:?}"),
        Step::ReplaceRoute { destination, via } => format!("replace route {destination} {via}"),
        Step::Run { script } => format!("run {script}"),
    }
}
