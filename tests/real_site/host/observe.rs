//! Answers to probes.

use std::collections::BTreeSet;

use metalform::resource::contract::host_condition::HostCondition;
use metalform::resource::contract::probe::{Answer, KeysState, Observed, Probe};

use super::ScriptedHost;
use super::tree::Entry;

/// A digest that no content has, so that content travels.
const NO_DIGEST: &str = "";

impl ScriptedHost {
    /// All answers, as of one round trip. Changes nothing.
    pub fn answers(&self, probes: &BTreeSet<Probe>) -> Observed {
        Observed(probes.iter().map(|probe| (probe.clone(), self.answer(probe))).collect())
    }

    pub fn answer(&self, probe: &Probe) -> Answer {
        match probe {
            Probe::Path { path, unless_sha256 } => {
                Answer::Path(self.tree.state(path, unless_sha256.as_deref()))
            }
            Probe::Content { path } => match self.tree.get(path) {
                Some(Entry::Directory(_)) => Answer::Failed(format!("cat: {path}: Is a directory")),
                _ => Answer::Content(self.tree.read(path).map(<[u8]>::to_vec)),
            },
            Probe::Empty { path } => Answer::Empty(self.tree.below(path).is_empty()),
            Probe::Package { name } => Answer::Package(self.packages.installed.get(name).cloned()),
            Probe::Unit { name } => Answer::Unit(self.units.state(name, &self.tree)),
            Probe::Written { files, packages } => {
                let lists = packages
                    .iter()
                    .flat_map(|name| self.tree.glob(&format!("/var/lib/dpkg/info/{name}.list")));
                let written = files.iter().cloned().chain(lists).filter_map(|path| self.tree.written(&path));
                let newest = written.filter(|at| *at <= self.clock).max();
                Answer::Written(newest.map(|at| i64::try_from(at).unwrap()))
            }
            Probe::Listener { port } => Answer::Listener(self.listening.contains(port)),
            Probe::Sysctl { key } => Answer::Sysctl(self.sysctls.get(key).cloned()),
            Probe::Module { name } => Answer::Module(self.modules.contains(name)),
            // A scripted host keeps no markers.
            Probe::Owed(_) => Answer::Owed(false),
            Probe::Swap => Answer::Swap(self.swap),
            Probe::Image { reference } => Answer::Image(self.images.contains(reference)),
            Probe::KeyPair { key, certificate } => Answer::KeyPair(self.is_pair(key, certificate)),
            Probe::Route { destination } => Answer::Route(self.routes.get(destination).cloned()),
            Probe::Condition(condition) => Answer::Condition(self.unmet(condition)),
            Probe::User { name, uid } => Answer::User(self.accounts.user(name, *uid)),
            Probe::Group { name, gid } => Answer::Group(self.accounts.group(name, *gid)),
            Probe::Password { user, hash } => Answer::Password(self.accounts.password(user, hash.as_deref())),
            Probe::AuthorizedKeys { user } => Answer::AuthorizedKeys(self.keys(user)),
            Probe::Mount { point, source } => {
                Answer::Mount(self.mounts.get(point).cloned().map(|mut live| {
                    live.expected_device =
                        source.as_ref().and_then(|source| self.devices.get(source)).cloned();
                    live
                }))
            }
            Probe::Guard { script } => match self.guard(script) {
                Some(status) => Answer::Guard(status),
                None => Answer::Failed(format!("the scripted host does not know the guard {script}")),
            },
        }
    }

    pub(super) fn unmet(&self, condition: &HostCondition) -> Option<String> {
        match condition {
            HostCondition::File { path } if self.tree.get(path).is_none() => {
                Some("it does not exist".to_owned())
            }
            HostCondition::File { .. } => None,
            other => self.unmet.get(other).cloned(),
        }
    }

    fn keys(&self, user: &str) -> Option<KeysState> {
        let home = self.accounts.users.get(user)?.account.home.clone();
        let directory = format!("{home}/.ssh");
        Some(KeysState {
            home_exists: self.tree.is_directory(&home),
            directory: self.tree.state(&directory, None),
            file: self.tree.state(&format!("{directory}/authorized_keys"), Some(NO_DIGEST)),
            home,
        })
    }

    fn is_pair(&self, key: &str, certificate: &str) -> bool {
        let digests = self.tree.sha256(key).zip(self.tree.sha256(certificate));
        let public_key = || public_key_of(self.tree.read(key)?);
        digests.is_some_and(|digests| self.pairs.contains(&digests))
            || public_key().is_some_and(|public_key| {
                self.tree.read(certificate).and_then(public_key_in) == Some(public_key)
            })
    }
}

fn public_key_of(key: &[u8]) -> Option<Vec<u8>> {
    let key = rcgen::KeyPair::from_pem(std::str::from_utf8(key).ok()?).ok()?;
    Some(key.public_key_raw().to_vec())
}

fn public_key_in(certificate: &[u8]) -> Option<Vec<u8>> {
    let (_, block) = x509_parser::pem::parse_x509_pem(certificate).ok()?;
    let certificate = block.parse_x509().ok()?;
    Some(certificate.public_key().subject_public_key.data.to_vec())
}
