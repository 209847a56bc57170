//! Evaluates one resource of a state file with the values of one host: `each` and `when` decide how many result.

use serde_json::{Map, Value as Json};

use super::compiled::Compiled;
use super::error::StateError;
use super::expression;
use super::field::{self, CONTENT, SOURCE};
use super::field_fault::FieldFault;
use super::location::{Location, Position};
use super::mismatch::Located;
use super::name::StateName;
use super::reads::ITEM;
use super::reference::{AFTER, ONLY_IF_CHANGED, REACTIONS};
use super::reference_fault::ReferenceFault;
use super::state_file::{Each, ResourceSyntax};
use super::yaml::{MapKey, Node, Yaml};
use crate::render::{RenderError, Renderer, Value, values_of, with_value};
use crate::resource::KindSpec;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::resource_id::ResourceId;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};

/// The values of a host, and the file that they are applied to.
#[derive(Debug)]
pub(super) struct Evaluator<'a> {
    pub renderer: &'a Renderer,
    pub values: &'a Value,
    pub state: &'a StateName,
    pub file: &'a str,
}

/// The instances of a resource of a file.
#[derive(Debug, Default)]
pub(super) struct Instances {
    pub instances: Vec<Instance>,
    /// Resources that other hosts may have. Where the name is not known, the id as written.
    pub left_out: Vec<ResourceId>,
}

/// A resource whose references are parsed and not resolved yet.
#[derive(Debug)]
pub(super) struct Instance {
    pub compiled: Compiled,
    pub references: Vec<Reference>,
}

/// A reference of an instance to another resource.
#[derive(Debug)]
pub(super) struct Reference {
    pub key: &'static str,
    pub at: Location,
    pub id: ResourceId,
}

impl Evaluator<'_> {
    /// Applies `each` and `when`, then evaluates the instances.
    pub(super) fn instances(
        &self,
        resource: &ResourceSyntax,
        spec: &KindSpec,
    ) -> Result<Instances, StateError> {
        let named = |name: &str| ResourceId { kind: spec.kind, name: name.to_owned() };
        let as_written = named(&resource.name.value);
        let by_item = resource.each.is_some() && self.reads_item(resource)?;
        if !by_item && !self.holds(resource, self.values)? {
            return Ok(Instances { instances: Vec::new(), left_out: vec![as_written] });
        }
        let mut outcome = Instances::default();
        for scope in self.scopes(resource)? {
            if by_item && !self.holds(resource, &scope)? {
                // A resource that is left out may have a name that cannot be evaluated.
                let id = self.text(&resource.name, &scope).map_or(as_written.clone(), |name| named(&name));
                outcome.left_out.push(id);
            } else {
                outcome.instances.push(self.instance(resource, spec, &scope)?);
            }
        }
        if let Some(Each::Expression(_)) = resource.each {
            // The list differs between hosts: an item of another host is not misspelt.
            outcome.left_out.push(as_written);
        }
        Ok(outcome)
    }

    fn at(&self, at: Position) -> Location {
        Location::new(self.file, at)
    }

    fn reads_item(&self, resource: &ResourceSyntax) -> Result<bool, StateError> {
        let Some(when) = &resource.when else { return Ok(false) };
        let reads = self.placed(when.at, self.renderer.reads_of_expression(&when.value))?;
        Ok(reads.iter().any(|path| path.split('.').next() == Some(ITEM)))
    }

    fn holds(&self, resource: &ResourceSyntax, scope: &Value) -> Result<bool, StateError> {
        let Some(when) = &resource.when else { return Ok(true) };
        self.placed(when.at, self.renderer.condition(&when.value, scope))
    }

    fn scopes(&self, resource: &ResourceSyntax) -> Result<Vec<Value>, StateError> {
        let items = match &resource.each {
            None => return Ok(vec![self.values.clone()]),
            Some(Each::Expression(each)) => {
                self.placed(each.at, self.renderer.list(&each.value, self.values))?
            }
            Some(Each::Items(nodes)) => {
                let item = |node| Ok(values_of(&self.value(node, FieldType::Any, self.values)?));
                nodes.iter().map(item).collect::<Result<_, StateError>>()?
            }
        };
        Ok(items.into_iter().map(|item| with_value(self.values, ITEM, item)).collect())
    }

    fn instance(
        &self,
        resource: &ResourceSyntax,
        kind: &KindSpec,
        scope: &Value,
    ) -> Result<Instance, StateError> {
        let name = self.text(&resource.name, scope)?;
        if name.is_empty() {
            let fault = FieldFault::EmptyName { kind: kind.kind };
            return Err(StateError::new(self.file, resource.name.at, fault));
        }
        let mut references = self.references(AFTER, &resource.after, scope)?;
        let watched = resource.only_if_changed.as_deref().unwrap_or_default();
        references.extend(self.references(ONLY_IF_CHANGED, watched, scope)?);
        let mut fields = Map::new();
        for spec in field::all(kind.fields) {
            let Some(field) = resource.fields.get(spec.name) else { continue };
            let value = self.field((kind, resource), spec, (&field.value, scope))?;
            if let Some(key) = REACTIONS.into_iter().find(|key| *key == spec.name) {
                let ids = value.as_array().map(Vec::as_slice).unwrap_or_default();
                let texts = ids.iter().filter_map(Json::as_str);
                let places = |index: usize| match &field.value.value {
                    Yaml::List(items) => items.get(index).map_or(field.at, |item| item.at),
                    _ => field.at,
                };
                let located =
                    texts.enumerate().map(|(n, text)| Located { at: places(n), value: text.to_owned() });
                references.extend(located.map(|id| self.reference(key, &id)).collect::<Result<Vec<_>, _>>()?);
            } else if spec.name == SOURCE {
                if resource.ensure == Ensure::Present {
                    let template = value.as_str().unwrap_or_default();
                    let content = self.placed(field.value.at, self.renderer.template(template, scope))?;
                    fields.insert(CONTENT.to_owned(), content.into());
                }
            } else {
                fields.insert(spec.name.to_owned(), value);
            }
        }
        let compiled = Compiled {
            id: ResourceId { kind: kind.kind, name },
            fields,
            ensure: resource.ensure,
            sensitive: resource.sensitive,
            only_if_changed: Vec::new(),
            after: Vec::new(),
            source: self.at(resource.kind.at),
            places: resource.fields.iter().map(|(name, field)| (name.clone(), field.value.at)).collect(),
            state: self.state.clone(),
        };
        Ok(Instance { compiled, references })
    }

    fn field(
        &self,
        (kind, resource): (&KindSpec, &ResourceSyntax),
        spec: &'static FieldSpec,
        (node, scope): (&Node, &Value),
    ) -> Result<Json, StateError> {
        let value = self.value(node, spec.takes, scope)?;
        if spec.takes.accepts(&value) {
            return Ok(value);
        }
        let found = if resource.sensitive { "a sensitive value".to_owned() } else { value.to_string() };
        let error = FieldError::WrongType { kind: kind.kind, field: spec.name, expected: spec.takes, found };
        Err(StateError::new(self.file, node.at, FieldFault::Field { error, written: None }))
    }

    fn value(&self, node: &Node, takes: FieldType, scope: &Value) -> Result<Json, StateError> {
        let inner = field::item_type(takes);
        Ok(match &node.value {
            Yaml::Null => Json::Null,
            Yaml::Boolean(value) => Json::Bool(*value),
            Yaml::Number(number) => Json::Number(number.clone()),
            Yaml::String(text) => match expression::whole(text).filter(|_| field::keeps_type(takes)) {
                Some(expression) => {
                    let value = self.placed(node.at, self.renderer.expression(expression, scope))?;
                    let json = serde_json::to_value(&value)
                        .map_err(|error| RenderError::Expression { reason: error.to_string() });
                    self.placed(node.at, json)?
                }
                None => Json::String(self.text(&Located { at: node.at, value: text.clone() }, scope)?),
            },
            Yaml::List(items) => Json::Array(
                items.iter().map(|item| self.value(item, inner, scope)).collect::<Result<_, _>>()?,
            ),
            Yaml::Map(entries) => {
                let entry =
                    |(key, value): &(MapKey, Node)| Ok((key.name.clone(), self.value(value, inner, scope)?));
                Json::Object(entries.iter().map(entry).collect::<Result<_, StateError>>()?)
            }
        })
    }

    fn text(&self, text: &Located<String>, scope: &Value) -> Result<String, StateError> {
        if !expression::is_template(&text.value) {
            return Ok(text.value.clone());
        }
        self.placed(text.at, self.renderer.text(&text.value, scope))
    }

    fn references(
        &self,
        key: &'static str,
        ids: &[Located<String>],
        scope: &Value,
    ) -> Result<Vec<Reference>, StateError> {
        let read =
            |id: &Located<String>| self.reference(key, &Located { at: id.at, value: self.text(id, scope)? });
        ids.iter().map(read).collect()
    }

    fn reference(&self, key: &'static str, id: &Located<String>) -> Result<Reference, StateError> {
        let parsed = id.value.parse::<ResourceId>();
        let id_or = parsed.map_err(|error| StateError::new(self.file, id.at, ReferenceFault::Id(error)))?;
        Ok(Reference { key, at: self.at(id.at), id: id_or })
    }

    fn placed<T>(&self, at: Position, outcome: Result<T, RenderError>) -> Result<T, StateError> {
        outcome.map_err(|error| StateError::of_render(self.at(at), error))
    }
}
