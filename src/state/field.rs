//! Whether a resource has the fields of its kind, as far as that can be told without values.

use super::expression;
use super::hint::Hint;
use super::location::Position;
use super::mismatch::{self, Mismatch};
use super::syntax::Resource;
use super::yaml::{Node, Yaml};
use crate::model::near::Near;
use crate::resource::KindSpec;
use crate::resource::contract::ensure::Ensure;
use crate::resource::fields::field::{FieldSort, FieldSpec};

/// What is known of kinds.
pub type Kinds<'a> = &'a [KindSpec];

/// The fields of a kind; `None` for what is no kind.
pub(super) fn of_kind(kinds: Kinds<'_>, kind: &str) -> Option<&'static [FieldSpec]> {
    kinds.iter().find(|spec| spec.name == kind).map(|spec| spec.fields)
}

/// The field that names a template, in every kind that has it. The template's text takes its place, as
/// [`CONTENT`], before the resource reaches its kind.
pub(super) const SOURCE: &str = "source";

/// What becomes of [`SOURCE`].
pub(super) const CONTENT: &str = "content";

/// What is wrong with the fields of a resource.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldFault {
    /// No such kind.
    #[error("unknown kind {kind:?}{near}")]
    UnknownKind {
        /// As written.
        kind: String,
        /// What may have been meant.
        near: Near,
    },
    /// The kind has no such field.
    #[error("unknown field {field:?} of {kind}{near}")]
    UnknownField {
        /// As written.
        field: String,
        /// The kind.
        kind: String,
        /// What may have been meant.
        near: Near,
    },
    /// A field that the kind needs is not there.
    #[error("{kind} needs the field {field:?}")]
    MissingField {
        /// The kind.
        kind: String,
        /// Which one.
        field: &'static str,
    },
    /// A value of the wrong sort.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// A template that is not in `templates/`.
    #[error("there is no template templates/{template}{near}")]
    NoTemplate {
        /// As written.
        template: String,
        /// What may have been meant.
        near: Near,
    },
    /// An expression reads a value that does not exist anywhere.
    #[error("there is no value {root:?}{near}")]
    UnknownRoot {
        /// The first word of the expression.
        root: String,
        /// What may have been meant.
        near: Near,
    },
    /// An expression reads a field that its value does not have on any host.
    #[error("there is no value {value}{near}")]
    UnknownValue {
        /// Its path, up to what is unknown.
        value: String,
        /// What may have been meant.
        near: Near,
    },
    /// A filter that does not exist.
    #[error("there is no filter {name:?}")]
    UnknownFilter {
        /// As written.
        name: String,
    },
    /// A test that does not exist.
    #[error("there is no test {name:?}")]
    UnknownTest {
        /// As written.
        name: String,
    },
    /// Templates include each other, or one itself.
    #[error("these templates include each other: {circle}")]
    IncludeCircle {
        /// `a → b → a`.
        circle: String,
    },
}

impl FieldFault {
    pub(super) fn hint(&self) -> Option<Hint> {
        match self {
            Self::Mismatch(mismatch) => mismatch.hint(),
            Self::UnknownRoot { .. } => Some(Hint::Roots),
            Self::UnknownFilter { .. } | Self::UnknownTest { .. } => Some(Hint::Filters),
            _ => None,
        }
    }
}

/// Every fault of a resource's kind and fields.
pub(super) fn check(resource: &Resource, kinds: Kinds<'_>) -> Vec<(Position, FieldFault)> {
    let kind = &resource.kind.value;
    let Some(specs) = of_kind(kinds, kind) else {
        let near = Near::to(kind, kinds.iter().map(|spec| spec.name));
        return vec![(resource.kind.at, FieldFault::UnknownKind { kind: kind.clone(), near })];
    };
    let mut faults = Vec::new();
    for (name, field) in &resource.fields {
        match all(specs).find(|spec| spec.name == name) {
            Some(spec) => faults.extend(
                mismatch_of(name, spec.sort, &field.value).map(|(at, fault)| (at, FieldFault::from(fault))),
            ),
            None => {
                let near = Near::to(name, all(specs).map(|spec| spec.name));
                let fault = FieldFault::UnknownField { field: name.clone(), kind: kind.clone(), near };
                faults.push((field.at, fault));
            }
        }
    }
    if resource.ensure == Ensure::Present {
        let given = |name: &str| {
            resource.fields.contains_key(name) || (name == CONTENT && resource.fields.contains_key(SOURCE))
        };
        let missing = specs.iter().filter(|spec| spec.required && !given(spec.name));
        faults.extend(missing.map(|spec| {
            (resource.kind.at, FieldFault::MissingField { kind: kind.clone(), field: spec.name })
        }));
    }
    faults
}

/// [`SOURCE`], for the kinds that have content and do not say so themselves.
static TEMPLATE: FieldSpec = FieldSpec {
    name: SOURCE,
    sort: FieldSort::Text,
    required: false,
    about: "A template, by its path in templates/; its text becomes the content.",
};

/// The fields of a kind. One that has content may be given the name of a template instead.
pub fn all(specs: &'static [FieldSpec]) -> impl Iterator<Item = &'static FieldSpec> {
    let has = |name: &str| specs.iter().any(|spec| spec.name == name);
    let template = (has(CONTENT) && !has(SOURCE)).then_some(&TEMPLATE);
    specs.iter().chain(template)
}

/// What must stand in a field of this sort, for people.
pub fn expected(sort: FieldSort) -> &'static str {
    match sort {
        FieldSort::Text => mismatch::TEXT,
        FieldSort::Mode => mismatch::MODE,
        FieldSort::Integer => "a whole number",
        FieldSort::Boolean => "true or false",
        FieldSort::TextList => mismatch::TEXTS,
        FieldSort::TextMap => mismatch::TEXT_MAP,
        FieldSort::Any => "anything",
    }
}

/// Whether a string of a field of this sort keeps the type of its expression. Text stays text, so that a
/// version like 1.30 is not a number again.
pub(super) fn keeps_type(sort: FieldSort) -> bool {
    !matches!(sort, FieldSort::Text | FieldSort::Mode)
}

/// The sort of what is inside a list or a map of this sort.
pub(super) fn inner(sort: FieldSort) -> FieldSort {
    match sort {
        FieldSort::TextList | FieldSort::TextMap => FieldSort::Text,
        _ => FieldSort::Any,
    }
}

/// Whether a value, all evaluated, is what must stand in a field of this sort.
pub(super) fn conforms(sort: FieldSort, value: &serde_json::Value) -> bool {
    match sort {
        FieldSort::Text => value.is_string(),
        FieldSort::Mode => value.as_str().is_some_and(is_mode),
        FieldSort::Integer => value.is_i64() || value.is_u64(),
        FieldSort::Boolean => value.is_boolean(),
        FieldSort::TextList => {
            value.as_array().is_some_and(|items| items.iter().all(|item| item.is_string()))
        }
        FieldSort::TextMap => value.as_object().is_some_and(|map| map.values().all(|item| item.is_string())),
        FieldSort::Any => true,
    }
}

/// Three or four octal digits, as chmod(1) has them.
fn is_mode(text: &str) -> bool {
    matches!(text.len(), 3 | 4) && text.bytes().all(|b| matches!(b, b'0'..=b'7'))
}

fn mismatch_of(name: &str, sort: FieldSort, node: &Node) -> Option<(Position, Mismatch)> {
    let wrong = |node: &Node| {
        let mut mismatch = Mismatch::new(name, expected(sort), node);
        if let Yaml::Text(text) = &node.value {
            mismatch.found = format!("{text:?}");
        }
        Some((node.at, mismatch))
    };
    match (sort, &node.value) {
        (FieldSort::Any, _) => None,
        (_, Yaml::Text(text)) if keeps_type(sort) => {
            expression::whole(text).is_none().then(|| wrong(node))?
        }
        (FieldSort::Mode, Yaml::Text(text)) if !expression::is_template(text) && !is_mode(text) => {
            wrong(node)
        }
        (FieldSort::Text | FieldSort::Mode, Yaml::Text(_)) | (FieldSort::Boolean, Yaml::Boolean(_)) => None,
        (FieldSort::Integer, Yaml::Number(number)) if !number.is_f64() => None,
        (FieldSort::TextList, Yaml::List(items)) => {
            items.iter().find(|item| !matches!(item.value, Yaml::Text(_))).and_then(wrong)
        }
        (FieldSort::TextMap, Yaml::Map(entries)) => entries
            .iter()
            .map(|(_, value)| value)
            .find(|value| !matches!(value.value, Yaml::Text(_)))
            .and_then(wrong),
        _ => wrong(node),
    }
}
