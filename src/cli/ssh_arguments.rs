//! What `ssh` takes from its user's environment, for hosts of a roster.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::failure::{Exit, Failure};
use super::setting;
use super::terminal::{Terminal, secret_from};
use crate::model::name::HostName;
use crate::transport::pool::ConnectionPool;
use crate::transport::secret::{FixedPrompter, Prompter, Secret};
use crate::transport::ssh::SshClient;

/// Where root's commands remember host keys.
const OWN: &str = "/var/lib/metalform/known_hosts";
/// Where ssh's users do, below their home.
const USERS: &str = ".ssh/known_hosts";
/// What the machine's administrator vouches for.
const MACHINES: &str = "/etc/ssh/ssh_known_hosts";

/// Options that say how hosts are logged in to.
#[derive(Debug, Default, Args)]
pub struct SshArguments {
    /// Where keys of new hosts are remembered [default: /var/lib/metalform/known_hosts for root, else
    /// ~/.ssh/known_hosts]. The known hosts of ssh count too
    #[arg(long, value_name = "FILE", env = "METALFORM_KNOWN_HOSTS")]
    known_hosts: Option<PathBuf>,
    /// The passphrase of encrypted private keys is the first line of this file, or of /dev/fd/N; without it, it is
    /// asked for on the terminal
    #[arg(long, value_name = "FILE")]
    key_passphrase_file: Option<PathBuf>,
    /// Ask for the password that sudo asks for, once for all hosts
    #[arg(long, conflicts_with = "sudo_password_file")]
    ask_sudo_password: bool,
    /// The password that sudo asks for is the first line of this file, or of /dev/fd/N
    #[arg(long, value_name = "FILE")]
    sudo_password_file: Option<PathBuf>,
}

impl SshArguments {
    /// The connections of one run; `local` is the host that is this machine.
    ///
    /// # Errors
    /// When a file that is named cannot be read.
    pub async fn pool(&self, local: Option<HostName>) -> Result<ConnectionPool, Failure> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let users = home.as_ref().map(|home| home.join(USERS));
        let own = self.known_hosts.clone().unwrap_or_else(|| match &users {
            Some(users) if !rustix::process::geteuid().is_root() => users.clone(),
            _ => OWN.into(),
        });
        let more: Vec<PathBuf> =
            users.into_iter().chain([MACHINES.into()]).filter(|path| *path != own).collect();
        let prompter: Arc<dyn Prompter> = match &self.key_passphrase_file {
            Some(path) => Arc::new(FixedPrompter(secret_from(path)?)),
            None => Arc::new(Terminal::default()),
        };
        let sudo = match (&self.sudo_password_file, self.ask_sudo_password) {
            (Some(path), _) => Some(secret_from(path)?),
            (None, true) => Some(asked_for().await?),
            (None, false) => None,
        };
        let agent = std::env::var_os("SSH_AUTH_SOCK").filter(|socket| !socket.is_empty());
        let client = SshClient::new(own)
            .with_more_known_hosts(more)
            .with_agent(agent.map(PathBuf::from))
            .with_home(home)
            .with_clock(setting::now)
            .with_prompter(prompter)
            .with_sudo_password(sudo);
        Ok(ConnectionPool::new(client, local))
    }
}

async fn asked_for() -> Result<Secret, Failure> {
    Terminal::default().ask("password for sudo").await.map_err(|error| {
        Failure::new(Exit::Configuration, format!("the password for sudo: {error}"))
            .hint("--sudo-password-file reads it from a file, or from /dev/fd/N")
    })
}
