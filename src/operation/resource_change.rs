//! What an action would change of one resource.

use crate::resource::contract::change::{Change, Difference};

/// A resource, file or object that an action would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceChange {
    /// `kind:name`.
    pub id: String,
    /// What differs, in the order to show it.
    pub differences: Vec<Difference>,
    /// Paths of the files, links and directories that would be written or removed, in order, each once.
    pub files: Vec<String>,
}

impl ResourceChange {
    /// The change of a resource of a host.
    pub fn new(id: String, change: Change) -> Self {
        let mut files: Vec<String> = Vec::new();
        for path in change.steps.iter().flat_map(|step| step.paths()) {
            if !files.iter().any(|known| known == path) {
                files.push(path.to_owned());
            }
        }
        Self { id, differences: change.differences, files }
    }

    /// Something that does not exist; its content is not known beforehand.
    pub fn creation(kind: &str, name: &str, files: Vec<String>) -> Self {
        let state =
            Difference::Field { name: "state".to_owned(), before: None, after: Some("created".to_owned()) };
        Self { id: format!("{kind}:{name}"), differences: vec![state], files }
    }
}
