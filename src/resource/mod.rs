//! Resource kinds: what one thing on a host should be, what to ask to know what it is, and the change
//! between the two. Pure: nothing here touches a host.
//!
//! Each kind is a file with its fields, its probes and its `diff`. The set is closed: [`Resource`] is an
//! enum, so a new kind does not compile until every question about it is answered.

pub mod change;
pub mod field;
pub mod probe;
pub mod step;
