//! The binary as an operator runs it, on this very machine: states in a temporary directory change files in
//! another one, and nothing else.

#![expect(clippy::unwrap_used, reason = "all of it is test code; clippy knows only test functions")]

#[path = "cli/bad_input.rs"]
mod bad_input;
#[path = "cli/command_lines.rs"]
mod command_lines;
#[path = "cli/engine.rs"]
mod engine;
#[path = "cli/help.rs"]
mod help;
#[path = "cli/host_keys.rs"]
mod host_keys;
#[path = "cli/interrupts.rs"]
mod interrupts;
#[path = "cli/sandbox.rs"]
mod sandbox;
#[path = "cli/saved_plans.rs"]
mod saved_plans;
#[path = "cli/source_strings.rs"]
mod source_strings;
#[path = "support/sources.rs"]
mod sources;
#[path = "cli/sshd.rs"]
mod sshd;
#[path = "cli/standard_error.rs"]
mod standard_error;
#[path = "cli/wording.rs"]
mod wording;
