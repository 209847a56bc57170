//! What a command on nodes changes besides them.

use super::membership_steps::MembershipStep;
use super::new_host_key::NewHostKey;

/// What a command on nodes changes besides them, as far as its report shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterChanges {
    /// How the voters of etcd change, in a dry run.
    pub steps: Vec<MembershipStep>,
    /// Host keys that were seen for the first time, and are remembered now unless this was a dry run.
    pub host_keys: Vec<NewHostKey>,
    /// Images that leave the registry, as no bundle has them any more.
    pub obsolete_images: Vec<String>,
}
