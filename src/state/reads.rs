//! Checks expressions: their syntax, and that they read only values that some host has.

use std::collections::BTreeSet;

use super::error::Fault;
use super::expression;
use super::field_fault::FieldFault;
use super::location::Position;
use super::shape::Shapes;
use super::state_file::{Each, ResourceSyntax};
use crate::model::near::Near;
use crate::render::mention::{self, Mention, MentionKind};
use crate::render::{RenderError, Renderer};

/// The current item of a repeated resource.
pub(super) const ITEM: &str = "item";

/// The values of every expression.
pub(super) const ROOTS: [&str; 4] = ["cluster", "node", "facts", "peers"];

/// What expressions are checked against.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'a> {
    pub renderer: &'a Renderer,
    pub templates: &'a BTreeSet<&'a str>,
    pub shapes: &'a Shapes,
}

impl Known<'_> {
    /// Every fault of the expressions in a resource, at the values that contain them.
    pub fn check(&self, resource: &ResourceSyntax) -> Vec<(Position, Fault)> {
        let mut faults = Vec::new();
        each_expression(resource, &mut |written, at, item| {
            let (reads, mentions) = match written {
                Written::Expression(text) => {
                    (self.renderer.reads_of_expression(text), mention::in_expression(text))
                }
                Written::Text(text) => (self.renderer.reads_of_text(text), mention::in_template(text)),
            };
            match reads {
                Ok(reads) => {
                    let found = self.faults(&reads, &mentions, item);
                    faults.extend(found.into_iter().map(|(_, fault)| (at, Fault::from(fault))));
                }
                Err(error) => faults.push((at, error.into())),
            }
        });
        faults
    }

    /// The same of a template. It may be included anywhere, so `item` is accepted.
    pub fn check_template(&self, name: &str, text: &str) -> Vec<(Position, FieldFault)> {
        let faults = self.faults(&self.renderer.reads_of_template(name), &mention::in_template(text), true);
        faults.into_iter().map(|(offset, fault)| (Position::of_offset(text, offset), fault)).collect()
    }

    fn faults(
        &self,
        reads: &BTreeSet<String>,
        mentions: &[Mention<'_>],
        item: bool,
    ) -> Vec<(usize, FieldFault)> {
        let mut faults = Vec::new();
        for path in reads {
            let Some(fault) = self.unknown_value(path, item) else { continue };
            let places: Vec<usize> = mentions
                .iter()
                .filter(|one| one.kind == MentionKind::Value && begins_with(one.name, path))
                .map(|one| one.offset)
                .collect();
            // minijinja may report a read that is not in the text.
            let places = if places.is_empty() { vec![0] } else { places };
            faults.extend(places.into_iter().map(|offset| (offset, fault.clone())));
        }
        for one in mentions {
            let name = one.name.to_owned();
            let fault = match one.kind {
                MentionKind::Filter if !self.renderer.has_filter(one.name) => {
                    FieldFault::UnknownFilter { name }
                }
                MentionKind::Test if !self.renderer.has_test(one.name) => FieldFault::UnknownTest { name },
                MentionKind::Template if !self.templates.contains(one.name) => {
                    let near = Near::to(one.name, self.templates.iter().copied());
                    FieldFault::NoTemplate { template: name, near }
                }
                _ => continue,
            };
            faults.push((one.offset, fault));
        }
        faults
    }

    fn unknown_value(&self, path: &str, item: bool) -> Option<FieldFault> {
        let root = path.split('.').next().unwrap_or_default();
        if item && root == ITEM {
            return None;
        }
        if !ROOTS.contains(&root) {
            let near = Near::to(root, ROOTS);
            return Some(FieldFault::UnknownRoot { root: root.to_owned(), near });
        }
        let (value, near) = self.shapes.unknown(path)?;
        Some(FieldFault::UnknownValue { value, near })
    }
}

/// Whether a path is another one, or below it.
fn begins_with(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// A string that may read values.
#[derive(Debug, Clone, Copy)]
pub(super) enum Written<'a> {
    /// A bare expression.
    Expression(&'a str),
    /// Text with `{{ }}`.
    Text(&'a str),
}

/// Calls `visit` with every expression of a resource, its position, and whether it may read `item`.
pub(super) fn each_expression(resource: &ResourceSyntax, visit: &mut dyn FnMut(Written<'_>, Position, bool)) {
    let repeated = resource.each.is_some();
    if let Some(when) = &resource.when {
        visit(Written::Expression(&when.value), when.at, repeated);
    }
    if let Some(Each::Expression(each)) = &resource.each {
        visit(Written::Expression(&each.value), each.at, false);
    }
    let mut text = |text: &str, at| {
        if expression::is_template(text) {
            visit(Written::Text(text), at, repeated);
        }
    };
    text(&resource.name.value, resource.name.at);
    for id in resource.after.iter().chain(resource.only_if_changed.iter().flatten()) {
        text(&id.value, id.at);
    }
    if let Some(Each::Items(items)) = &resource.each {
        items.iter().for_each(|item| item.each_string(&mut text));
    }
    for field in resource.fields.values() {
        field.value.each_string(&mut text);
    }
}

/// The paths that a resource reads; an expression with a syntax error reads nothing.
pub(super) fn reads(resource: &ResourceSyntax, renderer: &Renderer) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    each_expression(resource, &mut |written, _, _| {
        let reads: Result<_, RenderError> = match written {
            Written::Expression(text) => renderer.reads_of_expression(text),
            Written::Text(text) => renderer.reads_of_text(text),
        };
        paths.extend(reads.unwrap_or_default());
    });
    paths
}
