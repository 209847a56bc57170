//! One resource of a state file, with the values of one host: as many resources as `each` and `when` say.

use serde_json::{Map, Value as Json};

use super::compile::Compiled;
use super::error::StateError;
use super::expression;
use super::field::{self, CONTENT, FieldFault, SOURCE};
use super::location::{Location, Position};
use super::mismatch::{Located, Mismatch};
use super::name::{ResourceId, StateName};
use super::reads::ITEM;
use super::reference::{AFTER, ONLY_IF_CHANGED, REACTIONS, ReferenceFault};
use super::syntax::{Each, Resource};
use super::yaml::{Node, Yaml};
use crate::render::{RenderError, Renderer, Value, values_of, with_value};
use crate::resource::contract::ensure::Ensure;
use crate::resource::fields::field::{FieldSort, FieldSpec};

/// What the values of a host are applied with.
#[derive(Debug)]
pub(super) struct Evaluator<'a> {
    pub renderer: &'a Renderer,
    pub values: &'a Value,
    pub state: &'a StateName,
    pub file: &'a str,
}

/// What a resource of a file came to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub instances: Vec<Instance>,
    /// What is not on this host though it could be. Where names are not known, the id as it is written.
    pub left_out: Vec<ResourceId>,
}

/// A resource whose references are read, and not yet known to lead anywhere.
#[derive(Debug)]
pub(super) struct Instance {
    pub compiled: Compiled,
    pub references: Vec<Reference>,
}

/// Another resource that an instance names.
#[derive(Debug)]
pub(super) struct Reference {
    pub key: &'static str,
    pub at: Location,
    pub id: ResourceId,
}

impl Evaluator<'_> {
    /// Applies `each` and `when`, then evaluates what is left.
    pub(super) fn instances(
        &self,
        resource: &Resource,
        specs: &'static [FieldSpec],
    ) -> Result<Outcome, StateError> {
        let named = |name: &str| ResourceId { kind: resource.kind.value.clone(), name: name.to_owned() };
        let as_written = named(&resource.name.value);
        let by_item = resource.each.is_some() && self.reads_item(resource)?;
        if !by_item && !self.holds(resource, self.values)? {
            return Ok(Outcome { instances: Vec::new(), left_out: vec![as_written] });
        }
        let mut outcome = Outcome::default();
        for scope in self.scopes(resource)? {
            if by_item && !self.holds(resource, &scope)? {
                // What was left out for want of a value may have no name either.
                let id = self.text(&resource.name, &scope).map_or(as_written.clone(), |name| named(&name));
                outcome.left_out.push(id);
            } else {
                outcome.instances.push(self.instance(resource, specs, &scope)?);
            }
        }
        if let Some(Each::Expression(_)) = resource.each {
            // The list differs from host to host: an item that others have is not a misspelt one.
            outcome.left_out.push(as_written);
        }
        Ok(outcome)
    }

    fn at(&self, at: Position) -> Location {
        Location::new(self.file, at)
    }

    fn reads_item(&self, resource: &Resource) -> Result<bool, StateError> {
        let Some(when) = &resource.when else { return Ok(false) };
        let reads = self.placed(when.at, self.renderer.reads_of_expression(&when.value))?;
        Ok(reads.iter().any(|path| path.split('.').next() == Some(ITEM)))
    }

    fn holds(&self, resource: &Resource, scope: &Value) -> Result<bool, StateError> {
        let Some(when) = &resource.when else { return Ok(true) };
        self.placed(when.at, self.renderer.condition(&when.value, scope))
    }

    fn scopes(&self, resource: &Resource) -> Result<Vec<Value>, StateError> {
        let items = match &resource.each {
            None => return Ok(vec![self.values.clone()]),
            Some(Each::Expression(each)) => {
                self.placed(each.at, self.renderer.list(&each.value, self.values))?
            }
            Some(Each::Items(nodes)) => {
                let item = |node| Ok(values_of(&self.value(node, FieldSort::Any, self.values)?));
                nodes.iter().map(item).collect::<Result<_, StateError>>()?
            }
        };
        Ok(items.into_iter().map(|item| with_value(self.values, ITEM, item)).collect())
    }

    fn instance(
        &self,
        resource: &Resource,
        specs: &'static [FieldSpec],
        scope: &Value,
    ) -> Result<Instance, StateError> {
        let name = self.text(&resource.name, scope)?;
        if name.is_empty() {
            let mismatch = Mismatch {
                what: format!("the name of a {}", resource.kind.value),
                expected: "text",
                found: "empty".to_owned(),
                written: None,
            };
            return Err(StateError::new(self.file, resource.name.at, FieldFault::from(mismatch)));
        }
        let mut references = self.references(AFTER, &resource.after, scope)?;
        let watched = resource.only_if_changed.as_deref().unwrap_or_default();
        references.extend(self.references(ONLY_IF_CHANGED, watched, scope)?);
        let mut fields = Map::new();
        for spec in field::all(specs) {
            let Some(field) = resource.fields.get(spec.name) else { continue };
            let value = self.field(resource, spec, (&field.value, scope))?;
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
            id: ResourceId { kind: resource.kind.value.clone(), name },
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
        resource: &Resource,
        spec: &FieldSpec,
        (node, scope): (&Node, &Value),
    ) -> Result<Json, StateError> {
        let value = self.value(node, spec.sort, scope)?;
        if field::conforms(spec.sort, &value) {
            return Ok(value);
        }
        let mismatch = Mismatch {
            what: spec.name.to_owned(),
            expected: field::expected(spec.sort),
            found: if resource.sensitive { "another value".to_owned() } else { value.to_string() },
            written: None,
        };
        Err(StateError::new(self.file, node.at, FieldFault::from(mismatch)))
    }

    fn value(&self, node: &Node, sort: FieldSort, scope: &Value) -> Result<Json, StateError> {
        let inner = field::inner(sort);
        Ok(match &node.value {
            Yaml::Null => Json::Null,
            Yaml::Boolean(value) => Json::Bool(*value),
            Yaml::Number(number) => Json::Number(number.clone()),
            Yaml::Text(text) => match expression::whole(text).filter(|_| field::keeps_type(sort)) {
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
                let entry = |(key, value): &(super::yaml::Key, Node)| {
                    Ok((key.name.clone(), self.value(value, inner, scope)?))
                };
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
        let id_or = parsed.map_err(|error| StateError::new(self.file, id.at, ReferenceFault::Name(error)))?;
        Ok(Reference { key, at: self.at(id.at), id: id_or })
    }

    fn placed<T>(&self, at: Position, outcome: Result<T, RenderError>) -> Result<T, StateError> {
        outcome.map_err(|error| StateError::of_render(self.at(at), error))
    }
}
