//! All questions about a host in one program, all answers in one stream.
//!
//! # Guarantees
//! - Nothing on the host changes.
//! - The number of processes depends on which sorts of probe are asked, not on how many, with three
//!   exceptions: a key pair costs two `openssl`, a guard is a shell of its own, and so is what can be waited
//!   for.
//! - Every probe asked has an answer; what could not be found out is [`Answer::Failed`], never a guess.
//!
//! # Assumptions
//! A POSIX shell, GNU coreutils, and what is asked about (systemd for units, `ip` for routes). All names of
//! one sort are arguments of one process, so they may take about 2 MB together.

mod accounts;
mod authorized_keys;
mod conditions;
mod emptiness;
mod guards;
mod images;
mod kernel;
mod key_pairs;
mod mounts;
mod packages;
mod paths;
mod routes;
mod sum_line;
mod units;

use std::collections::{BTreeMap, BTreeSet};

use super::frame::{self, FrameError, Section, Sections};
use super::nonce::Nonce;
use crate::resource::contract::probe::{Answer, Observed, Probe};
use crate::transport::{Output, Program};

/// Why an observation cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ObserveError {
    /// The stream is not an answer of ours.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// One section cannot be read.
    #[error("the answer about {section} cannot be read: {found:?}")]
    Unreadable {
        /// What was asked.
        section: &'static str,
        /// The part that does not fit.
        found: String,
    },
}

/// Answers, while they are collected.
type Answers = BTreeMap<Probe, Answer>;

/// The program that answers all of `probes`. Its payload is empty.
pub fn program(probes: &BTreeSet<Probe>, nonce: &Nonce) -> Program {
    Program { script: frame::script(nonce, &ask(probes)), payload: Vec::new() }
}

/// What prints the answers.
pub(super) fn ask(probes: &BTreeSet<Probe>) -> Vec<Section> {
    [
        paths::ask(probes),
        emptiness::ask(probes),
        packages::ask(probes),
        units::ask(probes),
        kernel::ask(probes),
        images::ask(probes),
        key_pairs::ask(probes),
        routes::ask(probes),
        accounts::ask(probes),
        authorized_keys::ask(probes),
        mounts::ask(probes),
        guards::ask(probes),
        conditions::ask(probes),
    ]
    .concat()
}

/// The answers to `probes` in what the program for the same probes and nonce left.
///
/// # Errors
/// When the host printed nothing, too much, or something else than our program does.
pub fn parse(probes: &BTreeSet<Probe>, nonce: &Nonce, output: &Output) -> Result<Observed, ObserveError> {
    answer(probes, &Sections::parse(nonce, output.status, &output.stdout)?)
}

/// The answers in what was printed.
pub(super) fn answer(probes: &BTreeSet<Probe>, sections: &Sections) -> Result<Observed, ObserveError> {
    let mut answers = Answers::new();
    for answer in [
        paths::answer,
        emptiness::answer,
        packages::answer,
        units::answer,
        kernel::answer,
        images::answer,
        key_pairs::answer,
        routes::answer,
        accounts::answer,
        authorized_keys::answer,
        mounts::answer,
        guards::answer,
        conditions::answer,
    ] {
        answer(probes, sections, &mut answers)?;
    }
    Ok(Observed(answers))
}

#[cfg(test)]
mod tests;
