//! What must not be shown: passphrases and passwords, and who is asked for them.

use std::fmt;

use async_trait::async_trait;
use zeroize::Zeroizing;

/// A passphrase or a password. Its memory is overwritten when it is dropped, and nothing prints it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes the text over.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The text, for those that must have it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(...)")
    }
}

/// Why nobody gave a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// Nobody can be asked.
    #[error("there is no terminal to ask for it")]
    NoTerminal,
    /// Whoever was asked gave nothing.
    #[error("it was not given")]
    Refused,
    /// The terminal failed.
    #[error("the terminal: {0}")]
    Terminal(String),
}

/// Somebody who can be asked for a secret.
#[async_trait]
pub trait Prompter: Send + Sync {
    /// Asks for what `question` names, such as `passphrase of /root/.ssh/id_ed25519`. What is typed is not shown.
    ///
    /// # Errors
    /// When nobody answers.
    async fn ask(&self, question: &str) -> Result<Secret, PromptError>;
}

/// Where nobody is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

#[async_trait]
impl Prompter for Nobody {
    async fn ask(&self, _: &str) -> Result<Secret, PromptError> {
        Err(PromptError::NoTerminal)
    }
}

/// Who has one answer to every question, such as a file that was named beforehand.
#[derive(Debug, Clone)]
pub struct Given(pub Secret);

#[async_trait]
impl Prompter for Given {
    async fn ask(&self, _: &str) -> Result<Secret, PromptError> {
        Ok(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "Secret(...)");
    }
}
