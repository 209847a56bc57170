//! What a command gets from its caller.

use jiff::Timestamp;

use super::ssh_options::SshEnvironment;
use crate::engine::cancel::Cancel;
use crate::engine::host::EventSink;

/// The caller's clock, event sink, cancellation and SSH environment.
#[derive(Clone, Copy)]
pub struct CommandContext<'a> {
    /// The clock.
    pub clock: fn() -> Timestamp,
    /// Receives what happens while the command runs.
    pub events: EventSink<'a>,
    /// Ends the command early: gracefully first, then at once.
    pub cancel: &'a Cancel,
    /// What `ssh` would take from its user.
    pub ssh: &'a SshEnvironment,
}
