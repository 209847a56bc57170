//! A mark for metalform's own lines in the output of a host.

/// A word that nothing on the host can know in advance: it tells metalform's frames apart from the output of login scripts
/// and programs and from the content of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    /// From 128 random bits, new for each session.
    pub fn new(random: u128) -> Self {
        Self(format!("metalform-{random:032x}"))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}
