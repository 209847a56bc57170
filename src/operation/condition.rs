//! What a phase waits for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::class::FailureClass;
use super::effect::{Look, LookKey};
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
    /// What on the host makes it come about, and is looked at too.
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

/// Something on the host that a condition depends on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Cause {
    /// A systemd unit.
    Unit(String),
    /// The container of a static pod.
    Container(String),
}

impl Cause {
    /// The kubelet.
    pub fn kubelet() -> Self {
        Self::Unit("kubelet.service".to_owned())
    }

    /// The container of a static pod.
    pub fn container(name: &str) -> Self {
        Self::Container(name.to_owned())
    }

    /// The look that shows it.
    pub fn look(&self) -> Look {
        match self {
            Self::Unit(name) => Look::Unit(name.clone()),
            Self::Container(name) => Look::Container(name.clone()),
        }
    }
}
