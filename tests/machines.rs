//! The API of Machines as its users see it: the manifests of the seeds, and what is admitted.

#![expect(clippy::unwrap_used, reason = "all of it is test code; clippy knows only test functions")]

#[path = "machines/access.rs"]
mod access;
#[path = "machines/admission.rs"]
mod admission;
#[path = "machines/cases.rs"]
mod cases;
#[path = "machines/definition.rs"]
mod definition;
#[path = "machines/seeds.rs"]
mod seeds;
#[path = "support/sources.rs"]
mod sources;
