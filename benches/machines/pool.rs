//! 500 to 5,000 hosts: the start of the controllers, the choice of a host, and how both grow.

use std::fmt::Write as _;

use kube::api::{Api, PostParams};
use metalform::machine::api::machine::Machine;
use metalform::model::api_contract::{HOST_RELEASED_FINALIZER, NODE_DELETED_FINALIZER};
use serde_json::json;

use super::Findings;
use super::bound::Bound;
use super::cluster::{Cluster, NAMESPACE};
use super::process::{POOL, PoolFigures, measured};

const SIZES: [usize; 3] = [500, 2_750, 5_000];
/// ms.
const DECISION: f64 = 10.0;
/// Seconds.
const START: f64 = 5.0;
/// How much more than linear passes for linear: other work on the machine, and processor caches that overflow.
const TOLERANCE: f64 = 1.25;

pub async fn measure() -> Findings {
    let cluster = Cluster::start().await;
    let machines: Api<Machine> = Api::namespaced(cluster.admin.clone(), NAMESPACE);
    let kubeconfig = cluster.server.kubeconfig("metalform:machine-controller", None);
    let (mut figures, mut present) = (Vec::<PoolFigures>::new(), 0);
    for size in SIZES {
        cluster.add_hosts(present, size).await;
        if present == 0 {
            machines.create(&PostParams::default(), &waiting()).await.unwrap();
        }
        present = size;
        figures.push(measured(POOL, &kubeconfig).await);
    }
    findings(&figures)
}

/// A Machine that waits: no controllers run.
fn waiting() -> Machine {
    serde_json::from_value(json!({
        "apiVersion": "cluster.k8s.io/v1alpha1", "kind": "Machine",
        "metadata": { "name": "waits", "finalizers": [HOST_RELEASED_FINALIZER, NODE_DELETED_FINALIZER] },
        "spec": {
            "versions": { "kubelet": "1.35.4" },
            "providerSpec": { "value": { "cloudProvider": "metalform", "operatingSystem": "debian" } },
        },
    }))
    .unwrap()
}

fn findings(figures: &[PoolFigures]) -> Findings {
    let mut text =
        "| hosts | start, s | resident, MB | decision, ms of a processor (median) | longest |\n| --- | --- | --- | --- | --- |\n"
            .to_owned();
    for (size, one) in SIZES.iter().zip(figures) {
        let PoolFigures { start_seconds, resident_mb, decision_ms, longest_ms } = one;
        writeln!(
            text,
            "| {size} | {start_seconds:.2} | {resident_mb:.1} | {decision_ms:.2} | {longest_ms:.2} |"
        )
        .unwrap();
    }
    let [few, some, many] = figures else { panic!("{figures:?}") };
    // Of what a host more takes, between many and between few of them.
    let growth = |of: fn(&PoolFigures) -> f64| (of(many) - of(some)) / (of(some) - of(few));
    let (decision, memory) = (growth(|one| one.decision_ms), growth(|one| one.resident_mb));
    let bound = |about, limit: String, measured: String, met| Bound { about, limit, measured, met };
    let linear = || format!("{TOLERANCE:.2} times");
    let bounds = vec![
        bound(
            "the decision which of 5,000 hosts a Machine claims, processor time (median)",
            format!("{DECISION:.0} ms"),
            format!("{:.2} ms", many.decision_ms),
            many.decision_ms < DECISION,
        ),
        bound(
            "start to filled caches with 5,000 hosts",
            format!("{START:.0} s"),
            format!("{:.2} s", many.start_seconds),
            many.start_seconds < START,
        ),
        bound(
            "time of a decision for one host more, of 2,750 to 5,000 over that of 500 to 2,750",
            linear(),
            format!("{decision:.2} times"),
            decision <= TOLERANCE,
        ),
        bound(
            "memory for one host more, of 2,750 to 5,000 over that of 500 to 2,750",
            linear(),
            format!("{memory:.2} times"),
            memory <= TOLERANCE,
        ),
    ];
    Findings { text, bounds }
}
