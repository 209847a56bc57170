//! The password that sudo asks for: given when it asks, once a host, and to no second host while the first one has
//! not taken it. A password that is wrong is then tried once in all, however many hosts share a directory
//! service that would lock its owner out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

use super::secret::Secret;

/// One password, for every login user that has it.
pub struct SudoPassword {
    secret: Secret,
    users: Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<Trust>>>>,
}

/// What is known of the password for one user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Trust {
    #[default]
    Untried,
    /// A host took it: another one that does not is an exception.
    Taken,
    /// The first host did not take it.
    Refused { host: String },
}

/// Leave to answer sudo on one host. Dropped without a verdict (the link broke), it says nothing.
pub struct Attempt<'a> {
    secret: &'a Secret,
    /// Held by the first host alone, so that all others wait for its verdict.
    first: Option<OwnedMutexGuard<Trust>>,
}

impl SudoPassword {
    /// Not tried yet.
    pub fn new(secret: Secret) -> Self {
        Self { secret, users: Mutex::default() }
    }

    /// The password of `user`.
    ///
    /// # Errors
    /// The host that did not take it, before any did.
    pub async fn attempt(&self, user: &str) -> Result<Attempt<'_>, String> {
        let trust = {
            let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(users.entry(user.to_owned()).or_default())
        };
        let trust = trust.lock_owned().await;
        match &*trust {
            Trust::Untried => Ok(Attempt { secret: &self.secret, first: Some(trust) }),
            Trust::Taken => Ok(Attempt { secret: &self.secret, first: None }),
            Trust::Refused { host } => Err(host.clone()),
        }
    }
}

impl Attempt<'_> {
    /// The password.
    pub fn secret(&self) -> &Secret {
        self.secret
    }

    /// It was right.
    pub fn taken(self) {
        if let Some(mut trust) = self.first {
            *trust = Trust::Taken;
        }
    }

    /// It was wrong.
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
    async fn nobody_else_tries_a_password_before_it_was_taken() {
        let password = SudoPassword::new(Secret::new("x"));
        let first = password.attempt("ops").await.unwrap();
        assert!(password.attempt("ops").now_or_never().is_none());
        assert!(password.attempt("admin").now_or_never().is_some());
        drop(first);
        let second = password.attempt("ops").await.unwrap();
        second.taken();
        let (third, fourth) =
            (password.attempt("ops").await.unwrap(), password.attempt("ops").now_or_never().unwrap());
        third.refused("c:22");
        fourth.ok().unwrap().taken();
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
