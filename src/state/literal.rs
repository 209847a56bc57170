//! Resources without expressions: their kind can check them without a host.

use super::compiled::Compiled;
use super::expression;
use super::field::{self, Kinds, SOURCE};
use super::instance::Evaluator;
use super::library::Library;
use super::reads::each_expression;
use super::reference::{ONLY_IF_CHANGED, REACTIONS};
use crate::render::{Value, values_of};

/// Every resource of a tree that is the same on all hosts and has the fields of its kind.
pub fn literals(library: &Library, kinds: Kinds<'_>) -> Vec<Compiled> {
    let values: Value = values_of(&serde_json::json!({}));
    let mut literals = Vec::new();
    for file in library.files.values() {
        let path = file.name.file();
        let evaluator =
            Evaluator { renderer: &library.renderer, values: &values, state: &file.name, file: &path };
        for resource in &file.resources {
            let mut literal = resource.clone();
            // It is checked on hosts that do not have it too.
            literal.when = None;
            let mut reads = literal.each.is_some() || literal.fields.contains_key(SOURCE);
            each_expression(&literal, &mut |_, _, _| reads = true);
            if reads || expression::is_template(&literal.name.value) {
                continue;
            }
            let Ok(spec) = field::check(&literal, kinds) else { continue };
            let Ok(outcome) = evaluator.instances(&literal, spec) else { continue };
            for mut instance in outcome.instances {
                for reference in instance.references.into_iter().filter(|one| !REACTIONS.contains(&one.key)) {
                    if reference.key == ONLY_IF_CHANGED {
                        instance.compiled.only_if_changed.push(reference.id);
                    }
                }
                literals.push(instance.compiled);
            }
        }
    }
    literals
}
