//! Hints: what to do about a fault.

use std::fmt;

use super::location::Location;
use crate::resource::contract::resource_id::ResourceId;

/// One instruction, displayed after the error on a line of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// YAML reads `1.30` as 1.3, and `0644` as another number than chmod(1); quotes prevent that.
    QuoteNumber {
        /// As written.
        written: String,
    },
    /// YAML reads a value that begins with `{{` as a map.
    QuoteExpression,
    /// `{% %}` in a state file.
    MoveToTemplate,
    /// `{{ }}` in `when` or `each`.
    WriteBareExpression {
        /// `when` or `each`.
        key: &'static str,
    },
    /// A shared key before the kind.
    KindFirst {
        /// The key.
        key: String,
    },
    /// A state without `about`.
    DescribeState,
    /// A value that no host has.
    Roots,
    /// A filter or a test that does not exist.
    Filters,
    /// A malformed id.
    WriteId,
    /// A reaction to a resource that runs later.
    MoveUp {
        /// The resource that runs later.
        id: ResourceId,
    },
    /// A state that no role has.
    NameState,
    /// The location of the error is in a template.
    RenderedFor {
        /// The resource that it is rendered for.
        place: Location,
    },
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::QuoteNumber { written } => write!(f, "quote the value: \"{written}\""),
            Self::QuoteExpression => f.write_str("quote the whole value: \"{{ ... }}\""),
            Self::MoveToTemplate => f.write_str(
                "move this to templates/; in a state file use when: for conditions and each: for loops",
            ),
            Self::WriteBareExpression { key } => write!(f, "write {key}: without {{{{ and }}}}"),
            Self::KindFirst { key } => write!(f, "move {key} below the line with the kind and the name"),
            Self::DescribeState => {
                f.write_str("add about: with one sentence that describes the purpose of the state")
            }
            Self::Roots => {
                f.write_str("the values are cluster, node, facts and peers, and with each: also item")
            }
            Self::Filters => f.write_str(
                "use those of minijinja, to_json, b64encode or without_tag; those of Ansible and Salt are not available",
            ),
            Self::WriteId => f.write_str("use kind:name, such as package:containerd"),
            Self::MoveUp { id } => write!(f, "move {id} up, or add after: [{id}]"),
            Self::NameState => {
                f.write_str("add it to states/top.yaml, or to requires: of a state that is used")
            }
            Self::RenderedFor { place } => write!(f, "rendered for the resource at {place}"),
        }
    }
}
