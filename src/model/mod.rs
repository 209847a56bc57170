//! Plain validated data. No I/O, no clock, no async; every other module may use it.

pub mod event;
pub mod facts;
pub mod name;
pub mod ssh_target;
