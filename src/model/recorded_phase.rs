//! What became of the phases of an operation, from its events.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::event::{Event, from_seconds, seconds};
use super::name::HostName;

/// What became of a phase on one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedPhase {
    /// The host.
    pub host: HostName,
    /// Its title.
    pub phase: String,
    /// How it ended.
    pub outcome: PhaseOutcome,
    /// Zero where it has not ended.
    #[serde(rename = "seconds", serialize_with = "seconds", deserialize_with = "from_seconds")]
    pub took: Duration,
    /// What it waited for last and what was seen then; empty where it holds.
    pub cause: String,
}

/// How a phase ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseOutcome {
    /// It succeeded.
    Holds,
    /// It failed.
    Failed,
    /// The operation ended before it did.
    NotCompleted,
}

impl PhaseOutcome {
    /// In tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Failed => "FAILED",
            Self::NotCompleted => "not completed",
        }
    }
}

/// The phases of each host, in the order in which they began; hosts in the order of their names.
pub fn recorded_phases<'a>(events: impl IntoIterator<Item = &'a Event>) -> Vec<RecordedPhase> {
    let mut found: BTreeMap<HostName, Vec<RecordedPhase>> = BTreeMap::new();
    for event in events {
        let Some(host) = event.host() else { continue };
        match event {
            Event::PhaseBegun { phase, .. } => found.entry(host.clone()).or_default().push(RecordedPhase {
                host: host.clone(),
                phase: phase.clone(),
                outcome: PhaseOutcome::NotCompleted,
                took: Duration::ZERO,
                cause: String::new(),
            }),
            Event::PhaseEnded { phase, elapsed, holds, .. } => {
                let phases = found.entry(host.clone()).or_default();
                if let Some(known) = phases.iter_mut().rfind(|known| known.phase == *phase) {
                    known.took = *elapsed;
                    known.outcome = if *holds { PhaseOutcome::Holds } else { PhaseOutcome::Failed };
                    if *holds {
                        known.cause.clear();
                    }
                }
            }
            Event::Waiting { condition, last_seen, .. } => {
                let phases = found.entry(host.clone()).or_default();
                if let Some(last) =
                    phases.iter_mut().rfind(|phase| phase.outcome == PhaseOutcome::NotCompleted)
                {
                    last.cause = match last_seen.as_str() {
                        "" => format!("waited for {condition}"),
                        seen => format!("waited for {condition}: {seen}"),
                    };
                }
            }
            _ => {}
        }
    }
    found.into_values().flatten().collect()
}
