//! The annotations by which cluster-autoscaler knows what a Node of a MachineDeployment will have, where there is none.
//!
//! # Guarantees
//! - The names and values that metalform has written are recorded in [`EXPECTED_CAPACITY`], by the same write. Only what
//!   is recorded, and has the recorded value, is ever changed or removed: any other value is an operator's, and stays.
//! - An operator who removes an annotation has metalform write it again; one who sets it to an empty string has none, as
//!   cluster-autoscaler reads that.

use std::collections::BTreeMap;

use super::pool_offer::ExpectedNode;
use crate::model::api_contract::{EXPECTED_CAPACITY, EXPECTED_CAPACITY_PREFIX};

/// The annotations that differ from what is expected; `None` removes one. Empty if there is nothing to write.
pub(super) fn change(
    present: &BTreeMap<String, String>,
    expected: &ExpectedNode,
) -> BTreeMap<String, Option<String>> {
    let record = present.get(EXPECTED_CAPACITY);
    // A record that cannot be parsed is none: then every annotation is an operator's.
    let recorded = record.and_then(|text| serde_json::from_str::<BTreeMap<String, String>>(text).ok());
    let recorded = recorded.unwrap_or_default();
    let key = |name: &str| format!("{EXPECTED_CAPACITY_PREFIX}{name}");
    let is_own = |name: &str| recorded.contains_key(name) && present.get(&key(name)) == recorded.get(name);
    let may_write = |name: &str| is_own(name) || !present.contains_key(&key(name));

    let own: BTreeMap<&str, &String> =
        expected.iter().filter(|(name, _)| may_write(name)).map(|(name, value)| (*name, value)).collect();
    let set = own.iter().filter(|(name, value)| present.get(&key(name)) != Some(value));
    let mut change: BTreeMap<String, Option<String>> =
        set.map(|(name, value)| (key(name), Some((*value).clone()))).collect();
    let removed = recorded.keys().filter(|name| is_own(name) && !expected.contains_key(name.as_str()));
    change.extend(removed.map(|name| (key(name), None)));
    let now = (!own.is_empty()).then(|| serde_json::json!(own).to_string());
    if now.as_ref() != record {
        change.insert(EXPECTED_CAPACITY.to_owned(), now);
    }
    change
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["cpu", "labels", "memory"];

    /// `cpu=4 memory=1Gi`, `record={...}`.
    fn present(text: &str) -> BTreeMap<String, String> {
        let all = text.split_whitespace().map(|one| one.split_once('=').unwrap());
        let key = |name: &str| match name {
            "record" => EXPECTED_CAPACITY.to_owned(),
            "other" => name.to_owned(),
            name => format!("{EXPECTED_CAPACITY_PREFIX}{name}"),
        };
        all.map(|(name, value)| (key(name), value.to_owned())).collect()
    }

    fn expected(text: &str) -> ExpectedNode {
        let all = text.split_whitespace().map(|one| one.split_once('=').unwrap());
        let name = |text: &str| *NAMES.iter().find(|name| **name == text).unwrap();
        all.map(|(key, value)| (name(key), value.to_owned())).collect()
    }

    #[test]
    fn only_what_metalform_has_written_is_changed() {
        const BOTH: &str = r#"cpu=4 memory=1Gi record={"cpu":"4","memory":"1Gi"}"#;
        for (before, expects, after) in [
            ("", "", ""),
            ("other=a", "", "other=a"),
            ("", "cpu=4 memory=1Gi", BOTH),
            (BOTH, "cpu=4 memory=1Gi", BOTH),
            (BOTH, "cpu=2 memory=1Gi", r#"cpu=2 memory=1Gi record={"cpu":"2","memory":"1Gi"}"#),
            (BOTH, "cpu=4", r#"cpu=4 record={"cpu":"4"}"#),
            (BOTH, "", ""),
            // Removed by an operator.
            (r#"memory=1Gi record={"cpu":"4","memory":"1Gi"}"#, "cpu=4 memory=1Gi", BOTH),
            (
                r#"memory=1Gi record={"cpu":"4","memory":"1Gi"}"#,
                "memory=1Gi",
                r#"memory=1Gi record={"memory":"1Gi"}"#,
            ),
            ("cpu=4 memory=1Gi", "", "cpu=4 memory=1Gi"),
            // An operator's own, before there was any of metalform's.
            ("cpu=9", "cpu=4 memory=1Gi", r#"cpu=9 memory=1Gi record={"memory":"1Gi"}"#),
            ("cpu=4", "cpu=4", "cpu=4"),
            ("cpu=", "cpu=4", "cpu="),
            // Changed by an operator, and then kept.
            (
                r#"cpu=9 memory=1Gi record={"cpu":"4","memory":"1Gi"}"#,
                "cpu=4 memory=1Gi",
                r#"cpu=9 memory=1Gi record={"memory":"1Gi"}"#,
            ),
            (r#"cpu=9 record={"cpu":"4"}"#, "", "cpu=9"),
            // Names that this release does not know.
            (r#"gpu-count=1 record={"gpu-count":"1"}"#, "cpu=4", r#"cpu=4 record={"cpu":"4"}"#),
            ("cpu=4 record=x", "cpu=2 labels=a", r#"cpu=4 labels=a record={"labels":"a"}"#),
            ("cpu=4 record=x", "", "cpu=4"),
        ] {
            let mut all = present(before);
            let changed = change(&all, &expected(expects));
            for (key, value) in changed {
                assert_ne!(all.get(&key), value.as_ref(), "{before:?} {expects:?}: {key} is written in vain");
                match value {
                    Some(value) => all.insert(key, value),
                    None => all.remove(&key),
                };
            }
            assert_eq!(all, present(after), "{before:?} {expects:?}");
            assert_eq!(
                change(&all, &expected(expects)),
                BTreeMap::new(),
                "{before:?} {expects:?}: not at rest"
            );
        }
    }
}
