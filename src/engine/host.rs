//! One host: observe, compare, apply, and observe again until nothing differs.

mod converge;
mod deadline;
mod look;
mod reboot;
mod work;

use std::collections::BTreeSet;
use std::time::Duration;

pub use self::converge::Convergence;
use self::deadline::Deadline;
pub use self::deadline::{Activity, Limits};
pub use self::look::Looked;
use super::Desired;
use super::cancel::CancelLevel;
use super::facts::{self, FactsError};
use super::nonce::Nonce;
use super::observe::{self, ObserveError};
use super::plan::Plan;
use super::share::Share;
use crate::model::event::Event;
use crate::model::facts::Facts;
use crate::model::name::HostName;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::step::CertificateRequest;
use crate::transport::error::TransportError;
use crate::transport::{Output, Program, Transport};

/// Signs certificates: takes the required content and the host's request (PEM), and returns the certificate (PEM, with
/// its chain) or the reason for a refusal.
pub type CertificateSigner<'a> = &'a (dyn Fn(&CertificateRequest, &str) -> Result<String, String> + Sync);

/// Receives the events of a session.
pub type EventSink<'a> = &'a (dyn Fn(Event) + Sync);

/// Why an operation on a host failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The host was not reached, or the connection broke.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// A program exceeded its limit; its channel was closed.
    #[error("{activity} {host} did not finish within {} s{}", limit.as_secs(), during(resources))]
    TimedOut {
        /// What the program did.
        activity: Activity,
        /// The host.
        host: HostName,
        /// See [`Limits`].
        limit: Duration,
        /// The resources that were being applied.
        resources: Vec<String>,
    },
    /// The collected facts are not usable.
    #[error(transparent)]
    Facts(#[from] FactsError),
    /// The observation is not usable.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// The plan refuses something; nothing was changed.
    #[error("refused: {}", refusals.iter().map(|(id, reason)| format!("{id}: {reason}")).collect::<Vec<_>>().join("; "))]
    Refused {
        /// Resource ids and reasons.
        refusals: Vec<(String, String)>,
    },
    /// A step failed. What precedes it in the plan is done; what follows it is not, except services that were started
    /// together with the one that failed.
    #[error("{} failed with status {status}: {}", resources.join(", "), output.trim_end())]
    Failed {
        /// The resources that the step was for.
        resources: Vec<String>,
        /// Its exit status.
        status: i32,
        /// The end of its output, at most 4 KiB.
        output: String,
    },
    /// The connection broke while resources were applied; whether they were changed is unknown.
    #[error("{error}{}", during(resources))]
    LostDuring {
        /// The resources that were being applied.
        resources: Vec<String>,
        /// Why.
        error: TransportError,
    },
    /// The program ended without reporting its result.
    #[error("its program ended early, {}{}{}", exit(*status), during(resources), detail(stderr))]
    EndedEarly {
        /// Of its shell.
        status: i32,
        /// The resources that were being applied.
        resources: Vec<String>,
        /// What the shell printed.
        stderr: String,
    },
    /// The run was cancelled: the current resource was finished, and no further one was begun.
    #[error("interrupted")]
    Interrupted,
    /// A certificate was not signed.
    #[error("certificate {certificate}: {reason}")]
    NotSigned {
        /// Path of the certificate.
        certificate: String,
        /// From the signer.
        reason: String,
    },
    /// The host did not come back in time after a reboot.
    #[error("{}: {reason}", resources.join(", "))]
    NotBack {
        /// The resources that the reboot was for.
        resources: Vec<String>,
        /// What was waited for, for how long, and what was seen last.
        reason: String,
    },
    /// All changes were applied, and these resources still differ.
    #[error("still differs after apply: {}", resources.join("; "))]
    StillDiffers {
        /// Each with what differs.
        resources: Vec<String>,
    },
}

/// Bytes of a script's output that an error has at most, about.
const OUTPUT: usize = 4096;

impl HostError {
    /// A script for this resource that failed, with the end of what it printed; warnings of containerd's ctr(1), which every
    /// command repeats, are left out.
    pub fn of_script(resource: &str, output: &Output) -> Self {
        let printed = String::from_utf8_lossy(&output.stderr);
        let mut size = 0;
        let mut lines: Vec<&str> = printed
            .lines()
            .rev()
            .filter(|line| !line.contains(" level=warning "))
            .take_while(|line| {
                size += line.len();
                size <= OUTPUT
            })
            .collect();
        lines.reverse();
        Self::Failed { resources: vec![resource.to_owned()], status: output.status, output: lines.join("\n") }
    }

    /// The connection error, if it is one.
    pub fn connection(&self) -> Option<&TransportError> {
        match self {
            Self::Transport(error) | Self::LostDuring { error, .. } => Some(error),
            _ => None,
        }
    }
}

impl HostError {
    /// A time-out, with the resources that were being applied.
    fn while_applying(self, current: Vec<String>) -> Self {
        match self {
            Self::TimedOut { activity, host, limit, .. } => {
                Self::TimedOut { activity, host, limit, resources: current }
            }
            other => other,
        }
    }
}

fn during(resources: &[String]) -> String {
    if resources.is_empty() { String::new() } else { format!(", while applying {}", few(resources)) }
}

/// The first resources, as many as fit into a line.
fn few(resources: &[String]) -> String {
    match resources {
        [one, two, three, _, rest @ ..] => format!("{one}, {two}, {three} and {} more", rest.len() + 1),
        few => few.join(", "),
    }
}

fn exit(status: i32) -> String {
    match status {
        // As in a shell: 128 and the signal's number.
        129..=192 => format!("by signal {}", status - 128),
        status => format!("with status {status}"),
    }
}

fn detail(stderr: &str) -> String {
    let message = stderr.trim_end();
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// A session on one host. Every program that it runs has a limit.
pub struct HostSession<'t> {
    name: HostName,
    transport: &'t dyn Transport,
    nonce: Nonce,
    share: Share,
    limits: Limits,
}

impl<'t> HostSession<'t> {
    /// On the host of `transport`. `nonce` marks metalform's own lines in the output.
    pub fn new(name: HostName, transport: &'t dyn Transport, nonce: Nonce) -> Self {
        Self { name, transport, nonce, share: Share::default(), limits: Limits::default() }
    }

    /// As one of the hosts of a run.
    #[must_use]
    pub fn sharing(self, share: &Share) -> Self {
        Self { share: share.clone(), ..self }
    }

    /// Replaces the default limits.
    #[must_use]
    pub fn within(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The host's name.
    pub fn name(&self) -> &HostName {
        &self.name
    }

    /// Collects facts, in one round trip.
    ///
    /// # Errors
    /// When the host cannot be reached, or lacks what every supported host has.
    pub async fn facts(&self) -> Result<Facts, HostError> {
        let deadline = self.deadline(Activity::Observe);
        let output = self.run(&facts::program(&self.nonce), &deadline).await?;
        Ok(facts::parse(&self.nonce, &output)?)
    }

    /// The answers to `probes`, in one round trip; in none when there are no probes. Changes nothing.
    ///
    /// # Errors
    /// When the host cannot be reached or its output is not an observation.
    pub async fn observe(&self, probes: &BTreeSet<Probe>) -> Result<Observed, HostError> {
        self.observe_within(probes, self.limits.observe).await
    }

    async fn observe_within(&self, probes: &BTreeSet<Probe>, limit: Duration) -> Result<Observed, HostError> {
        if probes.is_empty() {
            return Ok(Observed::default());
        }
        let deadline = Deadline::new(Activity::Observe, &self.name, limit);
        deadline.allow_for_probes(probes);
        let output = self.run(&observe::program(probes, &self.nonce), &deadline).await?;
        Ok(observe::parse(probes, &self.nonce, &output)?)
    }

    /// The changes that the host requires, in one round trip. Changes nothing. See [`HostSession::look_at`] for a plan that can
    /// be converged from.
    ///
    /// # Errors
    /// As [`HostSession::observe`]. Refusals are in the plan.
    pub async fn plan(&self, desired: &dyn Desired) -> Result<Plan, HostError> {
        let probes = desired.items().into_iter().flat_map(|item| item.probes).collect();
        let observed = self.observe(&probes).await?;
        Ok(Plan { verdicts: desired.verdicts(&observed) })
    }

    fn deadline(&self, activity: Activity) -> Deadline<'_> {
        let limit = match activity {
            Activity::Observe => self.limits.observe,
            Activity::Apply => self.limits.apply,
        };
        Deadline::new(activity, &self.name, limit)
    }

    async fn run(&self, program: &Program, deadline: &Deadline<'_>) -> Result<Output, HostError> {
        self.unless_cancelled(self.transport.run(program, &mut |_| {}), deadline).await
    }

    /// The output of a program that changes nothing and can be given up at any time.
    async fn unless_cancelled(
        &self,
        running: impl Future<Output = Result<Output, TransportError>>,
        deadline: &Deadline<'_>,
    ) -> Result<Output, HostError> {
        tokio::select! {
            output = deadline.enforce(running) => Ok(output??),
            () = self.share.cancel.reached(CancelLevel::AfterResource) => Err(HostError::Interrupted),
        }
    }
}

#[cfg(test)]
mod tests;
