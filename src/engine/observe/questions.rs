//! The probes of an observation, by section.

use std::collections::BTreeSet;

use crate::resource::contract::host_condition::HostCondition;
use crate::resource::contract::owed::Owed;
use crate::resource::contract::probe::Probe;

/// What each section observes. Each list is in the order of the probes.
#[derive(Debug, Default)]
pub(super) struct Questions<'p> {
    /// Probes of paths and contents.
    pub(super) paths: Vec<&'p Probe>,
    /// Directories.
    pub(super) emptiness: Vec<&'p str>,
    /// Names.
    pub(super) packages: Vec<&'p str>,
    /// Names with their suffixes.
    pub(super) units: Vec<&'p str>,
    /// Probes of times of writing.
    pub(super) written: Vec<&'p Probe>,
    /// TCP ports.
    pub(super) listeners: Vec<u16>,
    /// Keys of kernel parameters.
    pub(super) parameters: Vec<&'p str>,
    /// Names of kernel modules.
    pub(super) modules: Vec<&'p str>,
    pub(super) swap: bool,
    /// References.
    pub(super) images: Vec<&'p str>,
    /// Paths of keys and of their certificates.
    pub(super) key_pairs: Vec<(&'p str, &'p str)>,
    /// Destinations.
    pub(super) routes: Vec<&'p str>,
    /// Names, and the ids that they should have.
    pub(super) users: Vec<(&'p str, Option<u32>)>,
    /// Names, and the ids that they should have.
    pub(super) groups: Vec<(&'p str, Option<u32>)>,
    /// Users, and the hashes that they should have.
    pub(super) passwords: Vec<(&'p str, Option<&'p str>)>,
    /// Users.
    pub(super) authorized_keys: Vec<&'p str>,
    /// Mount points, and the sources that they should have.
    pub(super) mounts: Vec<(&'p str, Option<&'p str>)>,
    pub(super) owed: Vec<&'p Owed>,
    /// Scripts.
    pub(super) guards: Vec<&'p str>,
    pub(super) conditions: Vec<&'p HostCondition>,
}

impl<'p> Questions<'p> {
    /// Assigns every probe to its section.
    pub(super) fn of(probes: &'p BTreeSet<Probe>) -> Self {
        let mut questions = Self::default();
        for probe in probes {
            match probe {
                Probe::Path { .. } | Probe::Content { .. } => questions.paths.push(probe),
                Probe::Empty { path } => questions.emptiness.push(path),
                Probe::Package { name } => questions.packages.push(name),
                Probe::Unit { name } => questions.units.push(name),
                Probe::Written { .. } => questions.written.push(probe),
                Probe::Listener { port } => questions.listeners.push(*port),
                Probe::Sysctl { key } => questions.parameters.push(key),
                Probe::Module { name } => questions.modules.push(name),
                Probe::Swap => questions.swap = true,
                Probe::Image { reference } => questions.images.push(reference),
                Probe::KeyPair { key, certificate } => questions.key_pairs.push((key, certificate)),
                Probe::Route { destination } => questions.routes.push(destination),
                Probe::Condition(condition) => questions.conditions.push(condition),
                Probe::User { name, uid } => questions.users.push((name, *uid)),
                Probe::Group { name, gid } => questions.groups.push((name, *gid)),
                Probe::Password { user, hash } => questions.passwords.push((user, hash.as_deref())),
                Probe::AuthorizedKeys { user } => questions.authorized_keys.push(user),
                Probe::Mount { point, source } => questions.mounts.push((point, source.as_deref())),
                Probe::Owed(owed) => questions.owed.push(owed),
                Probe::Guard { script } => questions.guards.push(script),
            }
        }
        questions
    }

    pub(super) fn kernel(&self) -> bool {
        self.swap || !self.parameters.is_empty() || !self.modules.is_empty()
    }

    pub(super) fn accounts(&self) -> bool {
        !self.users.is_empty() || !self.groups.is_empty() || !self.passwords.is_empty()
    }
}
