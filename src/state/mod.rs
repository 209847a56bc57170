//! State files: parsed, checked and compiled to an ordered list of resources, with no host present.
//!
//! [`Tree`] holds the texts, [`Library`] what they say, [`check()`] what is wrong with them for any host, and
//! [`compile()`] what they come to for one. YAML is read before any template language sees it, so what a
//! file declares is known before any value is, and every fault has its line and column.

mod check;
mod compile;
mod error;
mod expression;
mod field;
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
pub mod schema;
mod shape;
mod stage;
mod syntax;
mod top;
mod tree;
mod yaml;

#[cfg(test)]
mod cases;

pub use crate::resource::contract::ensure::Ensure;
pub use check::{check, open_values};
pub use compile::{Compiled, compile};
pub use error::{Fault, StateError};
pub use field::{FieldFault, Kinds, all as fields_of, expected};
pub use hint::Hint;
pub use library::Library;
pub use literal::literals;
pub use location::{Location, Position};
pub use mismatch::Mismatch;
pub use name::{NameError, ResourceId, StateName};
pub use reference::ReferenceFault;
pub use shape::Shapes;
pub use stage::{Stage, StageError};
pub use syntax::{SHARED_KEYS, SharedKey, SyntaxFault};
pub use top::TopFault;
pub use tree::{Tree, TreeError};
pub use yaml::YamlError;
