//! A rollout of 10 replicas with a surge of 2: its writes beside the state changes that explain them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::Findings;
use super::api_requests::{ApiRequests, Counts, is_write};
use super::bound::Bound;
use super::cluster::{Cluster, at_rest, run_controllers};
use super::state_changes::StateChanges;

const REPLICAS: usize = 10;
const SURGE: usize = 2;
const DEPLOYMENT: Duration = Duration::from_millis(1_400);
const OTHER: Duration = Duration::from_millis(200);
/// Of all writes: passes over two objects may write one of them at the same time.
const CONFLICTS: f64 = 0.01;
/// Printed of them.
const MOST_REMARKS: usize = 20;

pub async fn measure() -> Findings {
    let cluster = Cluster::start().await;
    cluster.add_hosts(0, REPLICAS + SURGE + 2).await;
    cluster.add_deployment("nodes", REPLICAS, SURGE).await;
    let (client, requests) = ApiRequests::counted(&cluster.controller().await);
    let (kubelets, by_kubelets) = ApiRequests::counted(&cluster.admin);
    let hosts = cluster.hosts(&kubelets, DEPLOYMENT, OTHER);
    let rollout = async {
        cluster.complete().await;
        at_rest(&requests).await;
        let changes = StateChanges::watch(&cluster.admin).await;
        let before = (requests.counts(), by_kubelets.counts(), requests.refused().len());
        let labels =
            json!({ "spec": { "template": { "spec": { "metadata": { "labels": { "rolled": "yes" } } } } } });
        let patch = Patch::Merge(&labels);
        cluster.deployments().patch("nodes", &PatchParams::default(), &patch).await.unwrap();
        cluster.complete().await;
        at_rest(&requests).await;
        let sent = (since(&requests, &before.0), since(&by_kubelets, &before.1));
        (sent.0, sent.1, changes, before.2)
    };
    let (sent, by_kubelets, changes, earlier) = run_controllers(&client, hosts, REPLICAS, rollout).await;
    let mut explained = changes.changes();
    // The new template is our own write; the Nodes' are their kubelets'.
    *explained.entry("patch machinedeployments".to_owned()).or_default() -= 1;
    for ((title, _), count) in by_kubelets {
        explained.entry(title).and_modify(|all| *all = all.saturating_sub(count));
    }
    let mut remarks: Vec<String> =
        changes.without().into_iter().map(|version| format!("without a state change: {version}")).collect();
    remarks.extend(requests.refused().into_iter().skip(earlier).map(|write| format!("refused: {write}")));
    remarks.extend(repeated_events(&cluster).await);
    findings(&sent, &explained, &remarks)
}

async fn repeated_events(cluster: &Cluster) -> Vec<String> {
    let events: Api<Event> = Api::all(cluster.admin.clone());
    let events = events.list(&Default::default()).await.unwrap().items.into_iter();
    let repeated = events.filter(|event| event.count > Some(1));
    repeated
        .map(|event| {
            let reason = event.reason.unwrap_or_default();
            format!("repeated Event: {reason}: {}", event.message.unwrap_or_default())
        })
        .collect()
}

fn since(requests: &ApiRequests, before: &Counts) -> Counts {
    let counts = requests.counts().into_iter();
    counts.map(|(key, count)| (key.clone(), count - before.get(&key).copied().unwrap_or(0))).collect()
}

fn findings(sent: &Counts, explained: &BTreeMap<String, u64>, remarks: &[String]) -> Findings {
    let mut text = "| request | accepted | refused | state changes |\n| --- | --- | --- | --- |\n".to_owned();
    let titles: BTreeSet<&String> = sent.keys().map(|(title, _)| title).chain(explained.keys()).collect();
    let count = |title: &String, accepted| {
        u32::try_from(sent.get(&(title.clone(), accepted)).copied().unwrap_or(0)).unwrap()
    };
    let (mut writes, mut changes, mut unexplained, mut conflicts) = (0, 0, 0, 0);
    for title in titles {
        let (accepted, refused) = (count(title, true), count(title, false));
        if accepted + refused == 0 && explained.get(title).is_none_or(|count| *count == 0) {
            continue;
        }
        // Each Event is itself the report of a change; that of one that is repeated is a patch.
        let events = title.ends_with(" events");
        let because = if events {
            accepted
        } else {
            u32::try_from(explained.get(title).copied().unwrap_or(0)).unwrap()
        };
        let shown = if is_write(title) { because.to_string() } else { String::new() };
        writeln!(text, "| {title} | {accepted} | {refused} | {shown} |").unwrap();
        if is_write(title) && !events {
            writes += accepted + refused;
            changes += because;
            unexplained += accepted.saturating_sub(because);
            conflicts += refused;
        }
    }
    for remark in remarks.iter().take(MOST_REMARKS) {
        writeln!(text, "\n{remark}").unwrap();
    }
    let bounds = vec![
        Bound {
            about: "writes of a rollout of 10 with surge 2 that no state change explains (of all but Events)",
            limit: "0".to_owned(),
            measured: format!("{unexplained} (of {writes}, for {changes} state changes)"),
            met: unexplained == 0,
        },
        Bound {
            about: "writes of that rollout that are refused, since the object had changed meanwhile",
            limit: format!("{:.0} %", CONFLICTS * 100.0),
            measured: format!("{conflicts} of {writes}"),
            met: f64::from(conflicts) <= f64::from(writes) * CONFLICTS,
        },
    ];
    Findings { text, bounds }
}
