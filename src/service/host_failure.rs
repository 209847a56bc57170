//! Why one host of a fleet has no result.

use super::command_error::ErrorClass;
use super::remedies::{remedy, retry};
use crate::engine::fleet::schedule::Halt;
use crate::engine::host::HostError;
use crate::engine::roster::RosterFault;
use crate::model::error_chain::error_chain;
use crate::model::event::HostOutcome;
use crate::model::resumption::ResumedBy;
use crate::transport::error::TransportError;

/// Why the work on a host failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorkError {
    /// The connection or the host.
    Host(HostError),
    /// The host's states cannot be compiled; nothing was changed on it.
    States(Vec<RosterFault>),
}

/// Why one host of a fleet has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostFailure {
    /// No connection was made.
    Unreachable(TransportError),
    /// A connection was made, and the work failed.
    Failed(HostError),
    /// Its states cannot be compiled; nothing was changed on it.
    States(Vec<RosterFault>),
    /// The run ended before the host's turn.
    NotStarted(Halt),
}

impl From<HostError> for WorkError {
    fn from(error: HostError) -> Self {
        Self::Host(error)
    }
}

impl From<Vec<RosterFault>> for WorkError {
    fn from(faults: Vec<RosterFault>) -> Self {
        Self::States(faults)
    }
}

impl WorkError {
    /// The outcome of a host with this error.
    pub fn outcome(&self) -> HostOutcome {
        match self {
            Self::Host(HostError::Transport(TransportError::Unreachable { .. })) => HostOutcome::Unreachable,
            Self::Host(HostError::Interrupted) => HostOutcome::Stopped,
            Self::Host(_) | Self::States(_) => HostOutcome::Failed,
        }
    }
}

impl HostFailure {
    /// What the failure is about.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Unreachable(_) => ErrorClass::Ssh,
            Self::Failed(error) if error.connection().is_some() => ErrorClass::Ssh,
            Self::Failed(HostError::Refused { .. }) => ErrorClass::Refused,
            Self::Failed(HostError::Interrupted) | Self::NotStarted(Halt::Cancelled) => {
                ErrorClass::Interrupted
            }
            Self::Failed(_) => ErrorClass::Host,
            Self::States(_) => ErrorClass::Configuration,
            // The hosts that failed decide the class of the run.
            Self::NotStarted(Halt::Failures { .. }) => ErrorClass::Ssh,
        }
    }

    /// The outcome of a host with this failure.
    pub fn outcome(&self) -> HostOutcome {
        match self {
            Self::Unreachable(_) => HostOutcome::Unreachable,
            Self::Failed(HostError::Interrupted) => HostOutcome::Stopped,
            Self::Failed(_) | Self::States(_) => HostOutcome::Failed,
            Self::NotStarted(_) => HostOutcome::NotBegun,
        }
    }

    /// One line for each thing that failed.
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Unreachable(error) => vec![error_chain(error)],
            Self::Failed(HostError::Refused { refusals }) => {
                refusals.iter().map(|(id, reason)| format!("{id}: {reason}")).collect()
            }
            Self::Failed(HostError::Failed { resources, status, output }) => {
                let last = output.trim_end().lines().next_back().unwrap_or("no output");
                vec![format!("{} failed with status {status}: {last}", resources.join(", "))]
            }
            Self::Failed(error) => vec![error_chain(error)],
            Self::States(faults) => faults.iter().map(ToString::to_string).collect(),
            Self::NotStarted(halt) => vec![format!("not started: {halt}")],
        }
    }

    /// The line for all hosts with the same failure, where one line is enough for them.
    pub fn common_line(&self) -> Option<String> {
        match self {
            Self::Failed(HostError::Interrupted) => Some("interrupted".to_owned()),
            Self::NotStarted(halt) => Some(format!("not started: {halt}")),
            _ => None,
        }
    }

    /// What to do about it, in a command that is resumed so.
    pub fn hints(&self, resumed: ResumedBy) -> Vec<String> {
        match self {
            Self::Unreachable(error) | Self::Failed(HostError::Transport(error)) => {
                vec![connection_hint(error, resumed)]
            }
            Self::Failed(HostError::Refused { .. }) => vec!["fix the host or the state".to_owned()],
            Self::Failed(HostError::Interrupted) | Self::NotStarted(_) => Vec::new(),
            Self::Failed(HostError::Failed { output, .. }) if needs_root(output) => {
                vec![
                    "the login user lacks the permission: set user: root or sudo: true in the roster"
                        .to_owned(),
                ]
            }
            Self::Failed(HostError::TimedOut { .. }) => vec![
                "check the host for a hanging network file system, disk or guard command; nothing was changed"
                    .to_owned(),
            ],
            Self::Failed(HostError::LostDuring { .. }) => {
                let next = match resumed {
                    ResumedBy::SameCommand => {
                        "run the same command again once the host is reachable".to_owned()
                    }
                    _ => resumed.instruction(),
                };
                vec![format!("the current resource may be partially applied; {next}")]
            }
            Self::Failed(HostError::Failed { output, .. }) => vec![remedy(output, resumed)],
            Self::Failed(_) => vec![retry(resumed)],
            Self::States(faults) => faults.iter().filter_map(RosterFault::hint).collect(),
        }
    }
}

/// Whether a program failed for lack of privilege: by the messages of EACCES and EPERM, and those of apt, dnf and
/// systemctl.
fn needs_root(output: &str) -> bool {
    let last = output.trim_end().lines().next_back().unwrap_or_default();
    ["Permission denied", "Operation not permitted", "are you root?", "superuser privileges", "Access denied"]
        .iter()
        .any(|message| last.contains(message))
}

/// What to do about a connection to a host of a roster.
pub(super) fn connection_hint(error: &TransportError, resumed: ResumedBy) -> String {
    match error {
        TransportError::HostKeyUnknown { .. } => {
            "compare the key on the host, then pin it in the roster (host_key: ssh-ed25519 AAAA...); host_key: accept-new trusts the first key"
        }
        TransportError::HostKeyMismatch { .. } => {
            "another machine has this address, or the host was reinstalled: fix host_key in the roster"
        }
        TransportError::AuthenticationRefused { .. } | TransportError::IdentityUnreadable { .. } => {
            "set the private key with key: in the roster; identities_only: true ignores other keys of the agent"
        }
        TransportError::PassphraseMissing { path, .. } => {
            return format!("add the key to the agent with ssh-add {path}, or use --key-passphrase-file");
        }
        TransportError::SudoRefused { .. } => {
            "use --ask-sudo-password or --sudo-password-file, or allow sudo without a password in /etc/sudoers.d"
        }
        TransportError::NoShell { .. } => {
            "ssh USER@ADDRESS sh must start a POSIX shell; check that the login scripts neither exit nor start another program"
        }
        TransportError::Incompatible { .. } => "upgrade the SSH server; any OpenSSH of the last ten years is supported",
        TransportError::KnownHosts { .. } => "fix the file, or use another one with --known-hosts",
        TransportError::Lost { .. } => return resumed.instruction(),
        TransportError::Fenced { .. } => "the controllers of Machines work on this host",
        TransportError::Unreachable { .. } => "check that the host is on, and its address in the roster",
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_user_without_permission_is_pointed_to_the_roster() {
        let failed = |output: &str| {
            let resources = vec!["file:/etc/x".to_owned()];
            HostFailure::Failed(HostError::Failed { resources, status: 1, output: output.to_owned() })
                .hints(ResumedBy::SameCommand)
        };
        assert!(failed("sh: 1: cannot create /etc/x: Permission denied\n")[0].contains("sudo: true"));
        assert!(!failed("Permission denied, then retried\nNo space left on device\n")[0].contains("sudo"));
    }
}
