//! Passphrases and passwords, and what prompts for them.

use std::fmt;

use async_trait::async_trait;
use zeroize::Zeroizing;

/// A passphrase or a password. Its memory is overwritten when it is dropped, and `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Takes ownership of the string.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The secret itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(...)")
    }
}

/// Why a prompt has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// There is no terminal.
    #[error("no terminal to prompt on")]
    NoTerminal,
    /// The prompt was cancelled or answered with an empty line.
    #[error("no answer to the prompt")]
    Refused,
    /// The terminal failed.
    #[error("the terminal: {0}")]
    Terminal(String),
}

/// Prompts for secrets.
#[async_trait]
pub trait Prompter: Send + Sync {
    /// Prompts for what `question` names, such as `passphrase of /root/.ssh/id_ed25519`, without echo.
    ///
    /// # Errors
    /// When there is no answer.
    async fn ask(&self, question: &str) -> Result<Secret, PromptError>;
}

/// A prompter without a terminal.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoPrompter;

#[async_trait]
impl Prompter for NoPrompter {
    async fn ask(&self, _: &str) -> Result<Secret, PromptError> {
        Err(PromptError::NoTerminal)
    }
}

/// A prompter with one answer to every question, such as the content of a file.
#[derive(Debug, Clone)]
pub struct FixedPrompter(pub Secret);

#[async_trait]
impl Prompter for FixedPrompter {
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
