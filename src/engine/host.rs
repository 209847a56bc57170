//! One host: ask, compare, do, and ask again until nothing differs.

mod converge;
mod look;
mod patience;
mod reboot;
mod work;

use std::collections::BTreeSet;

pub use self::converge::Outcome;
pub use self::look::Looked;
use super::Desired;
use super::facts::{self, FactsError};
use super::nonce::Nonce;
use super::observe::{self, ObserveError};
use super::plan::Plan;
use super::share::Share;
use super::stop::Asked;
use crate::model::event::Event;
use crate::model::facts::Facts;
use crate::model::name::HostName;
use crate::resource::contract::change::Verdict;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::step::CertificateRequest;
use crate::transport::error::TransportError;
use crate::transport::{Output, Program, Transport};

/// Who signs: gets what the certificate must say and the host's request (PEM), and gives the certificate
/// (PEM, with its chain) or the reason why not.
pub type Signer<'a> = &'a (dyn Fn(&CertificateRequest, &str) -> Result<String, String> + Sync);

/// Who is told what happens.
pub type Events<'a> = &'a (dyn Fn(Event) + Sync);

/// Why a host is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// It could not be reached, or not to the end.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// It is there, and does not say what there is of it.
    #[error("it has not answered for {seconds} s")]
    Silent {
        /// How long was waited.
        seconds: u64,
    },
    /// What it answered about itself cannot be used.
    #[error(transparent)]
    Facts(#[from] FactsError),
    /// What it answered about its resources cannot be used.
    #[error(transparent)]
    Observe(#[from] ObserveError),
    /// The plan says that something must not be done; nothing was.
    #[error("refused: {}", refusals.iter().map(|(id, reason)| format!("{id}: {reason}")).collect::<Vec<_>>().join("; "))]
    Refused {
        /// Resource ids and reasons.
        refusals: Vec<(String, String)>,
    },
    /// A step failed; what was before it is done. What is after it is not, but for services that were started
    /// together with the one that failed.
    #[error("{} failed with status {status}: {}", resources.join(", "), output.trim_end())]
    Failed {
        /// The resources that the step was for.
        resources: Vec<String>,
        /// Its exit status.
        status: i32,
        /// The end of what it printed, at most 4 KiB.
        output: String,
    },
    /// The way to it broke in the middle of a change; whether that was made is not known.
    #[error("{error}, in the middle of {}", few(resources))]
    LostDuring {
        /// What was at hand.
        resources: Vec<String>,
        /// Why.
        error: TransportError,
    },
    /// The program ended without saying how.
    #[error("its program ended early, {}{}", ending(*status, resources), said(stderr))]
    EndedEarly {
        /// Of its shell.
        status: i32,
        /// What was at hand.
        resources: Vec<String>,
        /// What the shell printed.
        stderr: String,
    },
    /// It was asked to stop on the way: the resource at hand was finished, and what comes after it was not begun.
    #[error("stopped on the way, as asked")]
    Stopped,
    /// A certificate was not signed.
    #[error("certificate {certificate}: {reason}")]
    NotSigned {
        /// Path of the certificate.
        certificate: String,
        /// What the signer said.
        reason: String,
    },
    /// It was told to reboot, and did not come back in time.
    #[error("{}: {reason}", resources.join(", "))]
    NotBack {
        /// The resources that the reboot was for.
        resources: Vec<String>,
        /// What was waited for, for how long, and what was seen last.
        reason: String,
    },
    /// Everything was done, and still these are not what they should be.
    #[error("still not as it should be after it was changed: {}", resources.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>().join(", "))]
    StillDiffers {
        /// Resource ids, and what is still to be done for them.
        resources: Vec<(String, Verdict)>,
    },
}

impl HostError {
    /// What is wrong with the way to the host, if it is that.
    pub fn way(&self) -> Option<&TransportError> {
        match self {
            Self::Transport(error) | Self::LostDuring { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// As many resources as fit into a line.
fn few(resources: &[String]) -> String {
    match resources {
        [one, two, three, _, rest @ ..] => format!("{one}, {two}, {three} and {} more", rest.len() + 1),
        few => few.join(", "),
    }
}

fn ending(status: i32, resources: &[String]) -> String {
    let how = match status {
        // As a shell has it: 128 and the signal's number.
        129..=192 => format!("by signal {}", status - 128),
        status => format!("with status {status}"),
    };
    if resources.is_empty() { how } else { format!("{how}, in the middle of {}", few(resources)) }
}

fn said(stderr: &str) -> String {
    let said = stderr.trim_end();
    if said.is_empty() { String::new() } else { format!(": {said}") }
}

/// One host, for the length of a session.
pub struct Host<'t> {
    name: HostName,
    transport: &'t dyn Transport,
    nonce: Nonce,
    share: Share,
}

impl<'t> Host<'t> {
    /// A host that `transport` reaches. `nonce` marks our lines in its output.
    pub fn new(name: HostName, transport: &'t dyn Transport, nonce: Nonce) -> Self {
        Self { name, transport, nonce, share: Share::default() }
    }

    /// One of the hosts of a run, with what they share.
    #[must_use]
    pub fn sharing(self, share: &Share) -> Self {
        Self { share: share.clone(), ..self }
    }

    /// Its name.
    pub fn name(&self) -> &HostName {
        &self.name
    }

    /// What it is. One round trip.
    ///
    /// # Errors
    /// When it cannot be reached, or lacks what every supported host has.
    pub async fn facts(&self) -> Result<Facts, HostError> {
        let output = self.run(&facts::program(&self.nonce)).await?;
        Ok(facts::parse(&self.nonce, &output)?)
    }

    /// The answers to `probes`. One round trip, none when there is nothing to ask. Changes nothing.
    ///
    /// # Errors
    /// When it cannot be reached or its answer is not one.
    pub async fn observe(&self, probes: &BTreeSet<Probe>) -> Result<Observed, HostError> {
        if probes.is_empty() {
            return Ok(Observed::default());
        }
        let output = self.run(&observe::program(probes, &self.nonce)).await?;
        Ok(observe::parse(probes, &self.nonce, &output)?)
    }

    /// What would make it what it should be. One round trip. Changes nothing.
    ///
    /// # Errors
    /// As [`Host::observe`]. Refusals are in the plan.
    pub async fn plan(&self, desired: &dyn Desired) -> Result<Plan, HostError> {
        let probes = desired.items().into_iter().flat_map(|item| item.probes).collect();
        let observed = self.observe(&probes).await?;
        Ok(Plan { verdicts: desired.verdicts(&observed) })
    }

    async fn run(&self, program: &Program) -> Result<Output, HostError> {
        self.unless_stopped(self.transport.run(program, &mut |_| {})).await
    }

    /// What a program gives that changes nothing, and may be given up at any time.
    async fn unless_stopped(
        &self,
        running: impl Future<Output = Result<Output, TransportError>>,
    ) -> Result<Output, HostError> {
        tokio::select! {
            output = running => Ok(output?),
            () = self.share.stop.reached(Asked::AfterResource) => Err(HostError::Stopped),
        }
    }
}

#[cfg(test)]
mod tests;
