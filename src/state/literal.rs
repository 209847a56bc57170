//! Resources in which there is nothing to evaluate: their kind can judge them with no host present.

use super::compile::Compiled;
use super::expression;
use super::field::{self, Kinds, SOURCE};
use super::instance::Evaluator;
use super::library::Library;
use super::reads::each_expression;
use super::reference::REACTIONS;
use crate::render::{Value, values_of};

/// Every resource of a tree that is the same on all hosts that have it, whose fields are those of its kind.
pub fn literals(library: &Library, kinds: Kinds<'_>) -> Vec<Compiled> {
    let values: Value = values_of(&serde_json::json!({}));
    let mut literals = Vec::new();
    for file in library.files.values() {
        let path = file.name.file();
        let evaluator =
            Evaluator { renderer: &library.renderer, values: &values, state: &file.name, file: &path };
        for resource in &file.resources {
            let mut literal = resource.clone();
            // Whether it is there is another question than what it is.
            literal.when = None;
            let mut reads = literal.each.is_some() || literal.fields.contains_key(SOURCE);
            each_expression(&literal, &mut |_, _, _| reads = true);
            let Some(specs) = field::of_kind(kinds, &literal.kind.value) else { continue };
            if reads
                || expression::is_template(&literal.name.value)
                || !field::check(&literal, kinds).is_empty()
            {
                continue;
            }
            let Ok(outcome) = evaluator.instances(&literal, specs) else { continue };
            for mut instance in outcome.instances {
                for reference in instance.references.into_iter().filter(|one| !REACTIONS.contains(&one.key)) {
                    if reference.key == super::reference::ONLY_IF_CHANGED {
                        instance.compiled.only_if_changed.push(reference.id);
                    }
                }
                literals.push(instance.compiled);
            }
        }
    }
    literals
}
