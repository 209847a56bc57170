//! All probes of a host in one program, all answers in one stream.
//!
//! # Guarantees
//! - Nothing on the host changes.
//! - The number of processes depends on the kinds of probes, not on their number, with three exceptions: a key pair
//!   costs an `openssl`, and a guard and a condition each cost a shell.
//! - Every probe has an answer; what could not be determined is [`Answer::Failed`], never a guess.
//!
//! # Assumptions
//! A POSIX shell, GNU coreutils, and the tools of the kind (systemd for units, `ip` for routes). All names of one kind
//! are arguments of one process, so they may take about 2 MB together.

mod accounts;
mod authorized_keys;
mod conditions;
mod emptiness;
mod guards;
mod images;
mod kernel;
mod key_pairs;
mod listeners;
mod mounts;
mod owed;
mod packages;
mod paths;
mod questions;
mod routes;
mod sum_line;
mod units;
mod written;

use std::collections::{BTreeMap, BTreeSet};

use self::questions::Questions;
use super::frame::{self, FrameError, Section, Sections};
use super::nonce::Nonce;
use crate::resource::contract::probe::{Answer, Observed, Probe};
use crate::transport::{Output, Program};

/// Why an observation is not usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObserveError {
    /// The output is not that of an observation.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A section cannot be parsed.
    #[error("cannot parse the host's answer about {section}: {found:?}")]
    Unreadable {
        /// Name of the section.
        section: &'static str,
        /// The part that cannot be parsed.
        found: String,
    },
}

/// Answers, while they are collected.
type Answers = BTreeMap<Probe, Answer>;

/// The program that answers all of `probes`. Its payload is empty.
pub fn program(probes: &BTreeSet<Probe>, nonce: &Nonce) -> Program {
    Program { script: frame::script(nonce, &ask(probes)), payload: Vec::new() }
}

/// One topic of the observation.
struct Topic {
    is_asked: fn(&Questions<'_>) -> bool,
    ask: fn(&Questions<'_>) -> Vec<Section>,
    answer: fn(&Questions<'_>, &Sections, &mut Answers) -> Result<(), ObserveError>,
}

macro_rules! topic {
    ($module:ident, $is_asked:expr) => {
        Topic { is_asked: $is_asked, ask: $module::ask, answer: $module::answer }
    };
}

/// All topics, in the order of their sections.
const TOPICS: [Topic; 16] = [
    topic!(paths, |questions| !questions.paths.is_empty()),
    topic!(emptiness, |questions| !questions.emptiness.is_empty()),
    topic!(packages, |questions| !questions.packages.is_empty()),
    topic!(units, |questions| !questions.units.is_empty()),
    topic!(written, |questions| !questions.written.is_empty()),
    topic!(listeners, |questions| !questions.listeners.is_empty()),
    topic!(kernel, |questions| questions.kernel()),
    topic!(images, |questions| !questions.images.is_empty()),
    topic!(key_pairs, |questions| !questions.key_pairs.is_empty()),
    topic!(routes, |questions| !questions.routes.is_empty()),
    topic!(accounts, |questions| questions.accounts()),
    topic!(authorized_keys, |questions| !questions.authorized_keys.is_empty()),
    topic!(mounts, |questions| !questions.mounts.is_empty()),
    topic!(owed, |questions| !questions.owed.is_empty()),
    topic!(guards, |questions| !questions.guards.is_empty()),
    topic!(conditions, |questions| !questions.conditions.is_empty()),
];

/// The sections that answer `probes`.
pub(super) fn ask(probes: &BTreeSet<Probe>) -> Vec<Section> {
    let questions = Questions::of(probes);
    TOPICS
        .iter()
        .filter(|topic| (topic.is_asked)(&questions))
        .flat_map(|topic| (topic.ask)(&questions))
        .collect()
}

/// The answers in the output of [`program`] for the same probes and nonce.
///
/// # Errors
/// When the output is empty, too large, or not that of the program.
pub fn parse(probes: &BTreeSet<Probe>, nonce: &Nonce, output: &Output) -> Result<Observed, ObserveError> {
    answer(probes, &Sections::parse(nonce, output.status, &output.stdout)?)
}

/// The answers in these sections.
pub(super) fn answer(probes: &BTreeSet<Probe>, sections: &Sections) -> Result<Observed, ObserveError> {
    let questions = Questions::of(probes);
    let mut answers = Answers::new();
    for topic in TOPICS.iter().filter(|topic| (topic.is_asked)(&questions)) {
        (topic.answer)(&questions, sections, &mut answers)?;
    }
    Ok(Observed(answers))
}

#[cfg(test)]
mod tests;
