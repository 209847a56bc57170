//! The validation rules of the definitions, in CEL (kubernetes.io/docs/reference/using-api/cel). The API server
//! evaluates them; `tests/machines/admission/` has their cases.
//!
//! A rule on a value is not evaluated where the value is absent; `oldSelf` is the stored value.

use serde_json::{Value, json};

use crate::model::api_contract::{MACHINE_TEMPLATE_HASH, RESERVED_NODE_PREFIXES, TRANSIENT_TAINT_PREFIXES};

/// The key of a schema that has rules.
pub const KEY: &str = "x-kubernetes-validations";

/// A semantic version (semver.org), with or without a leading `v`. The syntax of CEL's regular expressions (RE2) and of
/// the crate `regex` is the same here.
pub const SEMANTIC_VERSION: &str =
    "^v?(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?([+][0-9A-Za-z.-]+)?$";

/// The fields of a Machine's `spec` that never change, each optional or not.
const IMMUTABLE: [&str; 5] = ["metadata", "taints", "providerSpec", "versions", "nodeDrainTimeout"];

fn rule(expression: impl Into<String>, message: impl Into<String>) -> Value {
    json!({ "rule": expression.into(), "message": message.into() })
}

/// An integer from 0.
pub fn not_negative() -> Value {
    json!([rule("self >= 0", "must not be negative")])
}

/// A number of Machines from 0, or a percentage. A number may be a string, so that no client has to know the
/// difference.
pub fn surge() -> Value {
    json!([rule(
        "string(self).matches('^[0-9]+%?$')",
        "expects an integer from 0, or a percentage such as 25%"
    )])
}

/// As [`surge`], up to 100 %.
pub fn unavailable() -> Value {
    json!([rule(
        "string(self).matches('^([0-9]+|(100|[0-9]?[0-9])%)$')",
        "expects an integer from 0, or a percentage from 0% to 100%"
    )])
}

/// As [`unavailable`], and not 0.
pub fn in_flight() -> Value {
    json!([rule(
        "string(self).matches('^([0-9]+|(100|[0-9]?[0-9])%)$') && !string(self).matches('^0+%?$')",
        "expects an integer from 1, or a percentage from 1% to 100%"
    )])
}

/// Of a rolling update: one of both must allow the first step (Kubernetes, `ValidateRollingUpdateDeployment`).
pub fn rolling_update() -> Value {
    let zero = |field: &str| format!("string(self.{field}).matches('^0+%?$')");
    json!([rule(
        format!("!({} && {})", zero("maxSurge"), zero("maxUnavailable")),
        "maxSurge and maxUnavailable must not both be 0"
    )])
}

/// Of a selector: it selects something, and the same for ever. An empty one would select the Machines of others.
pub fn selector() -> Value {
    json!([
        rule(
            "(has(self.matchLabels) && size(self.matchLabels) > 0) || \
             (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
            "must not be empty"
        ),
        rule("self == oldSelf", "is immutable"),
    ])
}

/// Of one requirement of a selector (Kubernetes, `ValidateLabelSelectorRequirement`).
pub fn label_requirement() -> Value {
    json!([rule(
        "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : \
         !has(self.values) || size(self.values) == 0",
        "In and NotIn expect values, Exists and DoesNotExist none"
    )])
}

/// Of an object with `selector` and `template`.
pub fn selector_matches_template() -> Value {
    let labels = "self.template.metadata.labels";
    let has = format!("has({labels})");
    let match_labels = format!(
        "!has(self.selector.matchLabels) || self.selector.matchLabels.all(key, {has} && key in {labels} && \
         {labels}[key] == self.selector.matchLabels[key])"
    );
    let match_expressions = format!(
        "!has(self.selector.matchExpressions) || self.selector.matchExpressions.all(one, \
         {has} && one.key in {labels} ? \
         one.operator == 'Exists' || \
         (one.operator == 'In' && has(one.values) && {labels}[one.key] in one.values) || \
         (one.operator == 'NotIn' && has(one.values) && !({labels}[one.key] in one.values)) : \
         one.operator in ['NotIn', 'DoesNotExist'])"
    );
    rule(
        format!("({match_labels}) && ({match_expressions})"),
        "selector does not match template.metadata.labels",
    )
}

/// Of an object with `template`: a provider ID is that of one Machine.
fn no_provider_id() -> Value {
    rule("!has(self.template.spec.providerID)", "template.spec must not contain providerID")
}

/// Of a MachineDeployment's `spec`.
pub fn machine_deployment() -> Value {
    let hash = rule(
        format!(
            "!has(self.template.metadata.labels) || !('{MACHINE_TEMPLATE_HASH}' in self.template.metadata.labels)"
        ),
        format!("template.metadata.labels must not contain {MACHINE_TEMPLATE_HASH}"),
    );
    json!([selector_matches_template(), no_provider_id(), hash])
}

/// Of a MachineSet's `spec`.
pub fn machine_set() -> Value {
    json!([selector_matches_template(), no_provider_id()])
}

/// Of labels or annotations that a Node will have: no key that decides what a node is.
pub fn node_keys(of: &str) -> Value {
    json!([rule(
        format!("self.all(key, {})", without(&RESERVED_NODE_PREFIXES, "key")),
        reserved(of, &RESERVED_NODE_PREFIXES)
    )])
}

/// Of taints that a Node will have: also none that Kubernetes sets and removes itself.
pub fn taints() -> Value {
    let prefixes = [&RESERVED_NODE_PREFIXES[..], &TRANSIENT_TAINT_PREFIXES].concat();
    json!([rule(
        format!("self.all(taint, {})", without(&prefixes, "taint.key")),
        reserved("taints", &prefixes)
    )])
}

fn without(prefixes: &[&str], value: &str) -> String {
    let one = |prefix: &&str| format!("!{value}.startsWith('{prefix}')");
    prefixes.iter().map(one).collect::<Vec<_>>().join(" && ")
}

fn reserved(of: &str, prefixes: &[&str]) -> String {
    format!("{of} must not have a reserved prefix: {}", prefixes.join(", "))
}

/// Of the version of the kubelet.
pub fn version() -> Value {
    json!([rule(format!("self.matches('{SEMANTIC_VERSION}')"), "expects a semantic version such as 1.35.4")])
}

/// Of the ID of an operating system (os-release(5)).
pub fn distribution() -> Value {
    json!([rule(
        r"self.matches('^[a-z0-9._-]+$')",
        "expects the ID of os-release(5), such as debian or ubuntu"
    )])
}

/// Of a timeout, in the form of Go's `time.ParseDuration`.
pub fn duration() -> Value {
    json!([rule(
        r"self.matches('^(0|([0-9]+([.][0-9]+)?(ms|s|m|h))+)$')",
        "expects a duration such as 2h or 30m; 0 is no limit"
    )])
}

/// Of a time that must pass first: as [`duration`], and not 0.
pub fn timeout() -> Value {
    json!([rule(
        "self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') && !self.matches('^(0+([.]0+)?(ms|s|m|h))+$')",
        "expects a duration above 0, such as 5m or 90s"
    )])
}

/// Of a stored Machine. A Machine is replaced, never changed: `providerID` alone is set once.
pub fn machine_is_immutable() -> String {
    let same = |field: &&str| {
        let (new, old) = (format!("self.spec.{field}"), format!("oldSelf.spec.{field}"));
        format!("has({new}) == has({old}) && (!has({new}) || {new} == {old})")
    };
    IMMUTABLE.iter().map(same).collect::<Vec<_>>().join(" && ")
}

/// Of a stored Machine: see [`machine_is_immutable`].
pub fn provider_id_is_set_once() -> &'static str {
    "!has(oldSelf.spec.providerID) || oldSelf.spec.providerID == '' || \
     (has(self.spec.providerID) && self.spec.providerID == oldSelf.spec.providerID)"
}

/// Of the address of a Host.
pub fn address() -> Value {
    json!([rule(r"self.matches('^[0-9A-Za-z:._-]+$')", "expects an IP address or a host name")])
}

/// Of a TCP port.
pub fn port() -> Value {
    json!([rule("self >= 1 && self <= 65535", "expects a port from 1 to 65535")])
}

/// Of a string that is one word of a command line.
pub fn word() -> Value {
    json!([rule(r"self.matches('^[^ \\t\\n]+$')", "expects a string without blanks")])
}

/// Of the name of a program, which is no path.
pub fn hook() -> Value {
    json!([rule(
        r"self.matches('^[a-z0-9]([a-z0-9-]*[a-z0-9])?$')",
        "expects the name of a program in /etc/metalform/power.d: lowercase letters, digits and '-'; no path, and no URL"
    )])
}

/// Of the fingerprint of a host key, as `ssh-keygen -l` prints it.
pub fn fingerprint() -> Value {
    json!([rule(
        r"self.matches('^SHA256:[0-9A-Za-z+/]{43}$')",
        "expects the fingerprint of a host key: SHA256: and 43 characters"
    )])
}

/// Of a Host's `status`: who has it is known in every state, and a claim ends before another one begins.
pub fn host_status() -> Value {
    json!([
        rule(
            "self.state in ['Claimed', 'Provisioning', 'InUse', 'Draining'] ? has(self.claim) : \
             self.state != 'Available' || !has(self.claim)",
            "a Host that is Available has no claim; one that is Claimed, Provisioning, InUse or Draining has one"
        ),
        rule(
            "!has(self.claim) || !has(oldSelf.claim) || self.claim == oldSelf.claim",
            "a claim must be removed before another one is set"
        ),
        rule(
            "!has(self.claim) || self.claim.token <= self.lastToken",
            "lastToken must not be less than the token of the claim"
        ),
        rule(
            "self.lastToken >= oldSelf.lastToken && \
             (has(oldSelf.claim) || !has(self.claim) || self.claim.token > oldSelf.lastToken)",
            "a claim must have a greater token than every earlier one"
        ),
    ])
}
