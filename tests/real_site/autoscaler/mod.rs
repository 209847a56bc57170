//! The stock cluster-autoscaler scales a MachineDeployment of the machine controllers.

mod client;
mod node_group;

use std::sync::Arc;

use serde_json::{Value, json};

use self::client::Autoscaler;
use self::node_group::{NodeGroup, TemplateNode, text};
use crate::api::ScriptedApi;
use crate::machine_controller::{NAMESPACE, Performer, cluster, phases, states, until};

/// With bounds, and the controllers of its Machines.
fn scaled(replicas: u32, min: u32, max: u32) -> (ScriptedApi, Arc<Performer>) {
    let api = cluster(replicas);
    api.lock().store.change("machinedeployments", NAMESPACE, "nodes", |nodes| {
        nodes["metadata"]["annotations"] = json!({
            "cluster.k8s.io/cluster-api-autoscaler-node-group-min-size": min.to_string(),
            "cluster.k8s.io/cluster-api-autoscaler-node-group-max-size": max.to_string(),
        });
    });
    let performer = Arc::new(Performer::new(&api, "a"));
    (api, performer)
}

fn names(api: &ScriptedApi, plural: &str) -> Vec<String> {
    let server = api.lock();
    server.store.all(plural).into_iter().map(|one| text(&one["metadata"]["name"]).to_owned()).collect()
}

/// Its requests that change something, in order.
fn scaling(api: &ScriptedApi) -> Vec<String> {
    let of_machine = |title: &&String| title.starts_with("update machines/") || title.ends_with("/scale");
    api.lock().changes.iter().filter(of_machine).cloned().collect()
}

fn is_group_expected(api: &ScriptedApi) -> bool {
    let server = api.lock();
    let annotations = &server.store.all("machinedeployments")[0]["metadata"]["annotations"];
    !annotations["capacity.cluster-autoscaler.kubernetes.io/cpu"].is_null()
}

async fn group(autoscaler: &Autoscaler) -> NodeGroup {
    autoscaler.node_group().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_first_node_is_what_was_expected_of_none() {
    let (api, performer) = scaled(0, 0, 2);
    let autoscaler = Autoscaler::start(api.client()).await;
    assert!(autoscaler.node_group().await.is_none(), "nothing is known of the hosts yet");
    until(&api, &performer, || is_group_expected(&api)).await;
    let empty = group(&autoscaler).await;
    assert_eq!((empty.target(), empty.min, empty.max), (0, 0, 2));
    let labels = [("group", "a"), ("kubernetes.io/arch", "amd64")];
    let template = TemplateNode {
        // What the kubelet leaves of 4 processors and 8 GiB.
        cpu: "3880m".to_owned(),
        memory: (7353_i64 << 20).to_string(),
        pods: "110".to_owned(),
        labels: labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into(),
        taints: String::new(),
    };
    assert_eq!(empty.template(), Some(template));

    autoscaler.increase(&empty, 1).await.unwrap();
    assert_eq!(scaling(&api), ["patch machinedeployments/kube-system/nodes/scale"]);
    until(&api, &performer, || phases(&api) == ["Running"]).await;
    until(&api, &performer, || {
        api.lock().store.all("machinedeployments")[0]["status"]["availableReplicas"] == json!(1)
    })
    .await;
    let one = group(&autoscaler).await;
    let scale = autoscaler.scale(&one).await;
    assert_eq!(scale["status"], json!({ "replicas": 1, "selector": "group=a" }));
    let seen = autoscaler.look().await;
    let node = &seen.nodes[0];
    assert_eq!(seen.instances(&one), [(text(&node["spec"]["providerID"]).to_owned(), "running")]);
    assert_eq!(seen.node_group_of(node).unwrap().id(), one.id());
    assert_eq!(node["metadata"]["labels"]["group"], json!("a"));
    assert_eq!(seen.sets.len(), 1);
    assert!(!seen.sets[0].to_string().contains("capacity"), "{}", seen.sets[0]);
    assert!(autoscaler.increase(&one, 2).await.is_err(), "it has an upper bound");

    // The last node goes, and the group is still one that can grow.
    autoscaler.delete_node(&one, node).await.unwrap();
    until(&api, &performer, || phases(&api).is_empty()).await;
    assert_eq!(group(&autoscaler).await.template(), empty.template());
}

#[tokio::test(start_paused = true)]
async fn of_two_nodes_exactly_the_marked_one_goes() {
    for which in [0, 1] {
        let (api, performer) = scaled(2, 1, 2);
        until(&api, &performer, || phases(&api) == ["Running"; 2]).await;
        let autoscaler = Autoscaler::start(api.client()).await;
        let (group, seen) = (group(&autoscaler).await, autoscaler.look().await);
        let mut machines = names(&api, "machines");
        let of = |node: &&Value| seen.machine_of(node).unwrap()["metadata"]["name"] == json!(machines[which]);
        let node = seen.nodes.iter().find(of).unwrap();
        autoscaler.delete_node(&group, node).await.unwrap();
        let gone = machines.remove(which);
        let expected = [
            format!("update machines/kube-system/{gone}"),
            "patch machinedeployments/kube-system/nodes/scale".to_owned(),
        ];
        assert_eq!(scaling(&api), expected);
        let host = text(&node["metadata"]["name"]);
        until(&api, &performer, || states(&api)[host] == "Available").await;
        assert_eq!((names(&api, "machines"), phases(&api)), (machines, vec!["Running".to_owned()]));
        assert!(!names(&api, "nodes").iter().any(|name| name == host));

        // At its lower bound it keeps what it has.
        let left = autoscaler.look().await.nodes.remove(0);
        assert!(autoscaler.delete_node(&group, &left).await.is_err());
        assert_eq!(scaling(&api).len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_waits_for_a_host_is_given_up_before_any_node() {
    let (api, performer) = scaled(3, 0, 3);
    let settled = || {
        let mut all = phases(&api);
        all.sort();
        all == ["Pending", "Running", "Running"]
    };
    until(&api, &performer, settled).await;
    let autoscaler = Autoscaler::start(api.client()).await;
    let group = group(&autoscaler).await;
    let states = |seen: &client::Informers| {
        let mut states: Vec<&str> = seen.instances(&group).into_iter().map(|(_, state)| state).collect();
        states.sort_unstable();
        states
    };
    assert_eq!(states(&autoscaler.look().await), ["pending", "running", "running"]);
    autoscaler.decrease(&group, -1).await.unwrap();
    until(&api, &performer, || phases(&api) == ["Running"; 2]).await;
    assert_eq!(states(&autoscaler.look().await), ["running", "running"]);
    assert!(autoscaler.decrease(&group, -1).await.is_err(), "it never gives up nodes");
}
