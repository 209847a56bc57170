//! How hosts of a roster are logged in to: options of a command, and what `ssh` takes from its user.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::command_error::{CommandError, ErrorClass};
use crate::model::name::HostName;
use crate::transport::pool::ConnectionPool;
use crate::transport::secret::{FixedPrompter, PromptError, Prompter, Secret};
use crate::transport::ssh::SshClient;

/// Where root's commands remember host keys.
const ROOT_KNOWN_HOSTS: &str = "/var/lib/metalform/known_hosts";
/// OpenSSH's UserKnownHostsFile, relative to the home directory.
const USER_KNOWN_HOSTS: &str = ".ssh/known_hosts";
/// OpenSSH's GlobalKnownHostsFile.
const GLOBAL_KNOWN_HOSTS: &str = "/etc/ssh/ssh_known_hosts";

/// SSH options of one command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SshOptions {
    /// Where keys of new hosts are remembered; `None` is root's file, or the user's.
    pub known_hosts: Option<PathBuf>,
    /// The file whose first line is the passphrase of encrypted private keys.
    pub key_passphrase_file: Option<PathBuf>,
    /// Where sudo's password comes from.
    pub sudo_password: Option<SudoPasswordSource>,
    /// Whether nothing is written: a new key is then accepted for this command alone.
    #[serde(skip)]
    pub dry_run: bool,
}

/// Where sudo's password comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SudoPasswordSource {
    /// The terminal, once for all hosts.
    Ask,
    /// The first line of this file.
    File(PathBuf),
}

/// What `ssh` takes from its user.
#[derive(Clone)]
pub struct SshEnvironment {
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// The socket of the user's agent (`SSH_AUTH_SOCK`).
    pub agent: Option<PathBuf>,
    /// Whether the user is root.
    pub is_root: bool,
    /// Asks the user for secrets.
    pub prompter: Arc<dyn Prompter>,
}

/// Why the SSH options cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SshOptionsError {
    /// A file with a secret cannot be read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// As given.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// A file with a secret has none.
    #[error("{}: the first line is empty", .0.display())]
    Empty(PathBuf),
    /// The password for sudo was not entered.
    #[error("password for sudo: {0}")]
    SudoPassword(PromptError),
}

impl CommandError for SshOptionsError {
    fn class(&self) -> ErrorClass {
        ErrorClass::Configuration
    }

    fn errors(&self) -> Vec<String> {
        vec![self.to_string()]
    }

    fn hints(&self) -> Vec<String> {
        vec![
            match self {
                Self::Unreadable { .. } | Self::Empty(_) => {
                    "the first line of the file must be the secret; /dev/fd/3 is file descriptor 3 of the calling process"
                }
                Self::SudoPassword(_) => "use --sudo-password-file FILE, or /dev/fd/N",
            }
            .to_owned(),
        ]
    }
}

impl SshOptions {
    /// These options, and `others` where these are not set.
    #[must_use]
    pub fn or(self, others: &Self) -> Self {
        Self {
            known_hosts: self.known_hosts.or_else(|| others.known_hosts.clone()),
            key_passphrase_file: self.key_passphrase_file.or_else(|| others.key_passphrase_file.clone()),
            sudo_password: self.sudo_password.or_else(|| others.sudo_password.clone()),
            dry_run: self.dry_run,
        }
    }

    /// With relative paths resolved against `directory`.
    #[must_use]
    pub fn resolved(&self, directory: &Path) -> Self {
        let resolve = |path: &PathBuf| directory.join(path);
        Self {
            known_hosts: self.known_hosts.as_ref().map(resolve),
            key_passphrase_file: self.key_passphrase_file.as_ref().map(resolve),
            sudo_password: self.sudo_password.as_ref().map(|password| match password {
                SudoPasswordSource::Ask => SudoPasswordSource::Ask,
                SudoPasswordSource::File(path) => SudoPasswordSource::File(resolve(path)),
            }),
            dry_run: self.dry_run,
        }
    }

    /// The file that remembers host keys.
    pub fn known_hosts_file(&self, environment: &SshEnvironment) -> PathBuf {
        let users = environment.home.as_ref().filter(|_| !environment.is_root);
        let default = || users.map_or_else(|| ROOT_KNOWN_HOSTS.into(), |home| home.join(USER_KNOWN_HOSTS));
        self.known_hosts.clone().unwrap_or_else(default)
    }

    /// The connections of a run; `local` is the host that is this machine.
    ///
    /// # Errors
    /// When a secret cannot be read.
    pub async fn pool(
        &self,
        environment: &SshEnvironment,
        clock: fn() -> Timestamp,
        local: Option<HostName>,
    ) -> Result<ConnectionPool, SshOptionsError> {
        let own = self.known_hosts_file(environment);
        let users = environment.home.as_ref().map(|home| home.join(USER_KNOWN_HOSTS));
        let more: Vec<PathBuf> =
            users.into_iter().chain([GLOBAL_KNOWN_HOSTS.into()]).filter(|path| *path != own).collect();
        let prompter: Arc<dyn Prompter> = match &self.key_passphrase_file {
            Some(path) => Arc::new(FixedPrompter(secret_from(path)?)),
            None => Arc::clone(&environment.prompter),
        };
        let sudo = match &self.sudo_password {
            Some(SudoPasswordSource::File(path)) => Some(secret_from(path)?),
            Some(SudoPasswordSource::Ask) => {
                let asked = environment.prompter.ask("password for sudo").await;
                Some(asked.map_err(SshOptionsError::SudoPassword)?)
            }
            None => None,
        };
        let client = SshClient::new(own)
            .with_more_known_hosts(more)
            .with_agent(environment.agent.clone())
            .with_home(environment.home.clone())
            .with_clock(clock)
            .with_prompter(prompter)
            .with_sudo_password(sudo);
        let client = if self.dry_run { client.without_remembering() } else { client };
        Ok(ConnectionPool::new(client, local))
    }
}

/// The first line of a file, or of an open descriptor (/dev/fd/3).
///
/// # Errors
/// When it cannot be read, or the line is empty.
pub fn secret_from(path: &Path) -> Result<Secret, SshOptionsError> {
    let text = std::fs::read_to_string(path)
        .map(Secret::new)
        .map_err(|error| SshOptionsError::Unreadable { path: path.to_owned(), error })?;
    match text.expose().lines().next() {
        Some(line) if !line.is_empty() => Ok(Secret::new(line)),
        _ => Err(SshOptionsError::Empty(path.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_a_file_is_the_secret() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "hunter 2\nmore\n").unwrap();
        assert_eq!(secret_from(file.path()).unwrap().expose(), "hunter 2");
        std::fs::write(file.path(), "\nmore\n").unwrap();
        assert!(matches!(secret_from(file.path()), Err(SshOptionsError::Empty(_))));
        assert!(matches!(secret_from(Path::new("/nonexistent/x")), Err(SshOptionsError::Unreadable { .. })));
    }

    #[test]
    fn options_that_are_not_set_come_from_the_others() {
        let saved = SshOptions { known_hosts: Some("a".into()), ..SshOptions::default() };
        let given = SshOptions { sudo_password: Some(SudoPasswordSource::Ask), ..SshOptions::default() };
        let both = given.or(&saved.resolved(Path::new("/d")));
        assert_eq!(both.known_hosts.as_deref(), Some(Path::new("/d/a")));
        assert_eq!(both.sudo_password, Some(SudoPasswordSource::Ask));
    }
}
