//! A selector of labels, with the semantics of Kubernetes (apimachinery, `LabelSelectorAsSelector`).

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{rules, schema};

/// All requirements must match. Without any, every object does. Displays in the form of `kubectl -l`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelSelector {
    /// Labels with exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::labels")]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements on labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = schema::MOST_ENTRIES))]
    pub match_expressions: Vec<SelectorRequirement>,
}

/// A requirement on the label `key`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", try_from = "Unchecked")]
#[schemars(!try_from, extend("x-kubernetes-validations" = rules::label_requirement()))]
pub struct SelectorRequirement {
    /// With its prefix.
    #[schemars(length(min = 1, max = schema::LONGEST_KEY))]
    pub key: String,
    /// How the label is compared with `values`.
    pub operator: SelectorOperator,
    /// For In and NotIn only, where there is at least one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::label_values")]
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum SelectorOperator {
    /// The label has one of the values.
    In,
    /// The label is absent, or has none of the values.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

/// A requirement whose operator has too many or too few values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("operator {operator:?} expects {}", if *.needs_values { "values" } else { "no values" })]
pub struct SelectorRequirementError {
    operator: SelectorOperator,
    needs_values: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Unchecked {
    key: String,
    operator: SelectorOperator,
    #[serde(default)]
    values: Vec<String>,
}

impl TryFrom<Unchecked> for SelectorRequirement {
    type Error = SelectorRequirementError;

    fn try_from(Unchecked { key, operator, values }: Unchecked) -> Result<Self, Self::Error> {
        let needs_values = matches!(operator, SelectorOperator::In | SelectorOperator::NotIn);
        if values.is_empty() == needs_values {
            return Err(SelectorRequirementError { operator, needs_values });
        }
        Ok(Self { key, operator, values })
    }
}

impl LabelSelector {
    /// Whether there is no requirement.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|one| one.matches(labels.get(&one.key)))
    }
}

impl SelectorRequirement {
    fn matches(&self, value: Option<&String>) -> bool {
        let among = value.is_some_and(|value| self.values.contains(value));
        match self.operator {
            SelectorOperator::In => among,
            SelectorOperator::NotIn => !among,
            SelectorOperator::Exists => value.is_some(),
            SelectorOperator::DoesNotExist => value.is_none(),
        }
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels = self.match_labels.iter().map(|(key, value)| format!("{key}={value}"));
        let expressions = self.match_expressions.iter().map(ToString::to_string);
        f.write_str(&labels.chain(expressions).collect::<Vec<_>>().join(","))
    }
}

impl fmt::Display for SelectorRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, values, .. } = self;
        match self.operator {
            SelectorOperator::In => write!(f, "{key} in ({})", values.join(",")),
            SelectorOperator::NotIn => write!(f, "{key} notin ({})", values.join(",")),
            SelectorOperator::Exists => f.write_str(key),
            SelectorOperator::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

#[cfg(test)]
pub(in crate::machine) mod tests {
    use super::*;

    pub(in crate::machine) fn labels(text: &str) -> BTreeMap<String, String> {
        let pairs = text.split_whitespace().map(|pair| pair.split_once('=').unwrap());
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    /// `rack=a|b`, `rack!=a|b`, `rack`, `!rack`.
    pub(in crate::machine) fn expressions(text: &str) -> LabelSelector {
        let requirement = |text: &str| {
            let (key, operator, values) =
                match (text.split_once("!="), text.split_once('='), text.strip_prefix('!')) {
                    (Some((key, values)), ..) => (key, SelectorOperator::NotIn, values),
                    (_, Some((key, values)), _) => (key, SelectorOperator::In, values),
                    (.., Some(key)) => (key, SelectorOperator::DoesNotExist, ""),
                    _ => (text, SelectorOperator::Exists, ""),
                };
            let values = if operator == SelectorOperator::Exists || operator == SelectorOperator::DoesNotExist
            {
                Vec::new()
            } else {
                values.split('|').map(str::to_owned).collect()
            };
            SelectorRequirement { key: key.to_owned(), operator, values }
        };
        LabelSelector {
            match_expressions: text.split_whitespace().map(requirement).collect(),
            ..LabelSelector::default()
        }
    }

    fn selector(yaml: &str) -> LabelSelector {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn every_requirement_must_match() {
        let labels = BTreeMap::from([("rack".to_owned(), "a".to_owned()), ("ssd".to_owned(), String::new())]);
        for (yaml, displayed, expected) in [
            ("{}", "", true),
            ("{matchLabels: {rack: a}}", "rack=a", true),
            ("{matchLabels: {rack: a, ssd: ''}}", "rack=a,ssd=", true),
            ("{matchLabels: {rack: b}}", "rack=b", false),
            ("{matchLabels: {gpu: ''}}", "gpu=", false),
            ("{matchExpressions: [{key: rack, operator: In, values: [a, b]}]}", "rack in (a,b)", true),
            ("{matchExpressions: [{key: rack, operator: In, values: [b]}]}", "rack in (b)", false),
            ("{matchExpressions: [{key: gpu, operator: In, values: [b]}]}", "gpu in (b)", false),
            ("{matchExpressions: [{key: rack, operator: NotIn, values: [a, b]}]}", "rack notin (a,b)", false),
            // As in Kubernetes, an absent label has none of the values.
            ("{matchExpressions: [{key: gpu, operator: NotIn, values: [a]}]}", "gpu notin (a)", true),
            ("{matchExpressions: [{key: ssd, operator: Exists}]}", "ssd", true),
            ("{matchExpressions: [{key: gpu, operator: Exists}]}", "gpu", false),
            ("{matchExpressions: [{key: gpu, operator: DoesNotExist}]}", "!gpu", true),
            ("{matchExpressions: [{key: ssd, operator: DoesNotExist, values: []}]}", "!ssd", false),
            (
                "{matchLabels: {rack: a}, matchExpressions: [{key: gpu, operator: Exists}]}",
                "rack=a,gpu",
                false,
            ),
        ] {
            let selector = selector(yaml);
            assert_eq!(selector.matches(&labels), expected, "{yaml}");
            assert_eq!(selector.to_string(), displayed, "{yaml}");
            assert_eq!(selector.is_empty(), displayed.is_empty(), "{yaml}");
        }
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
            assert_eq!(expressions(selector).matches(&labels(found)), expected, "{selector:?} {found:?}");
        }
    }
}
