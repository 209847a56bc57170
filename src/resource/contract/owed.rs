//! Reactions that a change requires: the restart of a service after a change of its configuration, a command with
//! `only_if_changed`.
//!
//! A run may be killed between the change and the reaction, something between them may fail, and so may the reaction
//! itself. The next run finds nothing to change, so the host keeps a marker of each reaction: written before the change
//! begins, removed when the reaction has succeeded.

use sha2::{Digest, Sha256};

use crate::resource::contract::resource_id::ResourceId;

/// One resource that reacts to the change of another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owed {
    /// The resource that reacts.
    pub reaction: ResourceId,
    /// The earlier resource whose change requires it.
    pub cause: ResourceId,
    /// Whether a boot has the same effect: it starts services with their new configuration.
    pub until_boot: bool,
}

impl Owed {
    /// File name of the marker: the same for the same pair of resources.
    pub fn marker(&self) -> String {
        let pair = format!("{}\0{}", self.reaction, self.cause);
        hex::encode(&Sha256::digest(pair)[..16])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_of_resources_has_its_own_marker() {
        let owed = |reaction: &str, cause: &str| {
            let [reaction, cause] = [reaction, cause].map(|id| id.parse().unwrap());
            Owed { reaction, cause, until_boot: true }.marker()
        };
        let one = owed("service:a", "file:/b");
        assert_eq!(one, owed("service:a", "file:/b"));
        assert_ne!(one, owed("service:a", "file:/c"));
        assert_ne!(one, owed("service:b", "file:/b"));
        assert!(one.len() == 32 && one.chars().all(|c| c.is_ascii_hexdigit()));
    }
}
