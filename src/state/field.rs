//! Whether a resource has the fields of its kind, as far as that does not depend on values.

use super::expression;
use super::field_fault::FieldFault;
use super::location::Position;
use super::state_file::ResourceSyntax;
use super::yaml::{Node, Yaml};
use crate::model::near::Near;
use crate::resource::KindSpec;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::kind::{Kind, UnknownKind};
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType, permission_bits};

/// The kinds that a tree may use.
pub type Kinds<'a> = &'a [KindSpec];

/// The field that names a template. The rendered template takes its place, as [`CONTENT`], before the resource
/// reaches its kind.
pub(super) const SOURCE: &str = "source";

/// Replaces [`SOURCE`].
pub(super) const CONTENT: &str = "content";

/// The kind of a resource that has its fields.
///
/// # Errors
/// Every fault of the kind and the fields.
pub(super) fn check<'a>(
    resource: &ResourceSyntax,
    kinds: Kinds<'a>,
) -> Result<&'a KindSpec, Vec<(Position, FieldFault)>> {
    let spec = spec_of(resource, kinds).map_err(|unknown| vec![(resource.kind.at, unknown.into())])?;
    let kind = spec.kind;
    let mut faults = Vec::new();
    for (name, field) in &resource.fields {
        match all(spec.fields).find(|spec| spec.name == name) {
            Some(spec) => faults.extend(wrong_type(kind, spec, &field.value)),
            None => {
                let near = Near::to(name, all(spec.fields).map(|spec| spec.name));
                let error = FieldError::Unknown { kind, field: name.clone(), near };
                faults.push((field.at, FieldFault::Field { error, written: None }));
            }
        }
    }
    if resource.ensure == Ensure::Present {
        let is_set = |name: &str| {
            resource.fields.contains_key(name) || (name == CONTENT && resource.fields.contains_key(SOURCE))
        };
        let missing = spec.fields.iter().filter(|spec| spec.required && !is_set(spec.name));
        faults.extend(missing.map(|spec| {
            let error = FieldError::Missing { kind, field: spec.name };
            (resource.kind.at, FieldFault::Field { error, written: None })
        }));
    }
    if faults.is_empty() { Ok(spec) } else { Err(faults) }
}

fn spec_of<'a>(resource: &ResourceSyntax, kinds: Kinds<'a>) -> Result<&'a KindSpec, UnknownKind> {
    let kind: Kind = resource.kind.value.clone()?;
    let spec = kinds.iter().find(|spec| spec.kind == kind);
    spec.ok_or_else(|| UnknownKind { name: kind.name().to_owned(), near: Near::default() })
}

/// [`SOURCE`], for kinds that have [`CONTENT`] and no field of that name.
static TEMPLATE: FieldSpec = FieldSpec::optional(
    SOURCE,
    FieldType::String,
    "Path of a template in templates/, which is rendered to the content.",
);

/// The fields of a kind. A kind with [`CONTENT`] accepts [`SOURCE`] instead.
pub fn all(specs: &'static [FieldSpec]) -> impl Iterator<Item = &'static FieldSpec> {
    let has = |name: &str| specs.iter().any(|spec| spec.name == name);
    let template = (has(CONTENT) && !has(SOURCE)).then_some(&TEMPLATE);
    specs.iter().chain(template)
}

/// Whether a string in a field of this type keeps the type of its expression. A string stays one, so that the version
/// 1.30 does not become a number.
pub(super) fn keeps_type(takes: FieldType) -> bool {
    !matches!(takes, FieldType::String | FieldType::Mode)
}

/// The type of the items of a list or map.
pub(super) fn item_type(takes: FieldType) -> FieldType {
    match takes {
        FieldType::StringList | FieldType::StringMap => FieldType::String,
        FieldType::String | FieldType::Mode | FieldType::Integer | FieldType::Boolean | FieldType::Any => {
            FieldType::Any
        }
    }
}

/// The first value of another type. Expressions are not evaluated: a string with one may have any type.
fn wrong_type(kind: Kind, spec: &'static FieldSpec, node: &Node) -> Option<(Position, FieldFault)> {
    let wrong = |node: &Node| {
        let found = match &node.value {
            Yaml::String(text) => format!("{text:?}"),
            _ => node.describe(),
        };
        let error = FieldError::WrongType { kind, field: spec.name, expected: spec.takes, found };
        Some((node.at, FieldFault::Field { error, written: node.written.clone() }))
    };
    let is_string = |node: &Node| matches!(node.value, Yaml::String(_));
    match (spec.takes, &node.value) {
        (FieldType::Any, _) => None,
        (takes, Yaml::String(text)) if keeps_type(takes) => match expression::whole(text) {
            Some(_) => None,
            None => wrong(node),
        },
        (FieldType::Mode, Yaml::String(text))
            if !expression::is_template(text) && permission_bits(text).is_none() =>
        {
            wrong(node)
        }
        (FieldType::String | FieldType::Mode, Yaml::String(_)) | (FieldType::Boolean, Yaml::Boolean(_)) => {
            None
        }
        (FieldType::Integer, Yaml::Number(number)) if !number.is_f64() => None,
        (FieldType::StringList, Yaml::List(items)) => {
            items.iter().find(|item| !is_string(item)).and_then(wrong)
        }
        (FieldType::StringMap, Yaml::Map(entries)) => {
            entries.iter().map(|(_, value)| value).find(|value| !is_string(value)).and_then(wrong)
        }
        _ => wrong(node),
    }
}
