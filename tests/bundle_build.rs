//! Builds of bundles when a source, the network or the disk fails, when they are killed, and when they are repeated.

#![expect(clippy::unwrap_used, reason = "all of it is test code; clippy knows only test functions")]

#[path = "bundle_build/changed.rs"]
mod changed;
#[path = "bundle_build/command.rs"]
mod command;
#[expect(dead_code, reason = "tests/simulation.rs uses the rest")]
#[path = "support/dice.rs"]
mod dice;
#[path = "bundle_build/downloads.rs"]
mod downloads;
#[path = "bundle_build/failures.rs"]
mod failures;
#[path = "support/files_below.rs"]
mod files_below;
#[path = "bundle_build/killed.rs"]
mod killed;
#[path = "bundle_build/pinned.rs"]
mod pinned;
#[path = "bundle_build/repeated.rs"]
mod repeated;
#[path = "bundle_build/source_server.rs"]
mod source_server;
#[path = "bundle_build/workshop.rs"]
mod workshop;
