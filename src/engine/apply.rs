//! Steps as shell programs.
//!
//! A program prints a line when a resource is begun, done or failed ([`progress`]); the first failure ends it. File
//! contents are sent in the payload and never in the script. Killed at any instant, it leaves whole files, old or new,
//! and the same steps can run again.
//!
//! # Batching
//! Steps of different resources are regrouped in five passes, so that a plan of hundreds of resources costs a small
//! number of processes and one round trip:
//!
//! 1. [`merge`]: adjacent resources that do the same kind of work become one task (one package transaction, one edit
//!    of a file), and repeated refreshes are left out;
//! 2. [`segment`]: the plan is cut where it must pause (certificates, reboots);
//! 3. [`units`]: all unit files are verified by one process;
//! 4. [`runs`]: adjacent tasks that can be carried out together form a run;
//! 5. [`staged`], [`at_once`]: the files of a run are made side by side and then moved into place one by one;
//!    directories and services are handled by one command.
//!
//! **Invariant**: a batched program has the effect of its steps applied one by one, in their order. When every step
//! succeeds, the host's state afterwards and the resources reported as done are the same. When a step fails, the same
//! resource is reported as failed (together with those that were merged into its task), and the same resources before
//! it are done; of those after it, only directories may exist and services may be started that belong to the same
//! run. `oracle_tests` verifies this with random plans, on a real file system and with real shells.
//!
//! # Assumptions
//! A POSIX shell and GNU coreutils; `gzip` for a large payload; `openssl` for certificates; the shadow tools for
//! users and groups; util-linux for mounts, and `setpriv` of it for authorized keys and for files
//! below directories of other users than root.

mod at_once;
mod functions;
mod merge;
mod packages;
mod payload;
mod place;
pub(super) mod progress;
mod reactions;
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
pub use self::reactions::Reactions;
use self::runs::Batching;
use super::frame::DIRECT;
use super::nonce::Nonce;
use crate::model::shell_word::quote;
use crate::resource::contract::step::{CertificateRequest, Step};
use crate::transport::Program;

/// Smaller payloads, in bytes, are not worth compressing.
const COMPRESS_FROM: usize = 16 * 1024;

/// The steps of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// `kind:name`.
    pub id: String,
    /// In their order.
    pub steps: Vec<Step>,
}

/// What succeeds or fails as a unit: the steps of one or several resources, or a part of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// The resources that the work belongs to.
    pub ids: Vec<String>,
    /// Whether this is their first part.
    pub begins: bool,
    /// Whether this is their last part.
    pub ends: bool,
    /// Without [`Step::IssueCertificate`] and [`Step::Reboot`].
    pub steps: Vec<Step>,
}

/// A certificate, requested at the end of a segment and written at the beginning of the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateWork {
    /// The resources that the work belongs to.
    pub ids: Vec<String>,
    /// Whether this is their first part.
    pub begins: bool,
    /// Whether this is their last part.
    pub ends: bool,
    /// The required content.
    pub request: CertificateRequest,
}

impl CertificateWork {
    /// The task that writes the signed certificate.
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
    /// The resources that the work belongs to.
    pub ids: Vec<String>,
    /// Whether this is their first part.
    pub begins: bool,
    /// Whether this is their last part.
    pub ends: bool,
    /// The boot id before.
    pub boot_id: String,
    /// The time within which the host must be back.
    pub seconds: u32,
}

/// The work of one round trip.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segment {
    /// In their order.
    pub tasks: Vec<Task>,
    /// Made after the tasks.
    pub requests: Vec<CertificateWork>,
    /// The last work of the segment, which then has no requests.
    pub reboot: Option<RebootWork>,
    /// Of the whole plan.
    pub reactions: Reactions,
}

/// The work on a host as segments of merged tasks. The last has neither requests nor a reboot.
pub fn segments(works: &[Work]) -> Vec<Segment> {
    let mut segments = segment::segments(merge::tasks(works));
    for segment in &mut segments {
        units::ask_once(&mut segment.tasks);
    }
    segments
}

/// The program of one segment, followed by `afterwards`, which runs when everything succeeded. Its lines number the
/// tasks from 0, then the requests, then the reboot.
pub fn program(segment: &Segment, packages: PackageManager, afterwards: &str, nonce: &Nonce) -> Program {
    let mut payload = Vec::new();
    let mut script = format!("nonce={}\n{}{DIRECT}", nonce.as_str(), include_str!("apply/prelude.sh"));
    let steps = || segment.tasks.iter().flat_map(|task| &task.steps);
    script.push_str(&functions::of_files(steps));
    for functions in functions::needed(steps, packages) {
        script.push_str(functions);
    }
    let runs = runs::runs(&segment.tasks);
    if runs.iter().any(|(batching, _)| *batching == Batching::Staged) {
        script.push_str(staged::FUNCTIONS);
    }
    let reactions = &segment.reactions;
    script.extend(reactions.functions());
    script.push_str("exec 3<&0 </dev/null\n");
    let mut number = 0;
    for (batching, tasks) in runs {
        script.push_str(&script::of(batching, (number, tasks), packages, reactions, &mut payload));
        number += tasks.len();
    }
    for (number, work) in (segment.tasks.len()..).zip(&segment.requests) {
        if work.begins {
            script.push_str(&format!("say begin {number}\n"));
            script.push_str(&reactions.begun(number, &work.ids));
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
            script.push_str(&reactions.begun(number, &work.ids));
        }
        script.push_str(include_str!("apply/reboot.sh"));
        script.push_str(&format!("reboot_soon >\"$log\" 2>&1 || fail {number} $?\n"));
    }
    script.push_str("say end\n");
    script.push_str(afterwards);
    packed(script, payload)
}

fn request(request: &CertificateRequest) -> String {
    let place::Place { directory, temporary } = place::place(&request.key);
    let owner = quote(&format!("{}:{}", request.access.owner, request.access.group));
    let (key, subject) = (quote(&request.key), quote(&subject(request)));
    place::within(&request.key, &format!("request {directory} {temporary} {key} {owner} {subject}"))
}

/// Escaped for `openssl req -subj`. The CA determines the certificate's content; this subject only describes the
/// request.
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

/// `None` where the result would not be much smaller (binaries, archives).
fn compressed(payload: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(payload).ok()?;
    encoder.finish().ok().filter(|small| small.len() < payload.len() / 4 * 3)
}

#[cfg(test)]
mod deferral_tests;
#[cfg(test)]
mod fetch_tests;
#[cfg(test)]
mod holder_tests;
#[cfg(test)]
mod oracle_tests;
#[cfg(test)]
mod reboot_tests;
#[cfg(test)]
mod reload_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod wait_tests;
