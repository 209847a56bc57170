//! Typed access to answers.

use crate::resource::contract::pending::Pending;
use crate::resource::contract::probe::{
    Answer, GroupState, InstalledPackage, KeysState, MountState, Observed, PasswordState, PathState, Probe,
    UnitState, UserState,
};
use crate::resource::contract::refusal::Refusal;

impl Observed {
    fn pick<'a, T>(&'a self, probe: Probe, choose: impl Fn(&'a Answer) -> Option<T>) -> Result<T, Refusal> {
        match self.get(&probe) {
            Some(Answer::Failed(reason)) => Err(Refusal::Unobserved { probe, reason: reason.clone() }),
            Some(answer) => choose(answer).ok_or(Refusal::NotAsked { probe }),
            None => Err(Refusal::NotAsked { probe }),
        }
    }

    /// What will be at the probe's path when the resource is reached: what was observed there, unless an earlier
    /// resource writes or removes it.
    pub(in crate::resource) fn path<'a>(
        &'a self,
        probe: Probe,
        pending: &'a Pending,
    ) -> Result<&'a PathState, Refusal> {
        let changed = match &probe {
            Probe::Path { path, .. } => pending.at(path),
            _ => None,
        };
        match changed {
            Some(state) => Ok(state),
            None => self.pick(probe, |answer| match answer {
                Answer::Path(state) => Some(state),
                _ => None,
            }),
        }
    }

    pub(in crate::resource) fn content(&self, probe: Probe) -> Result<Option<&[u8]>, Refusal> {
        self.pick(probe, |answer| match answer {
            Answer::Content(content) => Some(content.as_deref()),
            _ => None,
        })
    }

    pub(in crate::resource) fn package(&self, probe: Probe) -> Result<Option<&InstalledPackage>, Refusal> {
        self.pick(probe, |answer| match answer {
            Answer::Package(package) => Some(package.as_ref()),
            _ => None,
        })
    }

    pub(in crate::resource) fn unit(&self, probe: Probe) -> Result<&UnitState, Refusal> {
        self.pick(probe, |answer| match answer {
            Answer::Unit(unit) => Some(unit),
            _ => None,
        })
    }

    /// When the newest of the probe's files was written.
    pub(in crate::resource) fn written(&self, probe: Probe) -> Result<Option<i64>, Refusal> {
        self.pick(probe, |answer| match answer {
            Answer::Written(newest) => Some(*newest),
            _ => None,
        })
    }

    pub(in crate::resource) fn user(&self, probe: Probe) -> Result<&UserState, Refusal> {
        self.pick(probe, |answer| match answer {
            Answer::User(user) => Some(user),
            _ => None,
        })
    }

    pub(in crate::resource) fn group(&self, probe: Probe) -> Result<&GroupState, Refusal> {
        self.pick(probe, |answer| match answer {
            Answer::Group(group) => Some(group),
            _ => None,
        })
    }

    pub(in crate::resource) fn password(&self, probe: Probe) -> Result<Option<PasswordState>, Refusal> {
        self.pick(probe, |answer| match answer {
            Answer::Password(password) => Some(*password),
            _ => None,
        })
    }

    pub(in crate::resource) fn keys(&self, probe: Probe) -> Result<Option<&KeysState>, Refusal> {
        self.pick(probe, |answer| match answer {
            Answer::AuthorizedKeys(keys) => Some(keys.as_ref()),
            _ => None,
        })
    }

    pub(in crate::resource) fn mount(&self, probe: Probe) -> Result<Option<&MountState>, Refusal> {
        self.pick(probe, |answer| match answer {
            Answer::Mount(mount) => Some(mount.as_ref()),
            _ => None,
        })
    }

    /// The line in the answer to a [`Probe::Sysctl`] or a [`Probe::Route`].
    pub(in crate::resource) fn line(&self, probe: Probe) -> Result<Option<&str>, Refusal> {
        self.pick(probe, |answer| match answer {
            Answer::Sysctl(line) | Answer::Route(line) => Some(line.as_deref()),
            _ => None,
        })
    }

    /// What was observed instead of the condition; `None` where it holds.
    pub(in crate::resource) fn condition(&self, probe: Probe) -> Result<Option<&str>, Refusal> {
        self.pick(probe, |answer| match answer {
            Answer::Condition(seen) => Some(seen.as_deref()),
            _ => None,
        })
    }

    /// The answer to a yes-or-no probe; for a guard, exit status 0 is yes.
    pub(in crate::resource) fn holds(&self, probe: Probe) -> Result<bool, Refusal> {
        self.pick(probe, |answer| match answer {
            Answer::Module(yes)
            | Answer::Swap(yes)
            | Answer::Owed(yes)
            | Answer::Listener(yes)
            | Answer::Image(yes)
            | Answer::KeyPair(yes)
            | Answer::Empty(yes) => Some(*yes),
            Answer::Guard(status) => Some(*status == 0),
            _ => None,
        })
    }
}
