//! A Kubernetes label selector, evaluated.

use std::collections::{BTreeMap, BTreeSet};

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

/// `matchLabels` and `matchExpressions`: all must hold. Empty, it matches everything.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct LabelMatcher {
    /// In any order.
    pub requirements: Vec<LabelRequirement>,
}

/// One requirement (apimachinery `LabelSelectorRequirement`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabelRequirement {
    /// Key of the label.
    pub key: String,
    /// What its value must be.
    pub operator: LabelOperator,
}

/// Of a requirement.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LabelOperator {
    /// The label has one of these values. `matchLabels` has one.
    In(BTreeSet<String>),
    /// The label has another value, or does not exist.
    NotIn(BTreeSet<String>),
    /// The label exists.
    Exists,
    /// The label does not exist.
    DoesNotExist,
}

impl LabelMatcher {
    /// Whether labels fulfil every requirement.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = labels.get(&requirement.key);
            match &requirement.operator {
                LabelOperator::In(values) => value.is_some_and(|value| values.contains(value)),
                LabelOperator::NotIn(values) => !value.is_some_and(|value| values.contains(value)),
                LabelOperator::Exists => value.is_some(),
                LabelOperator::DoesNotExist => value.is_none(),
            }
        })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::machine) fn labels(text: &str) -> Labels {
        let pairs = text.split_whitespace().map(|pair| pair.split_once('=').unwrap());
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    /// `rack=a|b`, `rack!=a|b`, `rack`, `!rack`.
    pub(in crate::machine) fn matcher(text: &str) -> LabelMatcher {
        let values = |text: &str| text.split('|').map(str::to_owned).collect();
        let requirement =
            |text: &str| match (text.split_once("!="), text.split_once('='), text.strip_prefix('!')) {
                (Some((key, text)), ..) => (key.to_owned(), LabelOperator::NotIn(values(text))),
                (_, Some((key, text)), _) => (key.to_owned(), LabelOperator::In(values(text))),
                (.., Some(key)) => (key.to_owned(), LabelOperator::DoesNotExist),
                _ => (text.to_owned(), LabelOperator::Exists),
            };
        let requirements = text.split_whitespace().map(requirement);
        let requirements = requirements.map(|(key, operator)| LabelRequirement { key, operator });
        LabelMatcher { requirements: requirements.collect() }
    }

    #[test]
    fn requirements_are_those_of_kubernetes() {
        for (selector, found, expected) in [
            ("", "", true),
            ("", "rack=a", true),
            ("rack=a", "rack=a disk=ssd", true),
            ("rack=a", "rack=b", false),
            ("rack=a", "", false),
            ("rack=a disk=ssd", "rack=a", false),
            ("rack=a disk=ssd", "rack=a disk=ssd", true),
            ("rack=a|b", "rack=b", true),
            ("rack!=a|b", "rack=b", false),
            ("rack!=a|b", "rack=c", true),
            // What does not exist has no such value.
            ("rack!=a", "", true),
            ("rack", "rack=", true),
            ("rack", "disk=ssd", false),
            ("!rack", "disk=ssd", true),
            ("!rack", "rack=a", false),
            ("rack=a rack!=a", "rack=a", false),
        ] {
            assert_eq!(matcher(selector).matches(&labels(found)), expected, "{selector:?} {found:?}");
        }
    }
}
