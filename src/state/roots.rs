//! Whether expressions are written correctly and read only values that exist on some host.

use std::collections::BTreeSet;

use super::error::Fault;
use super::expression;
use super::field::FieldFault;
use super::location::Position;
use super::near::Near;
use super::syntax::{Each, Resource};
use crate::render::{RenderError, Renderer};

/// What `item` is called where a resource is repeated.
pub(super) const ITEM: &str = "item";

/// What every expression may read.
const ROOTS: [&str; 4] = ["cluster", "node", "facts", "peers"];

/// Every fault of the expressions in a resource.
pub(super) fn check(resource: &Resource, renderer: &Renderer) -> Vec<(Position, Fault)> {
    let mut faults = Vec::new();
    let mut note = |at, roots: Result<BTreeSet<String>, RenderError>, item: bool| match roots {
        Ok(roots) => faults.extend(unknown(&roots, item).map(|fault| (at, Fault::from(fault)))),
        Err(error) => faults.push((at, error.into())),
    };
    let repeated = resource.each.is_some();
    if let Some(when) = &resource.when {
        note(when.at, renderer.roots_of_expression(&when.value), repeated);
    }
    if let Some(Each::Expression(each)) = &resource.each {
        note(each.at, renderer.roots_of_expression(&each.value), false);
    }
    let mut text = |text: &str, at| {
        if expression::is_template(text) {
            note(at, renderer.roots_of_text(text), repeated);
        }
    };
    text(&resource.name.value, resource.name.at);
    for id in resource.after.iter().chain(resource.only_if_changed.iter().flatten()) {
        text(&id.value, id.at);
    }
    if let Some(Each::Items(items)) = &resource.each {
        items.iter().for_each(|item| item.each_text(&mut text));
    }
    for field in resource.fields.values() {
        field.value.each_text(&mut text);
    }
    faults
}

/// A template may be included from anywhere, so `item` may be there.
pub(super) fn check_template(name: &str, renderer: &Renderer) -> Vec<FieldFault> {
    let roots = renderer.roots_of_template(name).unwrap_or_default();
    unknown(&roots, true).collect()
}

fn unknown(roots: &BTreeSet<String>, item: bool) -> impl Iterator<Item = FieldFault> {
    let known = move |root: &str| ROOTS.contains(&root) || (item && root == ITEM);
    roots
        .iter()
        .filter(move |root| !known(root))
        .map(|root| FieldFault::UnknownRoot { root: root.clone(), near: Near::to(root, ROOTS) })
}
