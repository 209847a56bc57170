//! One file a command; the only place that prints.

pub mod failure;
