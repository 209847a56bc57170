//! The subresource `scale` (apiextensions, `customresource` registry).

use serde_json::{Value, json};

use super::merge::merge_patch;
use super::request::Asked;
use super::resource::Address;
use super::store::{PatchType, Refused, Store, invalid};

impl Store {
    /// Reads or changes the size of an object. `body` is a Scale, or a merge patch of one.
    pub fn scale(
        &mut self,
        asked: &Asked,
        address: &Address,
        content_type: &str,
        body: &Value,
    ) -> Result<Value, Refused> {
        let dry = asked.query.contains_key("dryRun");
        let object = Address { subresource: None, ..address.clone() };
        if !address.kind.scale() {
            let message = format!("{address} not found");
            return Err(Refused { code: 404, reason: "NotFound", message });
        }
        let present = scale_of(self.read(&object)?);
        match (asked.verb, content_type) {
            ("get", _) => Ok(present),
            ("patch", "application/merge-patch+json") => {
                let mut changed = present;
                merge_patch(&mut changed, body);
                let replicas = &changed["spec"]["replicas"];
                if replicas.as_i64().is_none_or(|replicas| replicas < 0) {
                    return Err(invalid("spec.replicas: must be greater than or equal to 0"));
                }
                let patch = json!({
                    "metadata": { "resourceVersion": changed["metadata"]["resourceVersion"] },
                    "spec": { "replicas": replicas },
                });
                let after = self.patch(&object, &patch, &PatchType::Merge, dry)?;
                Ok(scale_of(&after))
            }
            (verb, _) => Err(Refused { code: 405, reason: "MethodNotAllowed", message: verb.to_owned() }),
        }
    }
}

fn scale_of(object: &Value) -> Value {
    let metadata = &object["metadata"];
    json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {
            "name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"], "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": { "replicas": object["spec"]["replicas"] },
        "status": {
            "replicas": object["status"]["replicas"].as_i64().unwrap_or(0),
            "selector": object["status"]["labelSelector"].as_str().unwrap_or_default(),
        },
    })
}
