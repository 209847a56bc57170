//! What workers have found, in the status of their Host: a new leader goes on from there.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::api::host_status::{FailedJob, HostStatus};
use super::condition::whole_seconds;
use super::host_job::HostJob;
use super::job_outcome::{HostFindings, HostPresence, JobError, JobOutcome};

/// Bounds of the schema.
const MOST_RESIDUE: usize = 64;
const LONGEST_RESIDUE: usize = 1024;
const LONGEST_MESSAGE: usize = 4096;

/// The status after an outcome, and with what is known of whether the host answers. The same outcome may be recorded
/// twice; one under an earlier token changes nothing but whether the host answers.
pub fn recorded(
    status: &HostStatus,
    outcome: Option<&JobOutcome>,
    presence: Option<(HostPresence, Timestamp)>,
) -> HostStatus {
    let mut status = status.clone();
    if let Some(outcome) = outcome.filter(|outcome| is_current(&status, outcome)) {
        match &outcome.result {
            Ok(findings) => succeeded(&mut status, outcome, findings),
            Err(error) => failed(&mut status, outcome, error),
        }
    }
    let by_job = outcome.map(|outcome| (outcome.presence(), outcome.ended));
    let mut known: Vec<(HostPresence, Timestamp)> = [by_job, presence].into_iter().flatten().collect();
    known.sort_by_key(|(_, at)| *at);
    for (presence, at) in known {
        answered(&mut status, presence, whole_seconds(at));
    }
    status
}

/// Whether it is of the last claim or reset.
fn is_current(status: &HostStatus, outcome: &JobOutcome) -> bool {
    let claim = status.claim.as_ref().map(|claim| &claim.machine.uid);
    status.last_token == outcome.fence.token && claim == outcome.fence.machine.as_ref()
}

fn succeeded(status: &mut HostStatus, outcome: &JobOutcome, findings: &HostFindings) {
    if !status.done_jobs.contains(&outcome.job) {
        status.done_jobs.push(outcome.job);
    }
    status.failed_job = None;
    if findings.facts.is_some() {
        status.facts.clone_from(&findings.facts);
    }
    match outcome.job {
        HostJob::Inspect => {
            status.inspected_at = Some(Time(whole_seconds(outcome.ended)));
            let residue = findings.residue.iter().take(MOST_RESIDUE);
            status.residue = residue.map(|text| shortened(text, LONGEST_RESIDUE)).collect();
            status.last_token = status.last_token.max(findings.largest_token);
        }
        HostJob::Reset => status.residue.clear(),
        _ => {}
    }
}

fn failed(status: &mut HostStatus, outcome: &JobOutcome, error: &JobError) {
    let last = Time(whole_seconds(outcome.ended));
    let earlier = status.failed_job.as_ref().filter(|failed| failed.job == outcome.job);
    if earlier.is_some_and(|failed| failed.last == last) {
        return;
    }
    let attempts = earlier.map_or(0, |failed| failed.attempts).saturating_add(error.begun.into());
    let message = shortened(&error.message, LONGEST_MESSAGE);
    status.failed_job = Some(FailedJob { job: outcome.job, attempts, last, message });
}

fn answered(status: &mut HostStatus, presence: HostPresence, at: Timestamp) {
    let since = status.silent_since.as_ref().map(|time| time.0);
    if since.is_some_and(|since| at < since) {
        // It is older than what is recorded.
        return;
    }
    let silent_since = Some(Time(since.unwrap_or(at)));
    // A host that is off does not answer: that it still does not changes nothing.
    (status.silent_since, status.powered_off) = match presence {
        HostPresence::Answers => (None, false),
        HostPresence::Silent => (silent_since, status.powered_off),
        HostPresence::Off => (silent_since, true),
        HostPresence::Unknown => return,
    };
}

fn shortened(text: &str, longest: usize) -> String {
    // The API server counts characters.
    text.chars().take(longest).collect()
}

#[cfg(test)]
mod tests;
