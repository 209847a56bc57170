//! Carrying out a plan.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, watch};

use super::{Events, Host, HostError, Signer};
use crate::engine::apply::progress::{self, Line, Summary};
use crate::engine::apply::{self, CertificateWork, PackageManager, Segment, Task};
use crate::engine::observe;
use crate::engine::plan::Plan;
use crate::engine::process::Process;
use crate::engine::share::LARGE;
use crate::engine::stop::Asked;
use crate::model::event::Event;
use crate::resource::contract::probe::{Observed, Probe};
use crate::transport::{Output, Program};

impl Host<'_> {
    /// Does what the plan says, in its order, up to the first failure. One round trip, and one more for each
    /// group of certificates and each reboot.
    ///
    /// # Errors
    /// When the plan refuses something (then nothing is done), a step fails, or the host is lost.
    pub async fn apply(
        &self,
        plan: &Plan,
        packages: PackageManager,
        signer: Signer<'_>,
        events: Events<'_>,
    ) -> Result<(), HostError> {
        self.apply_and_observe(plan, &BTreeSet::new(), packages, (signer, events)).await.map(drop)
    }

    /// The same, and then asks `probes`, in the same program.
    ///
    /// # Errors
    /// As [`Host::apply`], and when the answer is not one.
    pub(super) async fn apply_and_observe(
        &self,
        plan: &Plan,
        probes: &BTreeSet<Probe>,
        packages: PackageManager,
        (signer, events): (Signer<'_>, Events<'_>),
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
        let segments = apply::segments(&works);
        let last = segments.len() - 1;
        let mut signed: Vec<Task> = Vec::new();
        let mut output = None;
        for (at, mut segment) in segments.into_iter().enumerate() {
            segment.tasks.splice(0..0, signed);
            let afterwards = if at == last { observation.as_str() } else { "" };
            let program = apply::program(&segment, packages, afterwards, &self.nonce);
            let (summary, printed) = self.run_segment(&segment, &program, events).await?;
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
        events: Events<'_>,
    ) -> Result<(Summary, Output), HostError> {
        let _turn = self.turn(program, events).await?;
        let started = watch::Sender::new(None);
        let mut at_hand = None;
        let mut report = |line: &str| {
            if let Some(line) = progress::parse(&self.nonce, line) {
                match line {
                    Line::Begin(number) => at_hand = Some(number),
                    Line::Done(_) => at_hand = None,
                    Line::At(ref process) => drop(started.send_replace(Some(process.clone()))),
                    _ => {}
                }
                self.tell(segment, line, events);
            }
        };
        let ran = tokio::select! {
            ran = self.transport.run(program, &mut report) => ran,
            () = self.stop_when_asked(started.subscribe()) => return Err(HostError::Stopped),
        };
        let at_hand = at_hand.map_or(Vec::new(), |number| resources(segment, number).to_vec());
        let output = ran.map_err(|error| match at_hand[..] {
            [] => HostError::Transport(error),
            _ => HostError::LostDuring { resources: at_hand.clone(), error },
        })?;
        let summary = Summary::of(&self.nonce, &output.stdout);
        match &summary.failed {
            Some((number, status, output)) => {
                let resources = resources(segment, *number).to_vec();
                Err(HostError::Failed { resources, status: *status, output: output.clone() })
            }
            None if summary.stopped => Err(HostError::Stopped),
            None if !summary.ended && self.share.stop.asked() == Asked::Now => Err(HostError::Stopped),
            None if !summary.ended => {
                let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
                Err(HostError::EndedEarly { status: output.status, resources: at_hand, stderr })
            }
            None => Ok((summary, output)),
        }
    }

    /// A turn to upload, when there is much to upload. Nothing is done to the host meanwhile.
    async fn turn(
        &self,
        program: &Program,
        events: Events<'_>,
    ) -> Result<Option<OwnedSemaphorePermit>, HostError> {
        if program.payload.len() < LARGE {
            return Ok(None);
        }
        if let Some(turn) = self.share.free_turn() {
            return Ok(Some(turn));
        }
        events(Event::Waiting {
            host: self.name.clone(),
            condition: "its turn to upload".to_owned(),
            last_seen: format!("{0} of {0} uploads are under way", self.share.limit()),
            elapsed: Duration::ZERO,
        });
        tokio::select! {
            turn = self.share.turn() => Ok(Some(turn)),
            () = self.share.stop.reached(Asked::AfterResource) => Err(HostError::Stopped),
        }
    }

    /// Tells the program that runs to stop, when that is asked; ends once it shall be waited for no longer.
    /// Over a channel of its own: what the program reads on its input is its payload.
    async fn stop_when_asked(&self, mut started: watch::Receiver<Option<Process>>) {
        self.share.stop.reached(Asked::AfterResource).await;
        let begun =
            async { started.wait_for(Option::is_some).await.ok().and_then(|process| process.clone()) };
        let process = tokio::select! {
            process = begun => process,
            () = self.share.stop.reached(Asked::Now) => None,
        };
        let Some(process) = process else { return };
        // Where it cannot be told, its end is waited for all the same, or it is ended with its connection.
        drop(self.transport.run(&process.stop(), &mut |_| {}).await);
        tracing::debug!("{}: asked to stop", self.name);
        self.share.stop.reached(Asked::Now).await;
        drop(self.transport.run(&process.end(), &mut |_| {}).await);
    }

    fn tell(&self, segment: &Segment, line: Line, events: Events<'_>) {
        let host = || self.name.clone();
        let (number, event): (usize, Box<dyn Fn(String) -> Event + '_>) = match line {
            Line::Begin(number) => {
                (number, Box::new(move |resource| Event::ResourceBegun { host: host(), resource }))
            }
            Line::Done(number) => {
                (number, Box::new(move |resource| Event::ResourceDone { host: host(), resource }))
            }
            Line::Fail { number, status, output } => (
                number,
                Box::new(move |resource| Event::ResourceFailed {
                    host: host(),
                    resource,
                    status,
                    output: output.clone(),
                }),
            ),
            Line::Wait { number, reason } => (
                number,
                Box::new(move |resource| Event::Waiting {
                    host: host(),
                    condition: format!("{resource}: another process to let go"),
                    last_seen: reason.clone(),
                    elapsed: Duration::ZERO,
                }),
            ),
            Line::Request { .. } | Line::End | Line::At(_) | Line::Stopped => return,
        };
        resources(segment, number).iter().cloned().map(event).for_each(events);
    }
}

/// Whom a line's number is about.
fn resources(segment: &Segment, number: usize) -> &[String] {
    let task = segment.tasks.get(number).map(|task| &task.ids);
    let request = || number.checked_sub(segment.tasks.len()).and_then(|number| segment.requests.get(number));
    let reboot = || segment.reboot.as_ref().map(|work| &work.ids);
    task.or_else(|| request().map(|work| &work.ids)).or_else(reboot).map_or(&[], Vec::as_slice)
}

fn sign(segment: &Segment, summary: &Summary, signer: Signer<'_>) -> Result<Vec<Task>, HostError> {
    let not_signed = |work: &CertificateWork, reason: String| HostError::NotSigned {
        certificate: work.request.certificate.clone(),
        reason,
    };
    (segment.tasks.len()..)
        .zip(&segment.requests)
        .map(|(number, work)| {
            let pem = summary.requests.get(&number);
            let pem = pem.ok_or_else(|| not_signed(work, "the host sent no request".to_owned()))?;
            let certificate = signer(&work.request, pem).map_err(|reason| not_signed(work, reason))?;
            Ok(work.written(certificate))
        })
        .collect()
}
