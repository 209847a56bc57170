//! What marks our lines in a stream that others may print into.

/// A word that nothing on the host can know beforehand: noise of login scripts, output of programs and
/// content of files are told from our own frames by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    /// From 128 random bits, which the caller draws once a session.
    pub fn new(random: u128) -> Self {
        Self(format!("metalform-{random:032x}"))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}
