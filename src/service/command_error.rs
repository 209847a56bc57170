//! What every error of a command can be asked: its class, its lines, and what to do about it.

/// What an error is about. The command line derives its exit code from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// Usage or configuration.
    Configuration,
    /// An SSH connection.
    Ssh,
    /// A host, or an artefact that is damaged.
    Host,
    /// etcd.
    Etcd,
    /// The Kubernetes API.
    Api,
    /// Refused for safety.
    Refused,
    /// A fault of metalform itself.
    Bug,
    /// The run was interrupted.
    Interrupted,
}

/// An error for the person who has to act on it.
pub trait CommandError {
    /// What it is about.
    fn class(&self) -> ErrorClass;

    /// One line for each thing that failed; never empty.
    fn errors(&self) -> Vec<String>;

    /// Instructions that can be followed as they stand, in this order.
    fn hints(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The failures of several hosts or nodes as the one error of their command; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandFailure {
    pub(super) class: ErrorClass,
    pub(super) errors: Vec<String>,
    pub(super) hints: Vec<String>,
}

impl CommandFailure {
    /// Adds those that are not among the hints yet.
    pub(super) fn add_hints(&mut self, hints: Vec<String>) {
        for hint in hints {
            if !self.hints.contains(&hint) {
                self.hints.push(hint);
            }
        }
    }
}

impl CommandError for CommandFailure {
    fn class(&self) -> ErrorClass {
        self.class
    }

    fn errors(&self) -> Vec<String> {
        self.errors.clone()
    }

    fn hints(&self) -> Vec<String> {
        self.hints.clone()
    }
}
