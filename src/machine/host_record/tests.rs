use super::*;
use crate::machine::host_job::JobFence;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// With token 8 and, where there is a claim, Machine u-1.
fn status(yaml: &str) -> HostStatus {
    let claim =
        "claim: {machine: {namespace: a, name: m, uid: u-1}, token: 7, since: '1970-01-01T00:00:00Z'}";
    serde_saphyr::from_str(&format!("{{lastToken: 8, {}}}", yaml.replace("CLAIM", claim))).unwrap()
}

fn outcome(job: HostJob, token: i64, result: Result<HostFindings, JobError>) -> JobOutcome {
    let fence = JobFence { host: "h1".parse().unwrap(), machine: Some("u-1".to_owned()), token };
    JobOutcome { job, fence, ended: at(100), result }
}

fn ok() -> Result<HostFindings, JobError> {
    Ok(HostFindings::default())
}

fn error(presence: HostPresence) -> Result<HostFindings, JobError> {
    Err(JobError { message: "broken".to_owned(), presence, begun: true })
}

fn shown(status: &HostStatus) -> String {
    let failed = status.failed_job.as_ref().map(|failed| {
        format!(" failed {:?} {} at {}", failed.job, failed.attempts, failed.last.0.as_second())
    });
    let silent = status.silent_since.as_ref().map(|time| format!(" silent {}", time.0.as_second()));
    let off = if status.powered_off { " off" } else { "" };
    format!("{:?}{}{}{off}", status.done_jobs, failed.unwrap_or_default(), silent.unwrap_or_default())
}

#[test]
fn outcomes_are_recorded_once_and_under_their_token() {
    let failed = "failedJob: {job: Deploy, attempts: 2, last: '1970-01-01T00:00:50Z', message: m}";
    for (yaml, outcome, expected) in [
        ("CLAIM", outcome(HostJob::Check, 8, ok()), "[Check]"),
        ("CLAIM, doneJobs: [Check]", outcome(HostJob::Check, 8, ok()), "[Check]"),
        ("CLAIM, doneJobs: [Check]", outcome(HostJob::Deploy, 8, ok()), "[Check, Deploy]"),
        (&format!("CLAIM, {failed}"), outcome(HostJob::Deploy, 8, ok()), "[Deploy]"),
        ("CLAIM", outcome(HostJob::Deploy, 8, error(HostPresence::Answers)), "[] failed Deploy 1 at 100"),
        (
            &format!("CLAIM, {failed}"),
            outcome(HostJob::Deploy, 8, error(HostPresence::Answers)),
            "[] failed Deploy 3 at 100",
        ),
        (
            &format!("CLAIM, {failed}"),
            outcome(HostJob::Reset, 8, error(HostPresence::Silent)),
            "[] failed Reset 1 at 100 silent 100",
        ),
        // Of an earlier claim, or of one that has ended.
        ("CLAIM", outcome(HostJob::Check, 7, ok()), "[]"),
        ("state: Available", outcome(HostJob::Reset, 8, ok()), "[]"),
        ("CLAIM, silentSince: '1970-01-01T00:00:40Z'", outcome(HostJob::Check, 7, ok()), "[]"),
    ] {
        let once = recorded(&status(yaml), Some(&outcome), None);
        assert_eq!(shown(&once), expected, "{yaml} {outcome:?}");
        assert_eq!(recorded(&once, Some(&outcome), None), once, "{yaml} {outcome:?} again");
    }
}

#[test]
fn a_job_that_has_not_begun_is_no_attempt() {
    let failed = "failedJob: {job: Reset, attempts: 2, last: '1970-01-01T00:00:50Z', message: m}";
    for (yaml, expected) in
        [("CLAIM", "[] failed Reset 0 at 100"), (&format!("CLAIM, {failed}"), "[] failed Reset 2 at 100")]
    {
        let held = JobError { message: "held".to_owned(), presence: HostPresence::Unknown, begun: false };
        let outcome = outcome(HostJob::Reset, 8, Err(held));
        let once = recorded(&status(yaml), Some(&outcome), None);
        assert_eq!(shown(&once), expected, "{yaml}");
        assert_eq!(once.failed_job.as_ref().unwrap().message, "held", "{yaml}");
        assert_eq!(recorded(&once, Some(&outcome), None), once, "{yaml} again");
    }
}

#[test]
fn whether_a_host_answers_is_what_is_known_last() {
    use HostPresence::{Answers, Off, Silent, Unknown};
    let silent = "silentSince: '1970-01-01T00:00:40Z'";
    let off = "silentSince: '1970-01-01T00:00:40Z', poweredOff: true";
    for (yaml, job, probe, expected) in [
        ("", None, Some((Silent, at(60))), "[] silent 60"),
        ("", None, Some((Off, at(60))), "[] silent 60 off"),
        ("", None, Some((Answers, at(60))), "[]"),
        (silent, None, Some((Silent, at(60))), "[] silent 40"),
        (silent, None, Some((Off, at(60))), "[] silent 40 off"),
        (silent, None, Some((Answers, at(60))), "[]"),
        (silent, None, Some((Answers, at(30))), "[] silent 40"),
        (off, None, Some((Silent, at(60))), "[] silent 40 off"),
        (off, None, Some((Answers, at(60))), "[]"),
        (off, None, None, "[] silent 40 off"),
        ("", None, Some((Unknown, at(60))), "[]"),
        (off, None, Some((Unknown, at(60))), "[] silent 40 off"),
        (off, Some(error(Unknown)), None, "[] silent 40 off"),
        // The job ended at 100.
        ("", Some(error(Silent)), Some((Answers, at(60))), "[] silent 100"),
        ("", Some(error(Silent)), Some((Answers, at(120))), "[]"),
        (silent, Some(ok()), None, "[]"),
    ] {
        let outcome = job.map(|result| outcome(HostJob::Check, 1, result));
        let found = recorded(&status(yaml), outcome.as_ref(), probe);
        assert_eq!(shown(&found), expected, "{yaml} {outcome:?} {probe:?}");
    }
}

#[test]
fn a_power_hook_confirms_and_never_shows_that_the_host_answers() {
    let silent = "CLAIM, silentSince: '1970-01-01T00:00:40Z'";
    let off = "CLAIM, silentSince: '1970-01-01T00:00:40Z', poweredOff: true";
    for (yaml, result, probe, expected) in [
        (silent, ok(), None, "[PowerOff] silent 40 off"),
        (silent, ok(), Some((HostPresence::Silent, at(120))), "[PowerOff] silent 40 off"),
        (silent, ok(), Some((HostPresence::Answers, at(120))), "[PowerOff]"),
        (silent, error(HostPresence::Answers), None, "[] failed PowerOff 1 at 100 silent 40"),
        (off, error(HostPresence::Answers), None, "[] failed PowerOff 1 at 100 silent 40 off"),
    ] {
        let outcome = outcome(HostJob::PowerOff, 8, result);
        let found = recorded(&status(yaml), Some(&outcome), probe);
        assert_eq!(shown(&found), expected, "{yaml} {outcome:?} {probe:?}");
    }
}

#[test]
fn an_inspection_records_facts_and_residue_and_a_reset_ends_it() {
    let fence = JobFence { host: "h1".parse().unwrap(), machine: None, token: 8 };
    let facts = crate::machine::api::host_facts::HostFacts::from(&crate::model::facts::Facts::examples()[0]);
    let residue = vec!["x".repeat(2_000); 100];
    let result = Ok(HostFindings { facts: Some(facts.clone()), residue, largest_token: 0 });
    let inspected = JobOutcome { job: HostJob::Inspect, fence: fence.clone(), ended: at(100), result };
    let found = recorded(&status(""), Some(&inspected), None);
    assert_eq!((found.facts.as_ref(), found.residue.len(), found.residue[0].len()), (Some(&facts), 64, 1024));
    assert_eq!(found.inspected_at, Some(Time(at(100))));
    let reset = JobOutcome { job: HostJob::Reset, fence, ended: at(200), result: ok() };
    let clean = recorded(&found, Some(&reset), None);
    assert_eq!((clean.facts.as_ref(), clean.residue.len()), (Some(&facts), 0));
}

#[test]
fn an_inspection_raises_the_last_token_to_that_of_the_host() {
    for (job, largest_token, expected) in
        [(HostJob::Inspect, 0, 8), (HostJob::Inspect, 7, 8), (HostJob::Inspect, 9, 9), (HostJob::Check, 9, 8)]
    {
        let result = Ok(HostFindings { largest_token, ..HostFindings::default() });
        let outcome = outcome(job, 8, result);
        let once = recorded(&status("CLAIM"), Some(&outcome), None);
        assert_eq!((once.last_token, shown(&once)), (expected, format!("[{job:?}]")), "{largest_token}");
        assert_eq!(recorded(&once, Some(&outcome), None), once, "{largest_token} again");
    }
}
