//! The content of a state file, before kinds and values are known.

use std::collections::BTreeMap;

use super::location::Position;
use super::mismatch::Located;
use super::name::StateName;
use super::yaml::Node;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::kind::{Kind, UnknownKind};

/// One file of `states/`.
#[derive(Debug, Clone, PartialEq)]
pub struct StateFile {
    pub name: StateName,
    /// One sentence, shown in plans.
    pub about: String,
    /// States that run before this one.
    pub requires: Vec<Located<StateName>>,
    /// In the order to run.
    pub resources: Vec<ResourceSyntax>,
}

/// One entry of `resources`, as written.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceSyntax {
    /// Its first key.
    pub kind: Located<Result<Kind, UnknownKind>>,
    /// The value of its first key; may contain `{{ }}`.
    pub name: Located<String>,
    pub ensure: Ensure,
    /// An expression; the resource is left out where it is false.
    pub when: Option<Located<String>>,
    /// The resource is repeated for each item.
    pub each: Option<Each>,
    /// Ids of resources that run before this one, wherever they are.
    pub after: Vec<Located<String>>,
    /// Ids; it runs only if one of them changed. `None` where the key is not set.
    pub only_if_changed: Option<Vec<Located<String>>>,
    /// Whether its content must never be shown.
    pub sensitive: bool,
    /// The other keys: the fields of its kind, by name.
    pub fields: BTreeMap<String, FieldSyntax>,
}

/// One field of a resource, as written.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldSyntax {
    /// Of the key.
    pub at: Position,
    /// With a position of its own.
    pub value: Node,
}

/// The items of a repeated resource; `item` is each in turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Each {
    /// An expression that evaluates to a list.
    Expression(Located<String>),
    /// The items.
    Items(Vec<Node>),
}
