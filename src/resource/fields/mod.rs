//! Typed fields of a resource, parsed and checked.

pub(crate) mod account_name;
pub mod field;
pub mod given;
pub mod kind;
pub(crate) mod path;
pub(crate) mod pattern;
pub(crate) mod shell;
pub(crate) mod unit_name;
pub(crate) mod url;
