//! The password of a user, and its lock (shadow(5)).

use crate::resource::contract::change::{Change, Difference};
use crate::resource::contract::probe::{PasswordState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::{AccountTool, Step};

/// The desired password. Without a hash the present one stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Password {
    pub hash: Option<String>,
    pub locked: Option<bool>,
}

/// How the lock of a password changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lock {
    Same(bool),
    Locks,
    Unlocks,
}

/// What must be done with a password.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    Keep,
    /// Sets hash and lock.
    Set,
    Lock,
    Unlock,
    /// Without a hash there is nothing to unlock.
    Refuse,
}

impl Password {
    /// `None` where neither hash nor lock is managed.
    pub fn probe(&self, user: &str) -> Option<Probe> {
        let managed = self.hash.is_some() || self.locked.is_some();
        managed.then(|| Probe::Password { user: user.to_owned(), hash: self.hash.clone() })
    }

    /// `before` is `None` for a new user.
    pub fn compare(
        &self,
        user: &str,
        before: Option<PasswordState>,
        change: &mut Change,
    ) -> Result<(), Refusal> {
        let lock = self.lock(before);
        match self.action(before, lock) {
            Action::Keep => {}
            Action::Set => {
                if !before.is_some_and(|password| password.same) {
                    change.differences.push(Difference::Hidden { what: "password (sensitive)".to_owned() });
                }
                // A '!' before the hash locks it.
                let mark = if matches!(lock, Lock::Same(true) | Lock::Locks) { "!" } else { "" };
                let hash = format!("{mark}{}", self.hash.as_deref().unwrap_or_default());
                change.steps.push(Step::SetPassword { user: user.to_owned(), hash });
            }
            Action::Lock => {
                change.account(AccountTool::ChangeUser, vec!["-L".to_owned(), user.to_owned()]);
            }
            Action::Unlock => {
                change.account(AccountTool::ChangeUser, vec!["-U".to_owned(), user.to_owned()]);
            }
            Action::Refuse => return Err(Refusal::NothingToUnlock { user: user.to_owned() }),
        }
        match lock {
            Lock::Locks if before.is_some() => change.field("locked", Some("false"), Some("true")),
            Lock::Unlocks if before.is_some() => change.field("locked", Some("true"), Some("false")),
            Lock::Same(_) | Lock::Locks | Lock::Unlocks => {}
        }
        Ok(())
    }

    /// A password that was never set is locked. With a new hash and no `locked`, the lock of a present hash stays, and
    /// that of a password that was never set does not.
    fn lock(&self, before: Option<PasswordState>) -> Lock {
        let was = before.is_none_or(|password| password.locked);
        let has_locked_hash = before.is_some_and(|password| password.locked && password.has_hash);
        let becomes = match (self.locked, &self.hash) {
            (Some(locked), _) => locked,
            (None, Some(_)) => has_locked_hash,
            (None, None) => was,
        };
        match (was, becomes) {
            (false, true) => Lock::Locks,
            (true, false) => Lock::Unlocks,
            (was, _) => Lock::Same(was),
        }
    }

    fn action(&self, before: Option<PasswordState>, lock: Lock) -> Action {
        let PasswordState { same, has_hash, locked: _ } = before.unwrap_or_default();
        match (&self.hash, same, lock) {
            (Some(_), true, Lock::Same(_)) | (None, _, Lock::Same(_)) => Action::Keep,
            (Some(_), _, _) => Action::Set,
            (None, _, Lock::Locks) => Action::Lock,
            (None, _, Lock::Unlocks) if has_hash => Action::Unlock,
            (None, _, Lock::Unlocks) => Action::Refuse,
        }
    }
}

/// `$id$...`, in the characters of crypt(5).
pub fn is_hash(text: &str) -> bool {
    text.starts_with('$')
        && text.matches('$').count() >= 3
        && text.bytes().all(|c| c.is_ascii_graphic() && !b":;*!\\".contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_password_is_not_a_hash() {
        for good in ["$6$salt$hash./A", "$y$j9T$salt$hash", "$2b$05$abc", "$5$rounds=5000$s$h"] {
            assert!(is_hash(good), "{good}");
        }
        for bad in ["", "secret", "$ecret", "!$6$salt$hash", "$6$salt$ha:sh", "$6$salt$hash\n", "*"] {
            assert!(!is_hash(bad), "{bad:?}");
        }
    }

    #[test]
    fn hash_and_lock_decide_the_action() {
        let unset = Some(PasswordState { same: false, locked: true, has_hash: false });
        let other = Some(PasswordState { same: false, locked: false, has_hash: true });
        let other_locked = Some(PasswordState { same: false, locked: true, has_hash: true });
        let same = Some(PasswordState { same: true, locked: false, has_hash: true });
        let same_locked = Some(PasswordState { same: true, locked: true, has_hash: true });
        for (hash, locked, before, lock, action) in [
            (Some("$"), None, None, Lock::Unlocks, Action::Set),
            (Some("$"), None, unset, Lock::Unlocks, Action::Set),
            (Some("$"), None, other, Lock::Same(false), Action::Set),
            (Some("$"), None, other_locked, Lock::Same(true), Action::Set),
            (Some("$"), None, same, Lock::Same(false), Action::Keep),
            (Some("$"), None, same_locked, Lock::Same(true), Action::Keep),
            (Some("$"), Some(true), same, Lock::Locks, Action::Set),
            (Some("$"), Some(false), same_locked, Lock::Unlocks, Action::Set),
            (None, Some(true), None, Lock::Same(true), Action::Keep),
            (None, Some(true), other, Lock::Locks, Action::Lock),
            (None, Some(false), other_locked, Lock::Unlocks, Action::Unlock),
            (None, Some(false), unset, Lock::Unlocks, Action::Refuse),
            (None, Some(false), other, Lock::Same(false), Action::Keep),
        ] {
            let password = Password { hash: hash.map(str::to_owned), locked };
            assert_eq!(password.lock(before), lock, "{password:?} {before:?}");
            assert_eq!(password.action(before, lock), action, "{password:?} {before:?}");
        }
    }
}
