//! The clock of every command.

use jiff::Timestamp;

/// The present time. Everything else gets the clock as an argument.
#[expect(clippy::disallowed_methods, reason = "the clock is read here only")]
pub fn now() -> Timestamp {
    Timestamp::now()
}
