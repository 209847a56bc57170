//! The password for sudo: given when sudo prompts, once a host, and to no second host before the first one has accepted
//! it. A wrong password is then tried once in all, however many hosts share a directory service that would lock its
//! owner out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

use super::secret::Secret;

/// One password, for every login user.
pub struct SudoPassword {
    secret: Secret,
    users: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Trust>>>>,
}

/// What is known about the password for one user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Trust {
    #[default]
    Untried,
    /// A host accepted it: a refusal by another host concerns that host alone.
    Accepted,
    /// The first host refused it.
    Refused { host: String },
}

/// Permission to answer sudo on one host. Dropped without a verdict (the connection broke), it changes nothing.
pub struct SudoAttempt<'a> {
    secret: &'a Secret,
    /// Held by the first host, so that all others wait for its verdict.
    first: Option<OwnedMutexGuard<Trust>>,
}

impl SudoPassword {
    /// A password that no host has verified.
    pub fn new(secret: Secret) -> Self {
        Self { secret, users: Mutex::default() }
    }

    /// The password of `user`; waits while the first host verifies it.
    ///
    /// # Errors
    /// The address of the host that refused it, when none has accepted it.
    pub async fn attempt(&self, user: &str) -> Result<SudoAttempt<'_>, String> {
        let trust = {
            let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(users.entry(user.to_owned()).or_default())
        };
        let trust = trust.lock_owned().await;
        match &*trust {
            Trust::Untried => Ok(SudoAttempt { secret: &self.secret, first: Some(trust) }),
            Trust::Accepted => Ok(SudoAttempt { secret: &self.secret, first: None }),
            Trust::Refused { host } => Err(host.clone()),
        }
    }
}

impl SudoAttempt<'_> {
    /// The password to answer with.
    pub fn secret(&self) -> &Secret {
        self.secret
    }

    /// sudo accepted the password.
    pub fn accepted(self) {
        if let Some(mut trust) = self.first {
            *trust = Trust::Accepted;
        }
    }

    /// sudo refused the password.
    pub fn refused(self, host: &str) {
        if let Some(mut trust) = self.first {
            *trust = Trust::Refused { host: host.to_owned() };
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn no_second_host_tries_a_password_before_the_first_accepted_it() {
        let password = SudoPassword::new(Secret::new("x"));
        let first = password.attempt("ops").await.unwrap();
        assert!(password.attempt("ops").now_or_never().is_none());
        assert!(password.attempt("admin").now_or_never().is_some());
        drop(first);
        let second = password.attempt("ops").await.unwrap();
        second.accepted();
        let (third, fourth) =
            (password.attempt("ops").await.unwrap(), password.attempt("ops").now_or_never().unwrap());
        third.refused("c:22");
        fourth.ok().unwrap().accepted();
        assert_eq!(password.attempt("ops").await.unwrap().secret().expose(), "x");
    }

    #[tokio::test]
    async fn a_password_that_the_first_host_refused_is_not_tried_again() {
        let password = SudoPassword::new(Secret::new("x"));
        password.attempt("ops").await.unwrap().refused("a:22");
        assert_eq!(password.attempt("ops").await.err(), Some("a:22".to_owned()));
        assert!(password.attempt("admin").await.is_ok());
    }
}
