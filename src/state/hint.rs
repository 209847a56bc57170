//! What to do about a fault.

use std::fmt;

use super::location::Location;
use super::name::ResourceId;

/// One piece of advice. Shown after the error, on a line of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hint {
    /// YAML reads `1.30` as 1.3 and `0644` as another number than chmod does: quotes keep them.
    QuoteNumber {
        /// As written.
        written: String,
    },
    /// A value that begins with `{{` is a map to YAML.
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
    /// A state that does not say what it is for.
    SayWhatFor,
    /// A value that exists on no host.
    Roots,
    /// A filter or a test that does not exist.
    Filters,
    /// What an id looks like.
    WriteId,
    /// A reaction to something that happens later.
    MoveUp {
        /// What happens later.
        id: ResourceId,
    },
    /// A state that nothing has.
    NameState,
    /// A template shows its own place; this is who wanted it.
    WantedBy {
        /// The resource.
        place: Location,
    },
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::QuoteNumber { written } => write!(f, "put it in quotes: \"{written}\""),
            Self::QuoteExpression => f.write_str("put the whole value in double quotes: \"{{ ... }}\""),
            Self::MoveToTemplate => f.write_str(
                "put this in templates/; a state file has when: for conditions and each: for loops",
            ),
            Self::WriteBareExpression { key } => write!(f, "write {key}: without {{{{ and }}}}"),
            Self::KindFirst { key } => write!(f, "put {key} below the line with the kind and the name"),
            Self::SayWhatFor => f.write_str("say in one sentence what the state is for"),
            Self::Roots => {
                f.write_str("values begin with cluster, node, facts or peers; with each there is item too")
            }
            Self::Filters => f.write_str(
                "minijinja's own are known, and to_json and b64encode; Ansible's and Salt's are not",
            ),
            Self::WriteId => f.write_str("for example package:containerd"),
            Self::MoveUp { id } => write!(f, "move {id} up, or add after: [{id}]"),
            Self::NameState => {
                f.write_str("name it in states/top.yaml, or in requires: of a state that is there")
            }
            Self::WantedBy { place } => write!(f, "it was rendered for the resource at {place}"),
        }
    }
}
