//! Records of operations: a ConfigMap each, in kube-system.
//!
//! # Guarantees
//! The data of one are at most [`BYTES`]: where they would be more, lines are left out in the middle, and a line in
//! their place has their number.

use std::collections::BTreeMap;
use std::fmt::Display;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};

use super::FIELD_MANAGER;
use super::client::ApiError;
use crate::model::api_contract::OPERATION;
use crate::model::operation_record::OperationStatus;
use crate::model::operation_summary::OperationSummary;

/// Bytes of the data of one.
pub const BYTES: usize = 256 << 10;
/// Bytes of its user and command line.
const FIELD: usize = 8 << 10;
/// Bytes of its plan, of its phases, of its errors and of its hints; the log has the rest.
const SECTION: usize = 48 << 10;
/// Bytes of everything else: keys, times, status.
const REST: usize = 1 << 10;

const NAMESPACE: &str = "kube-system";
const NAME_PREFIX: &str = "metalform-operation-";

/// The name of the ConfigMap of an operation; names are in the order of time, as ids are.
pub fn name(id: &str) -> String {
    format!("{NAME_PREFIX}{}", id.to_lowercase())
}

/// Creates or replaces the record of an operation.
///
/// # Errors
/// When the API does not answer or refuses.
pub async fn put(client: &Client, operation: &OperationSummary) -> Result<(), ApiError> {
    let name = name(&operation.id);
    let map = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: Some(NAMESPACE.to_owned()),
            labels: Some([(OPERATION.to_owned(), operation.status.to_string())].into()),
            ..ObjectMeta::default()
        },
        data: Some(data(operation)),
        ..ConfigMap::default()
    };
    let parameters = PatchParams::apply(FIELD_MANAGER).force();
    let applied = api(client).patch(&name, &parameters, &Patch::Apply(&map)).await;
    applied.map_err(|error| ApiError::new("apply", object(&name), error))?;
    Ok(())
}

/// How far each recorded operation is, by the name of its ConfigMap.
///
/// # Errors
/// When the API does not answer or refuses.
pub async fn statuses(client: &Client) -> Result<BTreeMap<String, OperationStatus>, ApiError> {
    let listed = api(client).list_metadata(&ListParams::default().labels(OPERATION)).await;
    let listed = listed.map_err(|error| ApiError::new("list", "records of operations", error))?;
    let status = |value: &String| OperationStatus::ALL.into_iter().find(|status| status.as_str() == value);
    let known = listed.items.iter().map(|map| {
        // With a label that an administrator has changed, it is a record all the same.
        let status = map.labels().get(OPERATION).and_then(status).unwrap_or(OperationStatus::Killed);
        (map.name_any(), status)
    });
    Ok(known.filter(|(name, _)| name.starts_with(NAME_PREFIX)).collect())
}

/// All records, the oldest first. What is not one is left out.
///
/// # Errors
/// When the API does not answer or refuses.
pub async fn list(client: &Client) -> Result<Vec<OperationSummary>, ApiError> {
    let listed = api(client).list(&ListParams::default().labels(OPERATION)).await;
    let listed = listed.map_err(|error| ApiError::new("list", "records of operations", error))?;
    let mut operations: Vec<OperationSummary> =
        listed.items.into_iter().filter_map(|map| summary(&map.data?)).collect();
    operations.sort_by(|one, other| one.id.cmp(&other.id));
    Ok(operations)
}

/// The record in the ConfigMap of this name.
///
/// # Errors
/// When the API does not answer or refuses.
pub async fn get(client: &Client, name: &str) -> Result<Option<OperationSummary>, ApiError> {
    let map = api(client).get_opt(name).await.map_err(|error| ApiError::new("get", object(name), error))?;
    Ok(map.and_then(|map| summary(&map.data?)))
}

/// Deletes the ConfigMap of this name; one that does not exist is no error.
///
/// # Errors
/// When the API does not answer or refuses.
pub async fn delete(client: &Client, name: &str) -> Result<(), ApiError> {
    let deleted = api(client).delete(name, &DeleteParams::default()).await;
    match deleted.map_err(|error| ApiError::new("delete", object(name), error)) {
        Ok(_) | Err(ApiError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn api(client: &Client) -> Api<ConfigMap> {
    Api::namespaced(client.clone(), NAMESPACE)
}

fn object(name: &str) -> String {
    format!("configmap/{NAMESPACE}/{name}")
}

/// What cannot be known yet has no key.
fn data(operation: &OperationSummary) -> BTreeMap<String, String> {
    let phases: Vec<String> =
        operation.phases.iter().filter_map(|phase| serde_json::to_string(phase).ok()).collect();
    let text = |text: &str| Some(shortened(text).to_owned());
    let shown = |value: Option<&dyn Display>| value.map(ToString::to_string);
    let mut data: BTreeMap<String, String> = [
        ("id", text(&operation.id)),
        ("user", text(&operation.user)),
        ("command", text(&operation.command)),
        ("started", shown(Some(&operation.started))),
        ("ended", shown(operation.ended.as_ref().map(|ended| ended as &dyn Display))),
        ("status", shown(Some(&operation.status))),
        ("exit", shown(operation.exit.as_ref().map(|exit| exit as &dyn Display))),
        ("plan", Some(within(&operation.plan, SECTION))),
        ("phases", Some(within(&phases, SECTION))),
        ("errors", Some(within(&operation.errors, SECTION))),
        ("hints", Some(within(&operation.hints, SECTION))),
    ]
    .into_iter()
    .filter_map(|(key, value)| Some((key.to_owned(), value?)))
    .collect();
    let used: usize = data.values().map(String::len).sum();
    data.insert("log".to_owned(), within(&operation.log, BYTES.saturating_sub(used + REST)));
    data
}

/// `None` where something is missing that every record has.
fn summary(data: &BTreeMap<String, String>) -> Option<OperationSummary> {
    let text = |key: &str| data.get(key).map(String::as_str);
    let time = |key: &str| text(key)?.parse::<Timestamp>().ok();
    let lines =
        |key: &str| -> Vec<String> { text(key).unwrap_or_default().lines().map(str::to_owned).collect() };
    Some(OperationSummary {
        id: text("id")?.to_owned(),
        started: time("started")?,
        ended: time("ended"),
        user: text("user")?.to_owned(),
        command: text("command")?.to_owned(),
        status: OperationStatus::ALL.into_iter().find(|status| Some(status.as_str()) == text("status"))?,
        exit: text("exit").and_then(|exit| exit.parse().ok()),
        plan: lines("plan"),
        // A line in place of phases that were left out is none.
        phases: lines("phases").iter().filter_map(|line| serde_json::from_str(line).ok()).collect(),
        errors: lines("errors"),
        hints: lines("hints"),
        log: lines("log"),
    })
}

fn shortened(text: &str) -> &str {
    let end = (0..=FIELD.min(text.len())).rfind(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// These lines, without those in the middle that do not fit into this many bytes.
fn within(lines: &[String], bytes: usize) -> String {
    let line = |line: &String| line.replace('\n', " ") + "\n";
    let whole: usize = lines.iter().map(|line| line.len() + 1).sum();
    if whole <= bytes {
        return lines.iter().map(line).collect();
    }
    let half = bytes.saturating_sub(LEFT_OUT) / 2;
    let fitting = |lines: &mut dyn Iterator<Item = &String>| {
        let mut used = 0;
        lines
            .take_while(|line| {
                used += line.len() + 1;
                used <= half
            })
            .count()
    };
    let (first, last) = (fitting(&mut lines.iter()), fitting(&mut lines.iter().rev()));
    let (head, rest) = lines.split_at(first);
    let (left_out, tail) = rest.split_at(rest.len() - last);
    let marker = format!("... {} lines are left out ...\n", left_out.len());
    head.iter().map(line).chain([marker]).chain(tail.iter().map(line)).collect()
}

/// Bytes for the line in place of those that are left out.
const LEFT_OUT: usize = 64;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::recorded_phase::{PhaseOutcome, RecordedPhase};

    fn operation() -> OperationSummary {
        let owned = |line: &str| vec![line.to_owned()];
        OperationSummary {
            id: "20270115T080000Z-4711".to_owned(),
            started: Timestamp::from_second(1_800_000_000).unwrap(),
            ended: Some(Timestamp::from_second(1_800_000_021).unwrap()),
            user: "ada".to_owned(),
            command: "metalform deploy-node node-1".to_owned(),
            status: OperationStatus::Failed,
            exit: Some(4),
            plan: owned("node-1: etcd, master"),
            phases: vec![RecordedPhase {
                host: "node-1".parse().unwrap(),
                phase: "Node joined".to_owned(),
                outcome: PhaseOutcome::Failed,
                took: Duration::from_millis(12_340),
                cause: "waited for the kubelet: kubelet.service is failed".to_owned(),
            }],
            errors: owned("node-1: Node joined: gave up"),
            hints: owned("fix this, then run the same command again; it resumes"),
            log: vec!["08:00:01 node-1:   apply base system".to_owned(), "08:00:21 the end".to_owned()],
        }
    }

    #[test]
    fn what_is_in_the_cluster_is_what_is_shown() {
        insta::assert_yaml_snapshot!(data(&operation()), @r#"
        command: metalform deploy-node node-1
        ended: "2027-01-15T08:00:21Z"
        errors: "node-1: Node joined: gave up\n"
        exit: "4"
        hints: "fix this, then run the same command again; it resumes\n"
        id: 20270115T080000Z-4711
        log: "08:00:01 node-1:   apply base system\n08:00:21 the end\n"
        phases: "{\"host\":\"node-1\",\"phase\":\"Node joined\",\"outcome\":\"failed\",\"seconds\":12.34,\"cause\":\"waited for the kubelet: kubelet.service is failed\"}\n"
        plan: "node-1: etcd, master\n"
        started: "2027-01-15T08:00:00Z"
        status: failed
        user: ada
        "#);
        let running = OperationSummary { ended: None, exit: None, log: Vec::new(), ..operation() };
        for one in [operation(), running] {
            assert_eq!(summary(&data(&one)), Some(one));
        }
        assert_eq!(summary(&BTreeMap::from([("id".to_owned(), "x".to_owned())])), None);
        assert_eq!(name(&operation().id), "metalform-operation-20270115t080000z-4711");
    }

    #[test]
    fn a_record_is_bounded_and_keeps_its_beginning_and_its_end() {
        let many = |what: &str| (0..20_000).map(|number| format!("{what} {number}")).collect::<Vec<_>>();
        let long = OperationSummary {
            command: "é".repeat(100_000),
            phases: vec![operation().phases[0].clone(); 5_000],
            plan: many("plan"),
            errors: many("error"),
            hints: vec!["x".repeat(1 << 20)],
            log: many("line"),
            ..operation()
        };
        let data = data(&long);
        let bytes: usize = data.iter().map(|(key, value)| key.len() + value.len()).sum();
        assert!(bytes <= BYTES && bytes > BYTES / 2, "{bytes}");
        let read = summary(&data).unwrap();
        assert_eq!((read.log.first(), read.log.last()), (long.log.first(), long.log.last()));
        let marker = read.log.iter().find(|line| line.starts_with("...")).unwrap();
        assert_eq!(*marker, format!("... {} lines are left out ...", 20_000 - (read.log.len() - 1)));
        assert_eq!(read.hints, ["... 1 lines are left out ..."]);
        assert!(read.phases.len() > 100);
    }
}
