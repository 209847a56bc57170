//! Options that configure SSH for hosts of a roster.

use std::path::PathBuf;

use clap::Args;

use crate::service::ssh_options::{SshOptions, SudoPasswordSource};

/// How hosts are logged in to.
#[derive(Debug, Default, Args)]
pub struct SshArguments {
    /// Store keys of new hosts in this file [default: /var/lib/metalform/known_hosts for root, else
    /// ~/.ssh/known_hosts]. The known hosts files of ssh are read as well
    #[arg(long, value_name = "FILE", env = "METALFORM_KNOWN_HOSTS")]
    known_hosts: Option<PathBuf>,
    /// Read the passphrase of encrypted private keys from the first line of this file, or of /dev/fd/N [default:
    /// prompt on the terminal]
    #[arg(long, value_name = "FILE")]
    key_passphrase_file: Option<PathBuf>,
    /// Prompt for sudo's password, once for all hosts
    #[arg(long, conflicts_with = "sudo_password_file")]
    ask_sudo_password: bool,
    /// Read sudo's password from the first line of this file, or of /dev/fd/N
    #[arg(long, value_name = "FILE")]
    sudo_password_file: Option<PathBuf>,
}

impl SshArguments {
    /// The options.
    pub fn options(&self) -> SshOptions {
        SshOptions {
            known_hosts: self.known_hosts.clone(),
            key_passphrase_file: self.key_passphrase_file.clone(),
            sudo_password: match (&self.sudo_password_file, self.ask_sudo_password) {
                (Some(path), _) => Some(SudoPasswordSource::File(path.clone())),
                (None, true) => Some(SudoPasswordSource::Ask),
                (None, false) => None,
            },
            dry_run: false,
        }
    }
}
