//! Values without one root, which is not known yet, and whether it was read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use minijinja::Value;
use minijinja::value::{Enumerator, Object};

/// Values without the root `name`, which record whether it is read. As long as it is not, the rendered text is the same
/// for any value of the root.
#[derive(Debug)]
pub struct Without {
    values: Value,
    name: &'static str,
    missed: AtomicBool,
}

impl Without {
    /// `values` are all the other roots.
    pub fn new(values: Value, name: &'static str) -> Arc<Self> {
        Arc::new(Self { values, name, missed: AtomicBool::new(false) })
    }

    /// The values to render with.
    pub fn values(self: &Arc<Self>) -> Value {
        Value::from_dyn_object(Arc::clone(self))
    }

    /// Whether the root was read, or all roots were listed.
    pub fn missed(&self) -> bool {
        self.missed.load(Ordering::Relaxed)
    }
}

impl Object for Without {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        if key.as_str() == Some(self.name) {
            self.missed.store(true, Ordering::Relaxed);
            return None;
        }
        self.values.get_item(key).ok().filter(|value| !value.is_undefined())
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.missed.store(true, Ordering::Relaxed);
        match self.values.try_iter() {
            Ok(names) => Enumerator::Values(names.collect()),
            Err(_) => Enumerator::Empty,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::{Renderer, values_of, with_value};

    #[test]
    fn only_a_read_of_the_root_is_recorded() {
        let templates = [
            ("plain.j2", "{{ node.name }}"),
            ("inner.j2", "{{ facts.arch }}"),
            ("outer.j2", "{% if node.name %}{% include 'inner.j2' %}{% endif %}"),
            ("macro.j2", "{% macro m() %}{{ facts.arch }}{% endmacro %}{{ m() }}"),
            ("unused.j2", "{% if false %}{{ facts.arch }}{% endif %}{{ node.name }}"),
            ("own.j2", "{% set facts = 3 %}{{ facts }}"),
        ];
        let renderer = Renderer::new(templates).unwrap();
        let given = || values_of(&serde_json::json!({ "node": { "name": "a" }, "cluster": {} }));
        for (text, missed) in [
            ("{{ node.name }}", false),
            ("{{ facts }}", true),
            ("{{ facts.os.family | default('x') }}", true),
            ("{{ facts is defined }}", true),
            ("{{ node.facts | default('x') }}", false),
            ("{% include 'plain.j2' %}", false),
            ("{% include 'inner.j2' %}", true),
            ("{% include 'outer.j2' %}", true),
            ("{% include 'macro.j2' %}", true),
            ("{% include 'unused.j2' %}", false),
            ("{% include 'own.j2' %}", false),
        ] {
            let without = Without::new(given(), "facts");
            let with_item = with_value(&without.values(), "item", Value::from(1));
            for values in [without.values(), with_item] {
                let rendered = renderer.text(text, &values);
                assert_eq!(without.missed(), missed, "{text}");
                assert!(missed || rendered.is_ok(), "{text}: {rendered:?}");
            }
        }
    }
}
