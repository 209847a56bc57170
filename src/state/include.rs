//! Templates that include templates.

use std::collections::BTreeMap;

use super::error::StateError;
use super::field_fault::FieldFault;
use super::location::Position;
use crate::render::mention::{self, MentionKind};

/// A template that is included by a literal path, and where.
pub(super) type Include<'a> = (Position, &'a str);

/// The includes of a template.
pub(super) fn included(text: &str) -> Vec<Include<'_>> {
    let mentions = mention::in_template(text).into_iter();
    let templates = mentions.filter(|one| one.kind == MentionKind::Template);
    templates.map(|one| (Position::of_offset(text, one.offset), one.name)).collect()
}

/// Cycles of includes, each once, at the tag that closes it.
pub(super) fn cycles(includes: &BTreeMap<&str, Vec<Include<'_>>>) -> Vec<StateError> {
    let mut walk = Walk { includes, path: Vec::new(), done: Vec::new(), errors: Vec::new() };
    for name in includes.keys() {
        walk.visit(name);
    }
    walk.errors
}

struct Walk<'a> {
    includes: &'a BTreeMap<&'a str, Vec<Include<'a>>>,
    path: Vec<&'a str>,
    done: Vec<&'a str>,
    errors: Vec<StateError>,
}

impl<'a> Walk<'a> {
    fn visit(&mut self, name: &'a str) {
        if self.done.contains(&name) {
            return;
        }
        self.path.push(name);
        let includes: &'a BTreeMap<_, Vec<Include<'a>>> = self.includes;
        for (at, next) in includes.get(name).into_iter().flatten() {
            match self.path.iter().position(|seen| seen == next) {
                Some(start) => {
                    let cycle: Vec<&str> = self.path[start..].iter().copied().chain([*next]).collect();
                    let fault = FieldFault::IncludeCycle { cycle: cycle.join(" -> ") };
                    self.errors.push(StateError::new(&format!("templates/{name}"), *at, fault));
                }
                None => self.visit(next),
            }
        }
        self.path.pop();
        self.done.push(name);
    }
}
