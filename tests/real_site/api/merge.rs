//! How patches change an object.

use serde_json::{Map, Value};

/// A merge patch (RFC 7386).
pub fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    let object = as_object(target);
    for (key, value) in patch {
        if value.is_null() {
            object.remove(key);
        } else {
            merge_patch(object.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// Server-side apply, simplified: what the manager applied before and does not apply now goes, what it applies is
/// set. A list whose items all have a name, a type or a key is merged by it; any other is replaced.
pub fn apply(live: &mut Value, before: Option<&Value>, applied: &Value) {
    if let Some(before) = before {
        prune(live, before, applied);
    }
    set(live, applied);
}

/// Whether an apply without force conflicts: another client has set a value that the manager applied before, and what it
/// applies now is neither.
pub fn conflicts(live: &Value, before: &Value, applied: &Value) -> bool {
    match (live, before, applied) {
        (Value::Object(live), Value::Object(before), Value::Object(applied)) => {
            applied.iter().any(|(key, new)| match (live.get(key), before.get(key)) {
                (Some(live), Some(old)) => conflicts(live, old, new),
                _ => false,
            })
        }
        _ => live != before && live != applied,
    }
}

fn prune(live: &mut Value, before: &Value, applied: &Value) {
    match (live, before, applied) {
        (Value::Object(live), Value::Object(before), Value::Object(applied)) => {
            for (key, old) in before {
                match applied.get(key) {
                    None => {
                        live.remove(key);
                    }
                    Some(new) => {
                        if let Some(value) = live.get_mut(key) {
                            prune(value, old, new);
                        }
                    }
                }
            }
        }
        (Value::Array(live), Value::Array(before), Value::Array(applied)) => {
            let Some(key) = list_key(before).filter(|key| list_key(applied) == Some(*key)) else { return };
            let has = |list: &[Value], item: &Value| list.iter().any(|other| other[key] == item[key]);
            live.retain(|item| has(applied, item) || !has(before, item));
        }
        _ => {}
    }
}

fn set(live: &mut Value, applied: &Value) {
    match applied {
        Value::Object(applied) => {
            let live = as_object(live);
            for (key, value) in applied {
                set(live.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        Value::Array(applied) => match (live, list_key(applied)) {
            (Value::Array(live), Some(key)) if !live.is_empty() && list_key(live) == Some(key) => {
                for item in applied {
                    match live.iter_mut().find(|other| other[key] == item[key]) {
                        Some(other) => set(other, item),
                        None => live.push(item.clone()),
                    }
                }
            }
            (live, _) => *live = Value::Array(applied.clone()),
        },
        other => live.clone_from(other),
    }
}

fn list_key(list: &[Value]) -> Option<&'static str> {
    ["name", "type", "key"]
        .into_iter()
        .find(|key| !list.is_empty() && list.iter().all(|item| item.get(*key).is_some_and(Value::is_string)))
}

fn as_object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(object) => object,
        _ => unreachable!("it was made an object"),
    }
}
