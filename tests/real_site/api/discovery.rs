//! Which kinds the scripted API serves.

use serde_json::{Value, json};

use super::resource::{KINDS, Kind};
use super::store::Refused;

/// `/apis`: all groups but the core group.
pub fn groups() -> Value {
    let mut groups: Vec<Value> = Vec::new();
    for kind in KINDS.iter().filter(|kind| !kind.group.is_empty()) {
        let version = json!({ "groupVersion": kind.api_version(), "version": kind.version });
        let group = json!({ "name": kind.group, "versions": [version], "preferredVersion": version });
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })
}

/// `/apis/GROUP/VERSION`.
pub fn resources(group: &str, version: &str) -> Result<Value, Refused> {
    let kinds = KINDS.iter().filter(|kind| (kind.group, kind.version) == (group, version));
    let resources: Vec<Value> =
        kinds.flat_map(|kind| [Some(resource(kind)), kind.scale().then(|| scale(kind))]).flatten().collect();
    if resources.is_empty() {
        let message = format!("the server does not serve {group}/{version}");
        return Err(Refused { code: 404, reason: "NotFound", message });
    }
    let of = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    Ok(json!({ "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": of, "resources": resources }))
}

fn resource(kind: &Kind) -> Value {
    json!({
        "name": kind.plural, "singularName": kind.kind.to_lowercase(), "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": ["create", "delete", "get", "list", "patch", "update", "watch"],
    })
}

fn scale(kind: &Kind) -> Value {
    json!({
        "name": format!("{}/scale", kind.plural), "singularName": "", "namespaced": kind.namespaced,
        "kind": "Scale", "group": "autoscaling", "version": "v1", "verbs": ["get", "patch", "update"],
    })
}
