//! Names of MachineSets and Machines. They follow from what the object is for: a controller that does not see what it has
//! created, or that runs twice, creates the same name again, which the API server refuses.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use super::revision_hash::RevisionHash;

/// The length of a label value and of a DNS label (RFC 1123).
const LONGEST: usize = 63;
/// Bytes of a digest in the name of a Machine, and in that of a shortened name.
const BYTES: usize = 3;

/// `DEPLOYMENT-HASH`; at most 63 characters.
pub fn machine_set_name(deployment: &str, hash: &RevisionHash) -> String {
    joined(deployment, hash.as_str())
}

/// The first `count` names for Machines of a set that no Machine has; at most 63 characters each. Two callers that see
/// the same Machines choose the same names; what one of them does not see, it chooses again, and does not create.
///
/// The names depend on the UID of the set: a set that is created again has others. They end in digits of a digest, so
/// that their order means nothing.
pub fn machine_names(set: &str, set_uid: &str, taken: &BTreeSet<String>, count: u32) -> Vec<String> {
    let name = |ordinal: u64| joined(set, &digest(&format!("{set_uid}/{ordinal}")));
    let mut chosen = BTreeSet::new();
    let free = (0..).map(name).filter(|name| !taken.contains(name) && chosen.insert(name.clone()));
    free.take(usize::try_from(count).unwrap_or(usize::MAX)).collect()
}

fn digest(text: &str) -> String {
    hex::encode(&Sha256::digest(text.as_bytes())[..BYTES])
}

/// Both, with a hyphen between. The first is shortened where they are too long together, and then ends in a digest of all
/// of it.
fn joined(first: &str, last: &str) -> String {
    if first.len() + 1 + last.len() <= LONGEST {
        return format!("{first}-{last}");
    }
    let digest = digest(first);
    let room = LONGEST.saturating_sub(last.len() + digest.len() + 2);
    // Names are ASCII (RFC 1123).
    let kept: String = first.chars().take(room).collect();
    format!("{}-{digest}-{last}", kept.trim_end_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(taken: &[String], count: u32) -> Vec<String> {
        machine_names("nodes-0123", "uid", &taken.iter().cloned().collect(), count)
    }

    #[test]
    fn names_are_short_enough_and_differ() {
        let hash = RevisionHash::from_label("0123456789");
        assert_eq!(machine_set_name("nodes", &hash), "nodes-0123456789");
        let long = "a".repeat(52);
        assert_eq!(machine_set_name(&long, &hash).len(), 63);
        let (one, other) = (format!("{long}b"), format!("{long}c"));
        let (one, other) = (machine_set_name(&one, &hash), machine_set_name(&other, &hash));
        assert_eq!((one.len(), other.len()), (63, 63));
        assert_ne!(one, other);
        assert!(one.ends_with("-0123456789"), "{one}");
        let dotted = format!("{}.{}", "a".repeat(44), "b".repeat(20));
        let name = machine_set_name(&dotted, &hash);
        assert!(!name.contains(".-") && name.len() <= 63, "{name}");
    }

    #[test]
    fn machines_get_the_first_names_that_are_free() {
        let three = names(&[], 3);
        assert_eq!(three.len(), 3);
        assert_eq!(three.iter().collect::<BTreeSet<_>>().len(), 3);
        assert_eq!(names(&[], 2), three[..2], "the same ones again");
        assert_eq!(names(&three[..1], 2), three[1..], "after those that exist");
        assert_eq!(names(&three[1..2], 2), [three[0].clone(), three[2].clone()], "where one is gone");
        let other = machine_names("nodes-0123", "other", &BTreeSet::new(), 3);
        assert!(other.iter().all(|name| !three.contains(name)), "another set of the name has others");
        assert!(three.iter().all(|name| name.starts_with("nodes-0123-")), "{three:?}");
    }
}
