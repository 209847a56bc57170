//! Passes of the machine controllers over the scripted API, with hosts that take no time.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use metalform::controller::machine_pass::{
    MachinePass, MachinePassError, NextPass, pass_over_deployment, pass_over_set,
};
use metalform::machine::api::machine_deployment::MachineDeployment;
use metalform::machine::api::machine_set::MachineSet;
use metalform::machine::pool_offer::PoolOffer;
use metalform::machine::rollout_decision::RolloutObjects;
use metalform::machine::set_decision::SetObjects;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::ScriptedApi;
use crate::api::rules::Fate;

const NAMESPACE: &str = "kube-system";
/// More rounds than any of the rollouts takes.
const ROUNDS: usize = 60;

struct Pool {
    api: ScriptedApi,
    client: kube::Client,
    /// What its hosts offer.
    offer: PoolOffer,
}

impl Pool {
    /// With a MachineDeployment of three Machines, and nothing else.
    fn new() -> Self {
        let api = ScriptedApi::new();
        let client = api.client();
        let deployment = json!({
            "metadata": { "name": "nodes" },
            "spec": {
                "replicas": 3, "selector": { "matchLabels": { "group": "a" } },
                "template": {
                    "metadata": { "labels": { "group": "a" } },
                    "spec": {
                        "providerSpec": { "value": { "cloudProvider": "metalform", "operatingSystem": "debian" } },
                        "versions": { "kubelet": "1.35.4" },
                    },
                },
            },
        });
        api.lock().store.insert("machinedeployments", NAMESPACE, deployment);
        Self { api, client, offer: PoolOffer { free_hosts: 1, ..PoolOffer::default() } }
    }

    fn all(&self, plural: &str) -> Vec<Value> {
        self.api.lock().store.all(plural).into_iter().cloned().collect()
    }

    fn parsed<T: DeserializeOwned>(&self, plural: &str) -> Vec<Arc<T>> {
        self.all(plural).into_iter().map(|one| Arc::new(serde_json::from_value(one).unwrap())).collect()
    }

    /// What caches show that are up to date.
    fn rollout(&self) -> Option<RolloutObjects> {
        self.rollout_of("nodes")
    }

    fn rollout_of(&self, deployment: &str) -> Option<RolloutObjects> {
        let deployments: Vec<Arc<MachineDeployment>> = self.parsed("machinedeployments");
        Some(RolloutObjects {
            deployment: deployments.iter().find(|one| one.name_any() == deployment)?.clone(),
            deployments,
            sets: self.parsed("machinesets"),
            machines: self.parsed("machines"),
            nodes: self.nodes(),
        })
    }

    fn nodes(&self) -> BTreeMap<String, Arc<Node>> {
        self.parsed::<Node>("nodes").into_iter().map(|node| (node.name_any(), node)).collect()
    }

    async fn pass(&self, cached: &RolloutObjects) -> Result<MachinePass, MachinePassError> {
        let now: Timestamp = "2026-01-03T00:00:00Z".parse().unwrap();
        let offer = self.offer.clone();
        pass_over_deployment(&self.client, cached, &move |_| offer.clone(), now).await
    }

    async fn pass_over_sets(&self) -> Result<(), MachinePassError> {
        let now: Timestamp = "2026-01-03T00:00:00Z".parse().unwrap();
        for set in self.parsed("machinesets") {
            let cached = SetObjects { set, machines: self.parsed("machines") };
            pass_over_set(&self.client, &cached, now).await?;
        }
        Ok(())
    }

    /// Machines become Ready, and those that are deleted return their hosts.
    fn advance(&self) {
        let ready = json!({
            "nodeRef": { "name": "n" },
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "R", "message": "",
                "lastTransitionTime": "2026-01-02T00:00:00Z",
            }],
        });
        for machine in self.all("machines") {
            let name = machine["metadata"]["name"].as_str().unwrap();
            self.api.lock().store.change("machines", NAMESPACE, name, |machine| {
                if machine["metadata"]["deletionTimestamp"].is_null() {
                    machine["status"] = ready.clone();
                } else {
                    machine["metadata"]["finalizers"] = json!([]);
                }
            });
        }
    }

    /// Until no controller writes anything. `check` sees the Machines after every pass.
    async fn settle(&self, check: impl Fn(&[Value])) {
        for _ in 0..ROUNDS {
            let before = self.written();
            for deployment in self.parsed::<MachineDeployment>("machinedeployments") {
                let cached = self.rollout_of(&deployment.name_any()).unwrap();
                self.pass(&cached).await.unwrap();
            }
            check(&self.all("machines"));
            self.pass_over_sets().await.unwrap();
            check(&self.all("machines"));
            self.advance();
            if before == self.written() {
                return;
            }
        }
        panic!("it does not end: {:?}", self.api.lock().changes);
    }

    /// How often anything was written, and the Machines.
    fn written(&self) -> (usize, Vec<Value>) {
        let machines = self.all("machines");
        (self.api.lock().changes.len(), machines)
    }

    fn status(&self) -> Value {
        self.all("machinedeployments")[0]["status"].clone()
    }

    fn count(&self, prefix: &str) -> usize {
        self.api.lock().changes.iter().filter(|change| change.starts_with(prefix)).count()
    }

    fn change_template(&self) {
        self.api.lock().store.change("machinedeployments", NAMESPACE, "nodes", |deployment| {
            deployment["spec"]["template"]["spec"]["versions"]["kubelet"] = json!("1.35.5");
        });
    }
}

fn live(machines: &[Value]) -> usize {
    machines.iter().filter(|machine| machine["metadata"]["deletionTimestamp"].is_null()).count()
}

#[tokio::test]
async fn machines_are_created_from_nothing_and_then_nothing_is_requested() {
    let pool = Pool::new();
    pool.settle(|machines| assert!(machines.len() <= 3)).await;
    assert_eq!((live(&pool.all("machines")), pool.count("create machines/")), (3, 3));
    let status = pool.status();
    assert_eq!((&status["availableReplicas"], &status["updatedReplicas"]), (&json!(3), &json!(3)));
    assert_eq!(status["conditions"][1]["reason"], json!("RolloutComplete"));
    assert_eq!(status["rollout"]["resting"], json!(true));
    let set = pool.all("machinesets").pop().unwrap();
    assert_eq!(set["status"]["observedGeneration"], set["metadata"]["generation"]);
    let requests = pool.api.lock().requests;
    let step = pool.pass(&pool.rollout().unwrap()).await.unwrap();
    pool.pass_over_sets().await.unwrap();
    assert_eq!((step.done.len(), step.next), (0, NextPass::OnChange));
    assert_eq!(pool.api.lock().requests, requests);
}

#[tokio::test]
async fn a_rolling_update_keeps_to_its_limits() {
    let pool = Pool::new();
    pool.settle(|_| {}).await;
    pool.change_template();
    pool.settle(|machines| {
        let ready = machines.iter().filter(|machine| {
            machine["status"]["nodeRef"].is_object() && machine["metadata"]["deletionTimestamp"].is_null()
        });
        assert!(ready.count() >= 3, "maxUnavailable is 0");
        assert!(machines.len() <= 4, "maxSurge is 1, and hosts that are reset count");
    })
    .await;
    let machines = pool.all("machines");
    assert_eq!(machines.len(), 3);
    assert!(machines.iter().all(|one| one["spec"]["versions"]["kubelet"] == json!("1.35.5")));
    let mut sizes: Vec<i64> =
        pool.all("machinesets").iter().filter_map(|set| set["spec"]["replicas"].as_i64()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [0, 3]);
    let deployment = pool.all("machinedeployments").pop().unwrap();
    assert_eq!(
        deployment["metadata"]["annotations"]["machinedeployment.clusters.k8s.io/revision"],
        json!("2")
    );
}

#[tokio::test]
async fn a_conflict_ends_the_pass_and_loses_nothing() {
    let pool = Pool::new();
    pool.settle(|_| {}).await;
    pool.api.lock().store.change("machinedeployments", NAMESPACE, "nodes", |deployment| {
        deployment["spec"]["replicas"] = json!(4);
    });
    pool.api.lock().rules.add("patch machinesets", Fate::Status(409), Some(1));
    let step = pool.pass(&pool.rollout().unwrap()).await.unwrap();
    assert!(step.conflict.is_some());
    assert_eq!((step.done.len(), step.next), (0, NextPass::Now), "the status is not written either");
    pool.settle(|machines| assert!(machines.len() <= 4)).await;
    assert_eq!(live(&pool.all("machines")), 4);
}

#[tokio::test]
async fn a_set_that_a_cache_does_not_show_is_not_created_again() {
    let pool = Pool::new();
    let empty = loop {
        let cached = pool.rollout().unwrap();
        pool.pass(&cached).await.unwrap();
        if !pool.all("machinesets").is_empty() {
            break cached;
        }
    };
    for _ in 0..3 {
        pool.pass(&empty).await.unwrap();
    }
    assert_eq!((pool.all("machinesets").len(), pool.count("create machinesets/")), (1, 1));
    // The same for the Machines of the set.
    let set: Vec<Arc<MachineSet>> = pool.parsed("machinesets");
    let cached = SetObjects { set: set[0].clone(), machines: Vec::new() };
    for _ in 0..3 {
        pass_over_set(&pool.client, &cached, Timestamp::UNIX_EPOCH).await.unwrap();
    }
    assert_eq!((pool.all("machines").len(), pool.count("create machines/")), (3, 3));
}

#[tokio::test]
async fn a_controller_that_is_killed_between_two_writes_is_continued() {
    let pool = Pool::new();
    for _ in 0..3 {
        pool.pass(&pool.rollout().unwrap()).await.unwrap();
    }
    pool.api.lock().rules.add("create machines/", Fate::AnswerLost, Some(1));
    pool.pass_over_sets().await.unwrap_err();
    assert_eq!(pool.all("machines").len(), 1, "it was created, and the controller does not know");
    let set = pool.all("machinesets").pop().unwrap();
    assert_eq!(set["status"]["observedGeneration"], Value::Null, "the generation is not acted on yet");
    pool.settle(|machines| assert!(machines.len() <= 3)).await;
    assert_eq!(pool.all("machines").len(), 3);
}

#[tokio::test]
async fn a_deletion_returns_every_host_before_the_deployment_is_gone() {
    let pool = Pool::new();
    pool.settle(|_| {}).await;
    let api: Api<MachineDeployment> = Api::namespaced(pool.client.clone(), NAMESPACE);
    api.delete("nodes", &DeleteParams::default()).await.unwrap();
    assert_eq!(pool.all("machinedeployments").len(), 1);
    pool.settle(|machines| {
        assert!(machines.is_empty() || !pool.all("machinedeployments").is_empty());
    })
    .await;
    let left = ["machinedeployments", "machinesets", "machines"].map(|plural| pool.all(plural).len());
    assert_eq!(left, [0, 0, 0]);
}

#[tokio::test]
async fn orphans_are_adopted_and_not_replaced() {
    let pool = Pool::new();
    pool.settle(|_| {}).await;
    let set = pool.all("machinesets")[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let machine = pool.all("machines")[0]["metadata"]["name"].as_str().unwrap().to_owned();
    for (plural, name) in [("machinesets", &set), ("machines", &machine)] {
        pool.api.lock().store.change(plural, NAMESPACE, name, |object| {
            object["metadata"]["ownerReferences"] = json!([]);
        });
    }
    pool.settle(|machines| assert_eq!(machines.len(), 3)).await;
    let owners = |plural: &str| -> Vec<Value> {
        let all = pool.all(plural);
        all.iter().map(|object| object["metadata"]["ownerReferences"][0]["kind"].clone()).collect()
    };
    assert_eq!(owners("machinesets"), [json!("MachineDeployment")]);
    assert_eq!(owners("machines"), vec![json!("MachineSet"); 3]);
    assert_eq!((pool.count("create machines/"), pool.count("delete machines/")), (3, 0));
}

#[tokio::test]
async fn of_two_with_one_selector_the_later_one_waits_until_the_other_is_gone() {
    let pool = Pool::new();
    pool.settle(|_| {}).await;
    let before = (pool.all("machinesets"), pool.all("machines"));
    let spec = pool.all("machinedeployments")[0]["spec"].clone();
    let later = json!({ "metadata": { "name": "other" }, "spec": spec });
    pool.api.lock().store.insert("machinedeployments", NAMESPACE, later);
    // A cache that does not show the earlier one yet.
    let mut cached = pool.rollout_of("other").unwrap();
    cached.deployments.retain(|one| one.name_any() == "other");
    for _ in 0..3 {
        pool.pass(&cached).await.unwrap();
    }
    pool.settle(|_| {}).await;
    assert_eq!((pool.all("machinesets"), pool.all("machines")), before);
    let progress = |pool: &Pool| {
        let other = pool.all("machinedeployments").pop().unwrap();
        assert_eq!(other["metadata"]["name"], "other");
        let conditions = other["status"]["conditions"].as_array().unwrap().clone();
        let condition = conditions.into_iter().find(|one| one["type"] == "Progressing").unwrap();
        ["status", "reason", "message"].map(|field| condition[field].as_str().unwrap().to_owned())
    };
    let message = "selector group=a matches the Machines of MachineDeployment nodes";
    assert_eq!(progress(&pool), ["False", "SelectorConflict", message]);

    let api: Api<MachineDeployment> = Api::namespaced(pool.client.clone(), NAMESPACE);
    api.delete("nodes", &DeleteParams::default()).await.unwrap();
    pool.settle(|machines| assert!(machines.len() <= 3)).await;
    let left = ["machinedeployments", "machinesets", "machines"].map(|plural| pool.all(plural).len());
    assert_eq!(left, [1, 1, 3]);
    assert_eq!(pool.all("machinesets")[0]["metadata"]["ownerReferences"][0]["name"], "other");
    assert_eq!(progress(&pool)[..2], ["True", "RolloutComplete"]);
}

#[tokio::test]
async fn what_is_expected_of_a_node_is_written_once_and_replaces_none() {
    let mut pool = Pool::new();
    pool.settle(|_| {}).await;
    let before = (pool.all("machinesets"), pool.all("machines"));
    let key = |name: &str| format!("capacity.cluster-autoscaler.kubernetes.io/{name}");
    let annotations = |pool: &Pool| pool.all("machinedeployments")[0]["metadata"]["annotations"].clone();
    pool.api.lock().store.change("machinedeployments", NAMESPACE, "nodes", |nodes| {
        nodes["metadata"]["annotations"][key("memory")] = json!("1Gi");
    });
    for (expected, left) in [
        (&[("cpu", "4"), ("memory", "8Gi")][..], json!(["4", "1Gi"])),
        (&[("cpu", "2"), ("memory", "8Gi")], json!(["2", "1Gi"])),
        (&[], json!([null, "1Gi"])),
    ] {
        pool.offer.node = expected.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let written = pool.count("patch machinedeployments/");
        pool.settle(|_| {}).await;
        assert_eq!(pool.count("patch machinedeployments/") - written, 1, "{:?}", pool.api.lock().changes);
        let present = annotations(&pool);
        assert_eq!(json!([present[key("cpu")], present[key("memory")]]), left);
        let requests = pool.api.lock().requests;
        pool.pass(&pool.rollout().unwrap()).await.unwrap();
        assert_eq!(pool.api.lock().requests, requests, "nothing is left to write");
    }
    assert_eq!((pool.all("machinesets"), pool.all("machines")), before, "nor has anything else changed");
    // A set that is new has none of it either.
    pool.offer.node = [("cpu", "4".to_owned())].into();
    pool.change_template();
    pool.settle(|_| {}).await;
    let sets = pool.all("machinesets");
    assert_eq!(sets.len(), 2);
    for set in sets {
        let annotations = set["metadata"]["annotations"].as_object().unwrap().clone();
        let of_node = |key: &&String| key.contains("capacity");
        assert_eq!(annotations.keys().filter(of_node).count(), 0, "{annotations:?}");
    }
}

/// The Node of a Machine, Ready since or not since that time.
fn node(machine: &str, ready: &str, since: &str) -> Value {
    json!({
        "metadata": { "name": machine }, "spec": { "providerID": format!("metalform://{machine}/u") },
        "status": { "conditions": [{ "type": "Ready", "status": ready, "lastTransitionTime": since }] },
    })
}

#[tokio::test]
async fn a_machine_is_replaced_when_the_api_server_too_shows_its_node_unhealthy_for_too_long() {
    let pool = Pool::new();
    pool.settle(|_| {}).await;
    pool.api.lock().store.change("machinedeployments", NAMESPACE, "nodes", |deployment| {
        let unhealthy = json!([{ "type": "Ready", "status": "Unknown", "timeout": "5m" }]);
        deployment["spec"]["remediation"] = json!({ "unhealthyConditions": unhealthy, "maxUnhealthy": 1 });
    });
    let names: Vec<String> =
        pool.all("machines").iter().map(|one| one["metadata"]["name"].as_str().unwrap().to_owned()).collect();
    for name in &names {
        pool.api.lock().store.change("machines", NAMESPACE, name, |machine| {
            machine["spec"]["providerID"] = json!(format!("metalform://{name}/u"));
            machine["status"]["nodeRef"]["name"] = json!(name);
        });
        pool.api.lock().store.insert("nodes", "", node(name, "True", "2026-01-01T00:00:00Z"));
    }
    let report = |name: &str, ready: &str, since: &str| {
        let status = node(name, ready, since)["status"].clone();
        pool.api.lock().store.change("nodes", "", name, |node| node["status"] = status);
    };
    // The declaration alone replaces nothing.
    pool.pass(&pool.rollout().unwrap()).await.unwrap();
    assert_eq!((pool.all("machinesets").len(), pool.count("delete machines/")), (1, 0));
    // Unknown for 4 min 59 s: the next pass is due when 5 min have passed.
    report(&names[0], "Unknown", "2026-01-02T23:55:01Z");
    let pass = pool.pass(&pool.rollout().unwrap()).await.unwrap();
    assert_eq!(pass.next, NextPass::At("2026-01-03T00:00:01Z".parse().unwrap()));
    // A cache that is old: the API server shows that it is Ready again.
    report(&names[0], "Unknown", "2026-01-02T23:55:00Z");
    let old = pool.rollout().unwrap();
    report(&names[0], "True", "2026-01-02T23:59:59Z");
    pool.pass(&old).await.unwrap();
    assert_eq!(pool.count("delete machines/"), 0);
    // Two of three, where one may be.
    report(&names[0], "Unknown", "2026-01-02T23:55:00Z");
    report(&names[1], "Unknown", "2026-01-02T23:00:00Z");
    pool.pass(&pool.rollout().unwrap()).await.unwrap();
    let conditions = pool.status()["conditions"].as_array().unwrap().clone();
    let condition = conditions.iter().find(|one| one["type"] == "RemediationAllowed").unwrap();
    let expected = "remediation is held back: 2 of 3 machines are unhealthy, at most 1 allowed";
    assert_eq!((&condition["status"], &condition["message"]), (&json!("False"), &json!(expected)));
    assert_eq!(pool.count("delete machines/"), 0);
    report(&names[1], "True", "2026-01-03T00:00:00Z");
    let pass = pool.pass(&pool.rollout().unwrap()).await.unwrap();
    let deleted =
        pool.all("machines").into_iter().filter(|one| !one["metadata"]["deletionTimestamp"].is_null());
    let deleted: Vec<Value> = deleted.map(|machine| machine["metadata"]["name"].clone()).collect();
    assert_eq!(deleted, [json!(names[0])]);
    let events: Vec<String> =
        pass.events.iter().map(|event| format!("{}: {}", event.reason, event.message)).collect();
    let message = format!(
        "machine {} is deleted and replaced: its node is unhealthy: Ready=Unknown since 2026-01-02T23:55:00Z",
        names[0]
    );
    assert_eq!(events, [format!("Unhealthy: {message}"), format!("Remediating: {message}")]);
    // Its set creates another, and it is not deleted again.
    pool.pass_over_sets().await.unwrap();
    pool.pass(&pool.rollout().unwrap()).await.unwrap();
    assert_eq!((pool.all("machines").len(), pool.count("delete machines/")), (4, 1));
}
