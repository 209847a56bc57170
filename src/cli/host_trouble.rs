//! What went wrong with single hosts of a fleet, told once at the end.

use std::collections::BTreeMap;

use super::failure::{Exit, Failure, chain};
use super::mend;
use crate::engine::fleet::FleetOutcome;
use crate::engine::fleet::schedule::Halt;
use crate::engine::host::HostError;
use crate::engine::roster::RosterFault;
use crate::model::event::HostOutcome;
use crate::model::name::HostName;
use crate::transport::error::TransportError;

/// Why there is nothing to show of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostTrouble {
    /// It was set aside.
    Unreachable(TransportError),
    /// It was reached, and failed.
    Failed(HostError),
    /// Its states come to nothing; it was asked what it is, and no more.
    States(Vec<RosterFault>),
    /// Nothing was begun with it.
    NotBegun(Halt),
}

/// What became of each host, in the order of their names.
pub type Outcomes<T> = Vec<(HostName, Result<T, HostTrouble>)>;

/// Puts those that could not be reached in their place again.
pub fn outcomes<T>(fleet: FleetOutcome<Result<T, Vec<RosterFault>>>) -> Outcomes<T> {
    let reached = fleet.reached.into_iter().map(|(name, result)| {
        let result = match result {
            Ok(done) => done.map_err(HostTrouble::States),
            Err(error) => Err(HostTrouble::Failed(error)),
        };
        (name, result)
    });
    let unreachable =
        fleet.unreachable.into_iter().map(|(name, error)| (name, Err(HostTrouble::Unreachable(error))));
    let halted = fleet.halted;
    let not_begun =
        fleet.not_begun.into_iter().filter_map(|name| Some((name, Err(HostTrouble::NotBegun(halted?)))));
    let mut all: Outcomes<T> = reached.chain(unreachable).chain(not_begun).collect();
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    all
}

/// What the operator must know; `None` when nothing went wrong.
pub fn failure<'a>(troubles: impl Iterator<Item = (&'a HostName, &'a HostTrouble)>) -> Option<Failure> {
    let mut all = Failure { exit: Exit::Ssh, errors: Vec::new(), hints: Vec::new() };
    // What many hosts have in common is one line.
    let mut together: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (host, trouble) in troubles {
        let exit = trouble.exit();
        if weight(exit) > weight(all.exit) {
            all.exit = exit;
        }
        if let Some(line) = trouble.shared() {
            together.entry(line).or_default().push(host.as_str());
            continue;
        }
        all.errors.extend(trouble.lines().into_iter().map(|line| format!("{host}: {line}")));
        for hint in trouble.hints() {
            if !all.hints.contains(&hint) {
                all.hints.push(hint);
            }
        }
    }
    all.errors.extend(together.into_iter().map(|(line, hosts)| format!("{line}: {}", hosts.join(", "))));
    if all.exit == Exit::Interrupted {
        all.hints.push("the same command goes on from here".to_owned());
    }
    (!all.errors.is_empty()).then_some(all)
}

/// Of several exit codes, the one that concerns what was touched: a host that failed in the middle needs a
/// person sooner than one that was never reached. Who interrupted a run knows that it is not done.
fn weight(exit: Exit) -> u8 {
    match exit {
        Exit::Interrupted => 4,
        Exit::Host => 3,
        Exit::Refused => 2,
        Exit::Configuration => 1,
        _ => 0,
    }
}

impl HostTrouble {
    fn exit(&self) -> Exit {
        match self {
            Self::Unreachable(_) => Exit::Ssh,
            Self::Failed(error) if error.connection().is_some() => Exit::Ssh,
            Self::Failed(HostError::Refused { .. }) => Exit::Refused,
            Self::Failed(HostError::Interrupted) | Self::NotBegun(Halt::Cancelled) => Exit::Interrupted,
            Self::Failed(_) => Exit::Host,
            Self::States(_) => Exit::Configuration,
            // Those that failed say what went wrong.
            Self::NotBegun(Halt::Failures { .. }) => Exit::Ssh,
        }
    }

    /// What is said of all such hosts in one line.
    fn shared(&self) -> Option<String> {
        match self {
            Self::Failed(HostError::Interrupted) => Some("stopped on the way, as asked".to_owned()),
            Self::NotBegun(halt) => Some(format!("not begun, because {halt}")),
            _ => None,
        }
    }

    /// What the host is now.
    pub fn outcome(&self) -> HostOutcome {
        match self {
            Self::Unreachable(_) => HostOutcome::Unreachable,
            Self::Failed(HostError::Interrupted) => HostOutcome::Stopped,
            Self::Failed(_) | Self::States(_) => HostOutcome::Failed,
            Self::NotBegun(_) => HostOutcome::NotBegun,
        }
    }

    /// What went wrong, a line for each thing.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Unreachable(error) => vec![chain(error)],
            Self::Failed(HostError::Refused { refusals }) => {
                refusals.iter().map(|(id, reason)| format!("{id}: {reason}")).collect()
            }
            Self::Failed(HostError::Failed { resources, status, output }) => {
                let said = output.trim_end().lines().next_back().unwrap_or("it printed nothing");
                vec![format!("{} failed with status {status}: {said}", resources.join(", "))]
            }
            Self::Failed(error) => vec![chain(error)],
            Self::States(faults) => faults.iter().map(ToString::to_string).collect(),
            Self::NotBegun(halt) => vec![format!("not begun: {halt}")],
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Unreachable(error) | Self::Failed(HostError::Transport(error)) => vec![way(error)],
            Self::Failed(HostError::Refused { .. }) => vec!["correct the host or the state".to_owned()],
            Self::Failed(HostError::Interrupted) | Self::NotBegun(_) => Vec::new(),
            Self::Failed(HostError::Failed { output, .. }) if needs_root(output) => {
                vec!["the login user may not do that: user: root or sudo: true in the roster".to_owned()]
            }
            Self::Failed(HostError::TimedOut { .. }) => vec![
                "something hangs there (a network file system, a disk, a guard); nothing was changed"
                    .to_owned(),
            ],
            Self::Failed(HostError::LostDuring { .. }) => vec![LOST.to_owned()],
            Self::Failed(HostError::Failed { output, .. }) => vec![mend::advice(output).to_owned()],
            Self::Failed(_) => vec!["when that is mended, the same command goes on from here".to_owned()],
            Self::States(faults) => faults.iter().filter_map(RosterFault::hint).collect(),
        }
    }
}

/// Whether a program failed for want of privilege: by the texts of EACCES and EPERM, and what apt, dnf and
/// systemctl say instead.
fn needs_root(output: &str) -> bool {
    let last = output.trim_end().lines().next_back().unwrap_or_default();
    ["Permission denied", "Operation not permitted", "are you root?", "superuser privileges", "Access denied"]
        .iter()
        .any(|text| last.contains(text))
}

const LOST: &str = "what was at hand there may be half done; once the host can be reached again, the same command goes on from it";

fn way(error: &TransportError) -> String {
    match error {
        TransportError::HostKeyUnknown { .. } => {
            "compare its key on the host, then pin it in the roster: host_key: ssh-ed25519 AAAA...; accept-new there trusts the first one"
        }
        TransportError::HostKeyMismatch { .. } => {
            "another machine answers there, or it was installed anew: correct host_key in the roster"
        }
        TransportError::AuthenticationRefused { .. } | TransportError::IdentityUnreadable { .. } => {
            "key: in the roster names the private key to offer, identities_only: true leaves out others of the agent"
        }
        TransportError::PassphraseMissing { path, .. } => {
            return format!("ssh-add {path} gives it to the agent; --key-passphrase-file reads its passphrase");
        }
        TransportError::SudoRefused { .. } => {
            "--ask-sudo-password or --sudo-password-file gives sudo's password; or allow it without one in /etc/sudoers.d"
        }
        TransportError::NoShell { .. } => "ssh USER@ADDRESS sh must run the POSIX shell, and nothing before it may exit",
        TransportError::Incompatible { .. } => "an OpenSSH of the last ten years has one",
        TransportError::KnownHosts { .. } => "--known-hosts names another file",
        TransportError::Lost { .. } => "the same command goes on from here",
        TransportError::Unreachable { .. } => "is the host on, and is the address in the roster its own?",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away() -> HostTrouble {
        let reason = "no route".to_owned();
        HostTrouble::Unreachable(TransportError::Unreachable { host: "192.0.2.1:22".to_owned(), reason })
    }

    fn broken() -> HostTrouble {
        let output = "one\nlast words\n\n".to_owned();
        HostTrouble::Failed(HostError::Failed { resources: vec!["command:x".to_owned()], status: 3, output })
    }

    #[test]
    fn a_login_user_who_may_not_is_told_what_to_say_in_the_roster() {
        let failed = |output: &str| {
            let resources = vec!["file:/etc/x".to_owned()];
            HostTrouble::Failed(HostError::Failed { resources, status: 1, output: output.to_owned() }).hints()
        };
        assert!(failed("sh: 1: cannot create /etc/x: Permission denied\n")[0].contains("sudo: true"));
        assert!(!failed("Permission denied, then retried\nNo space left on device\n")[0].contains("sudo"));
    }

    #[test]
    fn a_host_that_failed_counts_more_than_one_that_is_away() {
        let names: [HostName; 2] = ["a".parse().unwrap(), "b".parse().unwrap()];
        let all = [away(), broken()];
        let failed = failure(names.iter().zip(&all)).unwrap();
        assert_eq!(failed.exit, Exit::Host);
        assert_eq!(
            failed.errors,
            ["a: 192.0.2.1:22: no SSH connection: no route", "b: command:x failed with status 3: last words",]
        );
        assert_eq!(failure(names.iter().zip(&all[..1])).unwrap().exit, Exit::Ssh);
        assert!(failure(std::iter::empty()).is_none());
    }
}
