//! The objects of the scripted API, with what an API server guarantees for them: names, versions, conflicts.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::merge;
use super::resource::{Address, Kind};

/// A refusal: status code, reason, message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
}

/// Plural, namespace (empty where there is none), name.
type Key = (&'static str, String, String);

#[derive(Debug, Clone, Default)]
pub struct Store {
    objects: BTreeMap<Key, Value>,
    /// What each field manager applied last.
    applied: BTreeMap<(Key, String), Value>,
    version: u64,
    /// What was deleted, with the version of its deletion.
    deleted: Vec<(u64, Key, Value)>,
}

/// How a patch is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchType {
    Merge,
    /// Server-side apply by this field manager, with or without force.
    Apply(String, bool),
}

impl Store {
    pub fn get(&self, plural: &str, name: &str) -> Option<&Value> {
        self.in_namespace(plural, "", name)
    }

    pub fn in_namespace(&self, plural: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.objects.get(&(Kind::of(plural).plural, namespace.to_owned(), name.to_owned()))
    }

    /// All objects of a kind, of all namespaces.
    pub fn all(&self, plural: &str) -> Vec<&Value> {
        self.list(&Address { kind: Kind::of(plural), namespace: None, name: None, subresource: None })
    }

    pub fn list(&self, address: &Address) -> Vec<&Value> {
        let here = |key: &Key| {
            key.0 == address.kind.plural
                && address.namespace.as_ref().is_none_or(|namespace| *namespace == key.1)
        };
        self.objects.iter().filter(|(key, _)| here(key)).map(|(_, object)| object).collect()
    }

    /// Of the last change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What became of the objects of a kind after a version, in order: version, type of the watch event, object.
    pub fn changes_after(&self, address: &Address, version: u64) -> Vec<(u64, &'static str, Value)> {
        let of = |object: &Value| object["metadata"]["resourceVersion"].as_str()?.parse::<u64>().ok();
        let present = self.list(address).into_iter();
        let present = present.filter_map(|object| Some((of(object)?, "MODIFIED", object.clone())));
        let gone = self.deleted.iter().filter(|(_, key, _)| key.0 == address.kind.plural);
        let gone = gone.map(|(version, _, object)| (*version, "DELETED", object.clone()));
        let mut changes: Vec<_> = present.chain(gone).filter(|(at, ..)| *at > version).collect();
        changes.sort_by_key(|(at, ..)| *at);
        changes
    }

    /// Takes an object out, and remembers that it was there.
    fn forget(&mut self, key: &Key) {
        if let Some(object) = self.objects.remove(key) {
            self.version += 1;
            self.deleted.push((self.version, key.clone(), object));
        }
    }

    pub fn read(&self, address: &Address) -> Result<&Value, Refused> {
        self.objects.get(&key(address)).ok_or_else(|| not_found(address))
    }

    pub fn create(&mut self, address: &Address, mut object: Value, dry: bool) -> Result<Value, Refused> {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        if name.is_empty() {
            return Err(invalid("metadata.name: Required value"));
        }
        let address = Address { name: Some(name), ..address.clone() };
        if self.objects.contains_key(&key(&address)) {
            return Err(Refused {
                code: 409,
                reason: "AlreadyExists",
                message: format!("{address} already exists"),
            });
        }
        if address.kind.status && address.kind.plural != "pods" {
            // Status is not set at creation, as in registries with a strategy of their own.
            if let Some(object) = object.as_object_mut() {
                object.remove("status");
            }
        }
        Ok(self.put(&address, object, dry))
    }

    pub fn replace(&mut self, address: &Address, object: Value, dry: bool) -> Result<Value, Refused> {
        let present = self.read(address)?;
        check_version(address, present, &object)?;
        let mut object = object;
        if address.subresource.as_deref() == Some("status") {
            let status = object.get("status").cloned().unwrap_or(Value::Null);
            object = present.clone();
            object["status"] = status;
        } else if address.kind.status
            && let Some(status) = present.get("status")
        {
            object["status"] = status.clone();
        }
        Ok(self.put(address, object, dry))
    }

    pub fn patch(
        &mut self,
        address: &Address,
        patch: &Value,
        how: &PatchType,
        dry: bool,
    ) -> Result<Value, Refused> {
        let key = key(address);
        let present = self.objects.get(&key);
        let mut patch = patch.clone();
        if matches!(address.subresource.as_deref(), Some("status" | "approval")) {
            if let Some(patch) = patch.as_object_mut() {
                patch.retain(|key, _| key == "metadata" || key == "status");
            }
        } else if address.kind.status
            && let Some(patch) = patch.as_object_mut()
        {
            patch.remove("status");
        }
        match (how, present) {
            (PatchType::Merge, None) => Err(not_found(address)),
            (PatchType::Merge, Some(present)) => {
                check_version(address, present, &patch)?;
                let mut object = present.clone();
                merge::merge_patch(&mut object, &patch);
                Ok(self.put(address, object, dry))
            }
            (PatchType::Apply(manager, force), present) => {
                let mut object = present.cloned().unwrap_or_else(|| json!({}));
                let mut normal = patch.clone();
                encode_string_data(&mut normal);
                let before = self.applied.get(&(key.clone(), manager.clone()));
                if !force && before.is_some_and(|before| merge::conflicts(&object, before, &normal)) {
                    let message = "Apply failed with 1 conflict: conflict with \"kubectl-edit\"".to_owned();
                    return Err(Refused { code: 409, reason: "Conflict", message });
                }
                merge::apply(&mut object, before, &normal);
                let after = self.put(address, object, dry);
                if !dry {
                    self.applied.insert((key, manager.clone()), normal);
                }
                Ok(after)
            }
        }
    }

    /// Deletes an object, or begins to where it has finalizers. `preconditions` are those of the request.
    pub fn delete(&mut self, address: &Address, preconditions: &Value, dry: bool) -> Result<Value, Refused> {
        let object = self.read(address)?.clone();
        check_version(address, &object, &json!({ "metadata": preconditions }))?;
        if has_finalizers(&object) {
            let mut going = object;
            if going["metadata"]["deletionTimestamp"].is_null() {
                going["metadata"]["deletionTimestamp"] = json!("2026-01-02T00:00:00Z");
            }
            return Ok(self.put(address, going, dry));
        }
        if !dry {
            self.forget(&key(address));
            self.applied.retain(|(of, _), _| *of != key(address));
        }
        Ok(object)
    }

    /// Changes an object as a controller does; does nothing where there is none.
    pub fn change(&mut self, plural: &str, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) {
        let address = Address {
            kind: Kind::of(plural),
            namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
            name: Some(name.to_owned()),
            subresource: None,
        };
        if let Ok(present) = self.read(&address) {
            let mut object = present.clone();
            change(&mut object);
            self.put(&address, object, false);
        }
    }

    /// Creates or replaces an object as a controller does.
    pub fn insert(&mut self, plural: &str, namespace: &str, object: Value) {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned);
        let address = Address {
            kind: Kind::of(plural),
            namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
            name,
            subresource: None,
        };
        self.put(&address, object, false);
    }

    pub fn remove(&mut self, plural: &str, namespace: &str, name: &str) {
        self.forget(&(Kind::of(plural).plural, namespace.to_owned(), name.to_owned()));
    }

    /// Stores an object that differs from the present one under a new version, and gives back what is stored.
    fn put(&mut self, address: &Address, mut object: Value, dry: bool) -> Value {
        let key = key(address);
        let present = self.objects.get(&key);
        encode_string_data(&mut object);
        let of_present = |pointer: &str| present.and_then(|present| present.pointer(pointer)).cloned();
        object["apiVersion"] = json!(address.kind.api_version());
        object["kind"] = json!(address.kind.kind);
        let version = of_present("/metadata/resourceVersion").unwrap_or_else(|| json!("0"));
        let metadata = &mut object["metadata"];
        metadata["name"] = json!(key.2);
        if address.kind.namespaced {
            metadata["namespace"] = json!(key.1);
        }
        let next = self.version + 1;
        metadata["uid"] = of_present("/metadata/uid").unwrap_or_else(|| json!(format!("uid-{next}")));
        metadata["creationTimestamp"] =
            of_present("/metadata/creationTimestamp").unwrap_or_else(|| json!("2026-01-01T00:00:00Z"));
        metadata["resourceVersion"] = version;
        if address.kind.group == "cluster.k8s.io" {
            let same = |pointer: &str| of_present(pointer).as_ref() == object.pointer(pointer);
            let changed = !same("/spec") || !same("/metadata/deletionTimestamp");
            let generation = of_present("/metadata/generation").and_then(|value| value.as_i64()).unwrap_or(0);
            object["metadata"]["generation"] = json!(generation + i64::from(changed));
        }
        if present == Some(&object) {
            return object;
        }
        if object["metadata"]["deletionTimestamp"].is_string() && !has_finalizers(&object) {
            if !dry {
                self.forget(&key);
            }
            return object;
        }
        object["metadata"]["resourceVersion"] = json!(next.to_string());
        if !dry {
            self.version = next;
            self.objects.insert(key, object.clone());
        }
        object
    }
}

fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}

fn key(address: &Address) -> Key {
    let namespace = address.namespace.clone().unwrap_or_default();
    (address.kind.plural, namespace, address.name.clone().unwrap_or_default())
}

fn not_found(address: &Address) -> Refused {
    Refused { code: 404, reason: "NotFound", message: format!("{address} not found") }
}

pub fn invalid(message: &str) -> Refused {
    Refused { code: 422, reason: "Invalid", message: message.to_owned() }
}

/// Optimistic concurrency: a request that names a version or a UID means that one.
fn check_version(address: &Address, present: &Value, object: &Value) -> Result<(), Refused> {
    let named = |field: &str| {
        let pointer = format!("/metadata/{field}");
        let of = |object: &Value| object.pointer(&pointer).and_then(Value::as_str).map(str::to_owned);
        of(object).filter(|named| !named.is_empty() && Some(named) != of(present).as_ref())
    };
    match named("uid").or_else(|| named("resourceVersion")) {
        Some(_) => Err(Refused {
            code: 409,
            reason: "Conflict",
            message: format!(
                "Operation cannot be fulfilled on {address}: the object has been modified; please apply your changes to the latest version and try again"
            ),
        }),
        _ => Ok(()),
    }
}

/// `stringData` of a Secret is write-only.
fn encode_string_data(object: &mut Value) {
    let Some(object) = object.as_object_mut() else { return };
    let Some(Value::Object(strings)) = object.remove("stringData") else { return };
    let data = object.entry("data").or_insert_with(|| json!({}));
    for (key, value) in strings {
        data[key] = json!(STANDARD.encode(value.as_str().unwrap_or_default()));
    }
}
