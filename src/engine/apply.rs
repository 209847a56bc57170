//! Steps as shell programs.
//!
//! A program prints a line when work on a resource begins, is done or has failed ([`progress`]); the first
//! failure ends it. File contents travel in the payload and never in the script. Killed at any instant, it
//! leaves whole files, old or new, and the same steps can run again.
//!
//! # Assumptions
//! A POSIX shell and GNU coreutils; `gzip` for a large payload; `openssl` for certificates; the shadow tools for
//! users and groups; util-linux for mounts, and `setpriv` of it for authorized keys.

mod at_once;
mod functions;
mod merge;
mod packages;
pub(super) mod progress;
mod runs;
mod script;
mod segment;
mod staged;
mod steps;
mod units;

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

pub use self::packages::PackageManager;
use self::runs::Manner;
use super::nonce::Nonce;
use crate::model::shell_word::quote;
use crate::resource::contract::step::{CertificateRequest, Step};
use crate::transport::Program;

/// Below this, compressing a payload saves nothing that anyone would notice.
const COMPRESS_FROM: usize = 16 * 1024;

/// One resource, and what is to be done for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// `kind:name`.
    pub id: String,
    /// In the order to run.
    pub steps: Vec<Step>,
}

/// What succeeds or fails as one: the steps of a resource or of several, or a part of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The resources that it is for.
    pub ids: Vec<String>,
    /// Whether it is their first part.
    pub begins: bool,
    /// Whether it is their last part.
    pub ends: bool,
    /// Without [`Step::IssueCertificate`] and [`Step::Reboot`].
    pub steps: Vec<Step>,
}

/// A certificate to be asked for at the end of a segment, and written at the beginning of the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateWork {
    /// The resources that it is for.
    pub ids: Vec<String>,
    /// Whether it is their first part.
    pub begins: bool,
    /// Whether it is their last part.
    pub ends: bool,
    /// What it must say.
    pub request: CertificateRequest,
}

impl CertificateWork {
    /// The task that writes the authority's answer.
    pub fn written(&self, certificate: String) -> Task {
        let step = Step::WriteFile {
            path: self.request.certificate.clone(),
            content: certificate.into_bytes(),
            access: self.request.access.clone(),
            sensitive: false,
        };
        Task { ids: self.ids.clone(), begins: false, ends: self.ends, steps: vec![step] }
    }
}

/// A reboot at the end of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebootWork {
    /// The resources that it is for.
    pub ids: Vec<String>,
    /// Whether it is their first part.
    pub begins: bool,
    /// Whether it is their last part.
    pub ends: bool,
    /// The boot id before.
    pub boot_id: String,
    /// Within which the host must be back.
    pub seconds: u32,
}

/// What can be done in one round trip.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segment {
    /// In this order.
    pub tasks: Vec<Task>,
    /// Asked for after the tasks.
    pub requests: Vec<CertificateWork>,
    /// The last that is done; a segment that has it has no requests.
    pub reboot: Option<RebootWork>,
}

/// The work on a host as segments, with what can be done together merged. The last has neither
/// requests nor a reboot.
pub fn segments(works: &[Work]) -> Vec<Segment> {
    let mut segments = segment::segments(merge::tasks(works));
    for segment in &mut segments {
        units::ask_once(&mut segment.tasks);
    }
    segments
}

/// The program of one segment, and of `afterwards`, which runs when everything was done. Lines number its
/// tasks from 0 and go on with its requests.
pub fn program(segment: &Segment, packages: PackageManager, afterwards: &str, nonce: &Nonce) -> Program {
    let mut payload = Vec::new();
    let mut script = format!("nonce={}\n{}", nonce.as_str(), include_str!("apply/prelude.sh"));
    let steps = || segment.tasks.iter().flat_map(|task| &task.steps);
    for functions in functions::needed(steps, packages) {
        script.push_str(functions);
    }
    let runs = runs::runs(&segment.tasks);
    if runs.iter().any(|(manner, _)| *manner == Manner::Staged) {
        script.push_str(staged::FUNCTIONS);
    }
    script.push_str("exec 3<&0 </dev/null\n");
    let mut number = 0;
    for (manner, tasks) in runs {
        script.push_str(&script::of(manner, number, tasks, packages, &mut payload));
        number += tasks.len();
    }
    for (number, work) in (segment.tasks.len()..).zip(&segment.requests) {
        if work.begins {
            script.push_str(&format!("say begin {number}\n"));
        }
        script.push_str(&format!(
            "pem=$({} 2>\"$log\") || fail {number} $?\nsay request {number} \"$(printf '%s\\n' \"$pem\" | base64 -w0)\"\n",
            request(&work.request)
        ));
    }
    if let Some(work) = &segment.reboot {
        let number = segment.tasks.len() + segment.requests.len();
        if work.begins {
            script.push_str(&format!("say begin {number}\n"));
        }
        script.push_str(include_str!("apply/reboot.sh"));
        script.push_str(&format!("reboot_soon >\"$log\" 2>&1 || fail {number} $?\n"));
    }
    script.push_str("say end\n");
    script.push_str(afterwards);
    packed(script, payload)
}

fn request(request: &CertificateRequest) -> String {
    let steps::Place { directory, temporary } = steps::place(&request.key);
    let owner = quote(&format!("{}:{}", request.access.owner, request.access.group));
    format!("request {directory} {temporary} {} {owner} {}", quote(&request.key), quote(&subject(request)))
}

/// As `openssl req -subj` reads it: what is special to it is escaped. The authority decides what the
/// certificate says; the subject here is for people who look at the request.
fn subject(request: &CertificateRequest) -> String {
    let escaped = |text: &str| text.replace('\\', r"\\").replace('/', r"\/").replace('+', r"\+");
    let organizations = request.organizations.iter().map(|name| format!("/O={}", escaped(name)));
    let organizations: String = organizations.collect();
    format!("{organizations}/CN={}", escaped(&request.common_name))
}

fn packed(script: String, payload: Vec<u8>) -> Program {
    if payload.len() >= COMPRESS_FROM
        && let Some(small) = compressed(&payload)
    {
        return Program { script: format!("gzip -dc | (\n{script})\n"), payload: small };
    }
    Program { script: format!("(\n{script})\n"), payload }
}

/// `None` where it would not become smaller by much (binaries, archives).
fn compressed(payload: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(payload).ok()?;
    encoder.finish().ok().filter(|small| small.len() < payload.len() / 4 * 3)
}

#[cfg(test)]
mod fetch_tests;
#[cfg(test)]
mod reboot_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wait_tests;
