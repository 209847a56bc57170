//! The state language as a whole: wrong files, and the reference.

#![expect(clippy::unwrap_used, reason = "all of it is test code; clippy knows only test functions")]

#[path = "language/corpus.rs"]
mod corpus;
#[path = "language/manual.rs"]
mod manual;
