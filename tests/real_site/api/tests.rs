//! The scripted API by the functions of `metalform::kube_api`, which know only a real one.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, PostParams};
use metalform::kube_api::client::ApiError;
use metalform::kube_api::lease::{HeldLease, LeaseAttempt, LeaseError, LeaseSubject};
use metalform::kube_api::manifests::{self, ApplyOutcome, Comparison};
use metalform::kube_api::nodes::{self, Annotations, Capacity};
use metalform::kube_api::{pods, tokens};
use metalform::model::name::HostName;
use serde_json::json;

use super::rules::Fate;
use super::*;
use crate::host::ScriptedHost;

fn n1() -> HostName {
    "n1".parse().unwrap()
}

fn api_with_node() -> ScriptedApi {
    let api = ScriptedApi::with(Box::new(|store| {
        cluster::allocate_pod_networks(store);
        Ok(())
    }));
    api.lock().store.insert("nodes", "", json!({ "metadata": { "name": "n1", "labels": { "a": "b" } } }));
    api
}

fn annotations(value: Option<&str>) -> Annotations {
    BTreeMap::from([("metalform.dev/x".to_owned(), value.map(str::to_owned))])
}

#[tokio::test]
async fn a_node_is_marked_once_and_keeps_what_others_wrote() {
    let api = api_with_node();
    let client = api.client();
    assert!(nodes::annotate(&client, &n1(), &annotations(Some("1"))).await.unwrap());
    assert!(!nodes::annotate(&client, &n1(), &annotations(Some("1"))).await.unwrap());
    let node = nodes::get(&client, &n1()).await.unwrap().unwrap();
    assert_eq!(node.metadata.labels.unwrap()["a"], "b");
    assert_eq!(node.spec.unwrap().pod_cidr.as_deref(), Some("10.233.0.0/24"));
    assert!(nodes::annotate(&client, &n1(), &annotations(None)).await.unwrap());
    assert_eq!(nodes::list(&client).await.unwrap().len(), 1);
    assert_eq!(nodes::get(&client, &"n2".parse().unwrap()).await.unwrap(), None);
}

#[tokio::test]
async fn a_conflict_is_read_again_and_a_lasting_one_is_an_error() {
    let api = api_with_node();
    let client = api.client();
    api.lock().rules.add("patch nodes/n1", Fate::Status(409), Some(2));
    assert!(nodes::annotate(&client, &n1(), &annotations(Some("1"))).await.unwrap());
    api.lock().rules.add("patch nodes/n1", Fate::Status(409), None);
    let error = nodes::annotate(&client, &n1(), &annotations(Some("2"))).await.unwrap_err();
    assert!(matches!(error, ApiError::Conflict { .. }), "{error}");
}

#[tokio::test]
async fn capacity_goes_through_the_status_and_is_set_once() {
    let api = api_with_node();
    let client = api.client();
    let capacity = Capacity { cpus: 4, memory: 1 << 30, storage: 1 << 40, pods: 110 };
    nodes::set_capacity(&client, &n1(), capacity).await.unwrap();
    nodes::set_capacity(&client, &n1(), Capacity { cpus: 8, ..capacity }).await.unwrap();
    let node = nodes::get(&client, &n1()).await.unwrap().unwrap();
    assert_eq!(node.status.unwrap().capacity.unwrap()["cpu"].0, "4");
    assert_eq!(node.metadata.labels.unwrap()["a"], "b", "the metadata stay");
    assert_eq!(api.lock().changes, ["patch nodes/n1/status"]);
}

#[tokio::test]
async fn tokens_are_listed_by_their_node_and_deleted() {
    let api = ScriptedApi::new();
    let client = api.client();
    let token = tokens::BootstrapToken::from_random(std::array::from_fn(|n| n as u8));
    tokens::create(&client, &token, &n1(), Timestamp::UNIX_EPOCH).await.unwrap();
    let again = tokens::create(&client, &token, &n1(), Timestamp::UNIX_EPOCH).await.unwrap_err();
    assert!(matches!(again, tokens::TokenError::Api(ApiError::Conflict { .. })), "{again}");
    assert_eq!(tokens::ids(&client, &n1()).await.unwrap(), [token.id()]);
    assert!(tokens::ids(&client, &"n2".parse().unwrap()).await.unwrap().is_empty());
    tokens::delete(&client, token.id()).await.unwrap();
    tokens::delete(&client, token.id()).await.unwrap();
    assert!(tokens::ids(&client, &n1()).await.unwrap().is_empty());
}

#[tokio::test]
async fn objects_are_created_changed_and_unchanged() {
    let api = ScriptedApi::new();
    let client = api.client();
    let text = |value: &str, more: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: kube-system}}\ndata: {{x: {value}{more}}}\n---\n\
             apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: r}}\nrules: [{{verbs: [get]}}]\n"
        )
    };
    let outcomes = async |text: &str| {
        let objects = manifests::parse(text).unwrap();
        let differing = manifests::compare(&client, &objects).await.unwrap().differing;
        let applied = manifests::apply(&client, &objects).await.unwrap();
        assert_eq!(manifests::compare(&client, &objects).await.unwrap(), Comparison::default());
        (differing.len(), applied.into_iter().map(|one| one.outcome).collect::<Vec<_>>())
    };
    assert_eq!(
        outcomes(&text("1", ", y: '2'")).await,
        (2, vec![ApplyOutcome::Created, ApplyOutcome::Created])
    );
    assert_eq!(
        outcomes(&text("1", ", y: '2'")).await,
        (0, vec![ApplyOutcome::Unchanged, ApplyOutcome::Unchanged])
    );
    assert_eq!(outcomes(&text("one", "")).await, (1, vec![ApplyOutcome::Changed, ApplyOutcome::Unchanged]));
    let map = api.lock().store.in_namespace("configmaps", "kube-system", "a").cloned().unwrap();
    assert_eq!(map["data"], json!({ "x": "one" }), "what is no longer applied goes");
    assert!(api.lock().changes.iter().all(|change| change.starts_with("patch ")));
}

#[tokio::test]
async fn what_another_client_edited_stays_where_the_manifest_keeps_edits() {
    let api = ScriptedApi::new();
    let client = api.client();
    let text = |annotations: &str, corefile: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: coredns, namespace: kube-system{annotations}}}\ndata: {{Corefile: {corefile}}}\n"
        )
    };
    let corefile = || {
        let api = api.lock();
        api.store.in_namespace("configmaps", "kube-system", "coredns").unwrap()["data"]["Corefile"].clone()
    };
    let outcome = async |text: &str| {
        let objects = manifests::parse(text).unwrap();
        let compared = manifests::compare(&client, &objects).await.unwrap();
        let applied = manifests::apply(&client, &objects).await.unwrap();
        (compared.differing.len(), compared.kept.len(), applied[0].outcome)
    };
    let keep = ", annotations: {metalform.dev/edits: keep}";
    assert_eq!(outcome(&text(keep, "ours")).await, (1, 0, ApplyOutcome::Created));
    // Without an edit metalform changes it.
    assert_eq!(outcome(&text(keep, "newer")).await, (1, 0, ApplyOutcome::Changed));
    let edit = |object: &mut Value| object["data"]["Corefile"] = json!("edited");
    api.lock().store.change("configmaps", "kube-system", "coredns", edit);
    assert_eq!(outcome(&text(keep, "newer")).await, (0, 1, ApplyOutcome::Kept));
    assert_eq!(outcome(&text(keep, "newest")).await, (0, 1, ApplyOutcome::Kept));
    assert_eq!(corefile(), "edited");
    // Any other object is metalform's, edited or not.
    assert_eq!(outcome(&text("", "newest")).await, (1, 0, ApplyOutcome::Changed));
    assert_eq!(corefile(), "newest");
}

#[tokio::test(start_paused = true)]
async fn a_lease_has_one_holder_and_passes_on() {
    let api = ScriptedApi::new();
    let client = api.client();
    let clock = || Timestamp::from_second(1_800_000_000).unwrap();
    let take =
        async |me| HeldLease::try_acquire(&client, LeaseSubject::EtcdMembership, me, clock).await.unwrap();
    let LeaseAttempt::Held(mut first) = take("a/1").await else { panic!("the lease is free") };
    let LeaseAttempt::HeldBy(holder) = take("b/2").await else { panic!("the lease has two holders") };
    assert_eq!(holder.name, "a/1");
    first.release().await.unwrap();
    let LeaseAttempt::Held(second) = take("b/2").await else { panic!("the lease was released") };
    let held = second.run(tokio::time::sleep(Duration::from_secs(120))).await;
    assert!(held.is_ok(), "it is renewed while its work lasts");
    api.lock().rules.away_for(Duration::from_secs(60));
    let lost = second.run(std::future::pending::<()>()).await.unwrap_err();
    assert!(matches!(lost, LeaseError::Expired { .. }), "{lost}");
}

#[tokio::test(start_paused = true)]
async fn what_a_script_lets_go_wrong_has_its_error() {
    let api = api_with_node();
    let client = api.client();
    let error = async |fate| {
        api.lock().rules.clear();
        api.lock().rules.add("get nodes/n1", fate, Some(1));
        let name = n1();
        let asked = nodes::get(&client, &name);
        match tokio::time::timeout(Duration::from_secs(30), asked).await {
            Err(_) => "no answer".to_owned(),
            Ok(answer) => answer.map_or_else(|error| error.to_string(), |_| "an answer".to_owned()),
        }
    };
    let mut lines = Vec::new();
    for fate in [
        Fate::Refused,
        Fate::AnswerLost,
        Fate::Silent,
        Fate::Slow(Duration::from_secs(20)),
        Fate::Slow(Duration::from_secs(40)),
        Fate::Status(403),
        Fate::Status(500),
    ] {
        lines.push(format!("{fate:?}: {}", error(fate.clone()).await));
    }
    insta::assert_snapshot!(lines.join("\n"), @"
    Refused: cannot get node/n1: the API server does not answer: ServiceError: tcp connect error: Connection refused (os error 111)
    AnswerLost: cannot get node/n1: the API server does not answer: ServiceError: connection closed before message completed
    Silent: no answer
    Slow(20s): an answer
    Slow(40s): no answer
    Status(403): cannot get node/n1: forbidden: forbidden: cannot get nodes/n1
    Status(500): cannot get node/n1: the API server is not ready: etcdserver: request timed out
    ");
    api.lock().rules.away_for(Duration::from_secs(5));
    assert!(nodes::get(&client, &n1()).await.is_err());
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert!(nodes::get(&client, &n1()).await.is_ok());
}

#[tokio::test]
async fn definitions_of_another_product_are_refused_before_anything_is_applied() {
    let api = ScriptedApi::new();
    let client = api.client();
    let template = include_str!("../../../templates/cluster/machines.yaml.j2");
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a, namespace: kube-system}}\n---\n{template}"
    );
    let objects = manifests::parse(&text).unwrap();
    let other =
        |name: &str, labels: serde_json::Value| json!({ "metadata": { "name": name, "labels": labels } });
    let kind = "customresourcedefinitions";
    for (name, labels) in [
        ("machines.cluster.k8s.io", json!({})),
        ("hosts.metalform.dev", json!({ "app.kubernetes.io/managed-by": "kubeone" })),
    ] {
        api.lock().store.insert(kind, "", other(name, labels));
    }
    // The same group is no conflict by itself.
    api.lock().store.insert(kind, "", other("machineclasses.cluster.k8s.io", json!({})));
    let compared = manifests::compare(&client, &objects).await.unwrap_err().to_string();
    let applied = manifests::apply(&client, &objects).await.unwrap_err().to_string();
    assert_eq!(compared, applied);
    for part in [
        "CustomResourceDefinition machines.cluster.k8s.io is not metalform's (no label",
        "kubectl delete crd hosts.metalform.dev",
        "(app.kubernetes.io/managed-by: kubeone)",
    ] {
        assert!(applied.contains(part), "{applied}");
    }
    assert_eq!(api.lock().changes, Vec::<String>::new(), "a dry run is no change, and there was none either");
    for name in ["machines.cluster.k8s.io", "hosts.metalform.dev"] {
        let own = json!({ "app.kubernetes.io/managed-by": "metalform" });
        api.lock().store.change(kind, "", name, |definition| definition["metadata"]["labels"] = own);
    }
    let applied = manifests::apply(&client, &objects).await.unwrap();
    assert_eq!(applied.len(), 5);
    assert_eq!(manifests::compare(&client, &objects).await.unwrap(), Comparison::default());
}

#[tokio::test]
async fn a_kubelet_joins_by_its_token_and_reports_its_static_pods() {
    let facts = metalform::model::facts::Facts::examples()[0].clone();
    let host = Arc::new(Mutex::new(ScriptedHost::new(facts.clone())));
    let of_kubelet = host.clone();
    let api = ScriptedApi::with(Box::new(move |store| {
        cluster::run_kubelet(store, "n1", &mut of_kubelet.lock().unwrap(), "192.0.2.11");
        Ok(())
    }));
    let client = api.client();
    let created = Api::<Node>::all(client.clone())
        .create(
            &PostParams::default(),
            &serde_json::from_value(json!({ "metadata": { "name": "n1" } })).unwrap(),
        )
        .await;
    created.unwrap();
    let token = tokens::BootstrapToken::from_random([7; 22]);
    {
        let mut host = host.lock().unwrap();
        let access = crate::host::tree::of_root(0o600);
        for (path, text) in [
            ("/etc/kubernetes/pki/ca.crt", "CA".to_owned()),
            ("/etc/kubernetes/bootstrap-kubelet.conf", format!("token: \"{}\"\n", token.bearer())),
            ("/etc/systemd/system/kubelet.service", "[Service]\n".to_owned()),
            ("/etc/kubernetes/manifests/etcd.yaml", "kind: Pod\n".to_owned()),
            ("/etc/cni/net.d/10-metalform.conflist", "{}".to_owned()),
        ] {
            host.tree.write(path, text.as_str().into(), access.clone(), 1);
        }
        let start = metalform::resource::contract::step::UnitVerb::Start;
        let ScriptedHost { units, tree, .. } = &mut *host;
        units.act("kubelet.service", start, tree, 1).unwrap();
    }
    let machine_id = async || {
        let node = nodes::get(&client, &n1()).await.unwrap().unwrap();
        node.status.and_then(|status| status.node_info).map(|info| info.machine_id)
    };
    assert_eq!(machine_id().await, None, "there is no such token yet");
    tokens::create(&client, &token, &n1(), Timestamp::UNIX_EPOCH).await.unwrap();
    assert_eq!(machine_id().await, Some(facts.machine_id));
    let expected = [pods::ExpectedPod::Static("etcd".to_owned())];
    let none = std::collections::BTreeMap::new();
    let missing =
        async || pods::missing(&pods::of_node(&client, &n1()).await.unwrap(), &n1(), &expected, &none);
    assert!(missing().await.is_empty());
    let crash = crate::host::Crash { status: 2, restarts: 3, last_line: "unknown flag".to_owned() };
    host.lock().unwrap().crashing.insert("etcd".to_owned(), crash);
    assert_eq!(missing().await, ["pod etcd-n1: container etcd CrashLoopBackOff"]);
    host.lock().unwrap().tree.remove("/etc/kubernetes/manifests/etcd.yaml");
    assert_eq!(missing().await, ["pod etcd-n1: not found"]);
    cluster::mark_silent_node(&mut api.lock().store, "n1");
    let node = api.lock().store.get("nodes", "n1").cloned().unwrap();
    assert_eq!(node["status"]["conditions"][0]["message"], "Kubelet stopped posting node status.");
}
