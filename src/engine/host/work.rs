//! Applying a plan.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::timeout;

use super::deadline::Deadline;
use super::{Activity, CertificateSigner, EventSink, HostError, HostSession};
use crate::engine::apply::progress::{self, ProgressLine, ProgressSummary};
use crate::engine::apply::{self, CertificateWork, PackageManager, Reactions, Segment, Task};
use crate::engine::cancel::CancelLevel;
use crate::engine::observe;
use crate::engine::plan::Plan;
use crate::engine::process::Process;
use crate::engine::share::LARGE;
use crate::model::event::Event;
use crate::resource::contract::owed::Owed;
use crate::resource::contract::probe::{Observed, Probe};
use crate::transport::{Output, Program};

/// How long ending a program that exceeded its limit may take.
const END_LIMIT: Duration = Duration::from_secs(5);

/// What a session calls while it applies a plan.
#[derive(Clone, Copy)]
pub(super) struct Callbacks<'a> {
    pub(super) signer: CertificateSigner<'a>,
    pub(super) events: EventSink<'a>,
}

impl HostSession<'_> {
    /// Applies a plan in its order, up to the first failure. One round trip, and one more for each group of certificates
    /// and each reboot. The result is not verified; see [`HostSession::converge`].
    ///
    /// # Errors
    /// When the plan refuses something (then nothing is changed), a step fails, or the connection breaks.
    pub async fn apply(
        &self,
        plan: &Plan,
        packages: PackageManager,
        signer: CertificateSigner<'_>,
        events: EventSink<'_>,
    ) -> Result<(), HostError> {
        let callbacks = Callbacks { signer, events };
        self.apply_and_observe(plan, (&[], &BTreeSet::new(), &BTreeSet::new()), packages, callbacks)
            .await
            .map(drop)
    }

    /// The same, followed by an observation of `probes` in the same program. Of `reactions`, those that are owed, as those
    /// in `overdue` are already, are kept on the host until they have succeeded.
    ///
    /// # Errors
    /// As [`HostSession::apply`], and when the output is not an observation.
    pub(super) async fn apply_and_observe(
        &self,
        plan: &Plan,
        (reactions, overdue, probes): (&[Owed], &BTreeSet<Owed>, &BTreeSet<Probe>),
        packages: PackageManager,
        Callbacks { signer, events }: Callbacks<'_>,
    ) -> Result<Observed, HostError> {
        let refusals = plan.refusals();
        if !refusals.is_empty() {
            return Err(HostError::Refused { refusals });
        }
        let works = plan.works();
        if works.is_empty() {
            return self.observe(probes).await;
        }
        let observation = match probes.is_empty() {
            true => String::new(),
            false => observe::program(probes, &self.nonce).script,
        };
        let reactions =
            Reactions::of(reactions, overdue, &works.iter().map(|work| work.id.as_str()).collect());
        let segments = apply::segments(&works);
        let last = segments.len() - 1;
        let mut signed: Vec<Task> = Vec::new();
        let mut output = None;
        for (at, mut segment) in segments.into_iter().enumerate() {
            segment.tasks.splice(0..0, signed);
            segment.reactions = reactions.clone();
            let afterwards = if at == last { observation.as_str() } else { "" };
            let program = apply::program(&segment, packages, afterwards, &self.nonce);
            let deadline = self.deadline(Activity::Apply);
            deadline.allow_for_steps(segment.tasks.iter().flat_map(|task| &task.steps));
            if at == last {
                deadline.allow_for_probes(probes);
            }
            let (summary, printed) = self.run_segment(&segment, &program, events, &deadline).await?;
            signed = sign(&segment, &summary, signer)?;
            if let Some(work) = &segment.reboot {
                self.come_back(work, events).await?;
            }
            output = Some(printed);
        }
        match output {
            Some(output) if !probes.is_empty() => Ok(observe::parse(probes, &self.nonce, &output)?),
            _ => Ok(Observed::default()),
        }
    }

    async fn run_segment(
        &self,
        segment: &Segment,
        program: &Program,
        events: EventSink<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<(ProgressSummary, Output), HostError> {
        let _turn = self.turn(program, events).await?;
        let started = watch::Sender::new(None);
        let mut current = None;
        let mut report = |line: &str| {
            if let Some(line) = progress::parse(&self.nonce, line) {
                match line {
                    ProgressLine::Begin(number) => current = Some(number),
                    ProgressLine::Done(_) => current = None,
                    ProgressLine::At(ref process) => drop(started.send_replace(Some(process.clone()))),
                    _ => {}
                }
                deadline.restart();
                self.report(segment, line, events);
            }
        };
        let ran = tokio::select! {
            ran = deadline.enforce(self.transport.run(program, &mut report)) => ran,
            () = self.stop_when_cancelled(started.subscribe()) => return Err(HostError::Interrupted),
        };
        let current = current.map_or(Vec::new(), |number| resources(segment, number).to_vec());
        let output = match ran {
            Ok(Ok(output)) => output,
            Ok(Err(error)) if current.is_empty() => return Err(HostError::Transport(error)),
            Ok(Err(error)) => return Err(HostError::LostDuring { resources: current, error }),
            Err(error) => {
                let process = started.borrow().clone();
                if let Some(process) = process {
                    // What is left of it would disturb the next run. A host that is gone does not answer this either.
                    drop(timeout(END_LIMIT, self.transport.run(&process.end(), &mut |_| {})).await);
                }
                return Err(error.while_applying(current));
            }
        };
        let summary = ProgressSummary::of(&self.nonce, &output.stdout);
        match &summary.failed {
            Some((number, status, output)) => {
                let resources = resources(segment, *number).to_vec();
                Err(HostError::Failed { resources, status: *status, output: output.clone() })
            }
            None if summary.stopped => Err(HostError::Interrupted),
            None if !summary.ended && self.share.cancel.level() == CancelLevel::Now => {
                Err(HostError::Interrupted)
            }
            None if !summary.ended => {
                let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
                Err(HostError::EndedEarly { status: output.status, resources: current, stderr })
            }
            None => Ok((summary, output)),
        }
    }

    /// A permit to upload, for a large payload; waits for it before anything is done on the host.
    async fn turn(
        &self,
        program: &Program,
        events: EventSink<'_>,
    ) -> Result<Option<OwnedSemaphorePermit>, HostError> {
        if program.payload.len() < LARGE {
            return Ok(None);
        }
        if let Some(turn) = self.share.free_turn() {
            return Ok(Some(turn));
        }
        events(Event::Waiting {
            host: self.name.clone(),
            condition: "a free upload slot".to_owned(),
            last_seen: format!("{0} of {0} uploads are running", self.share.limit()),
            elapsed: Duration::ZERO,
        });
        tokio::select! {
            turn = self.share.turn() => Ok(Some(turn)),
            () = self.share.cancel.reached(CancelLevel::AfterResource) => Err(HostError::Interrupted),
        }
    }

    /// Stops the running program when the run is cancelled; returns once the program is not to be waited for any longer.
    /// Uses a channel of its own, since the program's standard input is its payload.
    async fn stop_when_cancelled(&self, mut started: watch::Receiver<Option<Process>>) {
        self.share.cancel.reached(CancelLevel::AfterResource).await;
        let begun =
            async { started.wait_for(Option::is_some).await.ok().and_then(|process| process.clone()) };
        let process = tokio::select! {
            process = begun => process,
            () = self.share.cancel.reached(CancelLevel::Now) => None,
        };
        let Some(process) = process else { return };
        // When this fails, the program's end is waited for all the same, or it ends with its connection.
        drop(self.transport.run(&process.stop(), &mut |_| {}).await);
        tracing::debug!("{}: requested to stop", self.name);
        self.share.cancel.reached(CancelLevel::Now).await;
        drop(self.transport.run(&process.end(), &mut |_| {}).await);
    }

    fn report(&self, segment: &Segment, line: ProgressLine, events: EventSink<'_>) {
        let host = || self.name.clone();
        let (number, event): (usize, Box<dyn Fn(String) -> Event + '_>) = match line {
            ProgressLine::Begin(number) => {
                (number, Box::new(move |resource| Event::ResourceBegun { host: host(), resource }))
            }
            ProgressLine::Done(number) => {
                (number, Box::new(move |resource| Event::ResourceDone { host: host(), resource }))
            }
            ProgressLine::Fail { number, status, output } => (
                number,
                Box::new(move |resource| Event::ResourceFailed {
                    host: host(),
                    resource,
                    status,
                    output: output.clone(),
                }),
            ),
            ProgressLine::Wait { number, reason } => (
                number,
                Box::new(move |resource| Event::Waiting {
                    host: host(),
                    condition: format!("{resource}: another process to release its lock"),
                    last_seen: reason.clone(),
                    elapsed: Duration::ZERO,
                }),
            ),
            ProgressLine::Request { .. }
            | ProgressLine::End
            | ProgressLine::At(_)
            | ProgressLine::Stopped => return,
        };
        resources(segment, number).iter().cloned().map(event).for_each(events);
    }
}

/// The resources of the task, request or reboot with this number.
fn resources(segment: &Segment, number: usize) -> &[String] {
    let task = segment.tasks.get(number).map(|task| &task.ids);
    let request = || number.checked_sub(segment.tasks.len()).and_then(|number| segment.requests.get(number));
    let reboot = || segment.reboot.as_ref().map(|work| &work.ids);
    task.or_else(|| request().map(|work| &work.ids)).or_else(reboot).map_or(&[], Vec::as_slice)
}

fn sign(
    segment: &Segment,
    summary: &ProgressSummary,
    signer: CertificateSigner<'_>,
) -> Result<Vec<Task>, HostError> {
    let not_signed = |work: &CertificateWork, reason: String| HostError::NotSigned {
        certificate: work.request.certificate.clone(),
        reason,
    };
    (segment.tasks.len()..)
        .zip(&segment.requests)
        .map(|(number, work)| {
            let pem = summary.requests.get(&number);
            let pem =
                pem.ok_or_else(|| not_signed(work, "the host sent no certificate request".to_owned()))?;
            let certificate = signer(&work.request, pem).map_err(|reason| not_signed(work, reason))?;
            Ok(work.written(certificate))
        })
        .collect()
}
