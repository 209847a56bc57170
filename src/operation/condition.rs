//! What a phase waits for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cause::Cause;
use super::class::FailureClass;
use super::effect::LookKey;
use super::parts::host::HostPart;

/// A condition that comes about by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// `node-1 to be Ready`. Two waits with the same sentence are the same wait.
    pub sentence: String,
    /// Decides the exit code when the limit passes.
    pub class: FailureClass,
    /// What is there instead, causes included.
    pub last_seen: String,
    /// How long it may take in all.
    pub limit: Duration,
    /// What to look at again.
    pub looks: Vec<LookKey>,
    /// What it depends on, and is looked at too.
    pub causes: Vec<Cause>,
    /// Why it will never come about, if the causes show that.
    pub hopeless: Option<String>,
}

impl Condition {
    /// A condition that depends on these units and containers of the host: what is wrong with them is part of what
    /// was last seen, and a permanent failure ends the wait.
    #[must_use]
    pub fn caused_by(mut self, host: &HostPart, causes: Vec<Cause>) -> Self {
        let lines = std::iter::once(self.last_seen).chain(host.complaints(&causes));
        self.last_seen = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ");
        self.hopeless = host.hopeless(&causes);
        self.causes = causes;
        self
    }
}
