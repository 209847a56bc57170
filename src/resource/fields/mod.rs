//! Typed fields of a resource, parsed and checked.

pub(in crate::resource) mod account_name;
pub mod field_error;
pub mod field_spec;
pub(in crate::resource) mod field_values;
pub(in crate::resource) mod path;
pub(in crate::resource) mod pattern;
pub(in crate::resource) mod remote_file;
pub(in crate::resource) mod unit_name;
pub(in crate::resource) mod url;
