//! Parsers with damaged input.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of it is test code; clippy knows only test functions"
)]

#[path = "support/child.rs"]
mod child;
#[path = "damage/harness.rs"]
mod harness;
#[path = "damage/shell.rs"]
mod shell;
#[path = "damage/targets.rs"]
mod targets;
