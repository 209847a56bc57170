//! State files: parsed, checked and compiled to an ordered list of resources, without a host.
//!
//! [`Tree`] contains the files, [`Library`] their parsed content; [`check()`] finds faults that do not depend on a host,
//! and [`compile()`] evaluates a library for one. YAML is parsed before any expression, so the structure of a file is
//! known before any value is, and every fault has a line and a column.

mod bundle_needs;
mod check;
mod compile;
mod compiled;
mod config_digest;
mod error;
mod expression;
mod field;
mod field_fault;
mod hint;
mod include;
mod instance;
mod library;
mod link;
mod literal;
mod location;
mod mismatch;
mod name;
mod order;
mod reads;
mod reference;
mod reference_fault;
pub mod schema;
mod shape;
mod shared_key;
mod stage;
mod state_file;
mod syntax;
mod syntax_fault;
mod top;
mod top_fault;
mod tree;
mod yaml;
mod yaml_fault;
mod yaml_parser;

#[cfg(test)]
mod cases;

pub use crate::resource::contract::ensure::Ensure;
pub use crate::resource::contract::resource_id::ResourceId;
pub use bundle_needs::{BundleNeed, bundle_needs};
pub use check::{check, open_values};
pub use compile::compile;
pub use compiled::Compiled;
pub use config_digest::PLACEHOLDER;
pub use error::{Fault, StateError};
pub use field::{Kinds, all as fields_of};
pub use field_fault::FieldFault;
pub use hint::Hint;
pub use library::Library;
pub use literal::literals;
pub use location::{Location, Position};
pub use mismatch::Mismatch;
pub use name::{StateName, StateNameError};
pub use reference_fault::ReferenceFault;
pub use shape::Shapes;
pub use shared_key::{SHARED_KEYS, SharedKey};
pub use stage::{Stage, StageError};
pub use syntax_fault::SyntaxFault;
pub use top_fault::TopFault;
pub use tree::{Tree, TreeError};
pub use yaml_fault::YamlFault;
