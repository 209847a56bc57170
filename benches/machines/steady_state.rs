//! 1,000 Machines in 20 MachineDeployments at rest, while their kubelets report as often as kubelets do.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, Patch, PatchParams};
use metalform::cli::clock;
use serde_json::json;

use super::Findings;
use super::api_requests::ApiRequests;
use super::bound::Bound;
use super::cluster::{Cluster, SHORT, at_rest, run_controllers};
use super::process::{STEADY, SteadyFigures, measured};

const DEPLOYMENTS: usize = 20;
const EACH: usize = 50;
/// Kubelets report a status that has not changed once in 5 minutes (`nodeStatusReportFrequency`).
const REPORT: Duration = Duration::from_secs(300);
/// MB.
const MEMORY: f64 = 100.0;
/// Percent of a core.
const PROCESSOR: f64 = 1.0;

pub async fn measure() -> Findings {
    let cluster = Cluster::start().await;
    cluster.add_hosts(0, DEPLOYMENTS * EACH).await;
    for number in 0..DEPLOYMENTS {
        cluster.add_deployment(&format!("group-{number:02}"), EACH, 1).await;
    }
    let (client, requests) = ApiRequests::counted(&cluster.controller().await);
    let hosts = cluster.hosts(&cluster.admin, SHORT, SHORT);
    let ready = async {
        cluster.complete().await;
        at_rest(&requests).await;
    };
    run_controllers(&client, hosts, EACH, ready).await;
    let kubeconfig = cluster.server.kubeconfig("metalform:machine-controller", None);
    let figures: SteadyFigures = tokio::select! {
        figures = measured(STEADY, &kubeconfig) => figures,
        () = kubelets(&cluster) => panic!("the kubelets ended"),
    };
    findings(&figures)
}

/// Reports of all kubelets, evenly.
async fn kubelets(cluster: &Cluster) {
    let nodes: Api<Node> = Api::all(cluster.admin.clone());
    let count = u32::try_from(DEPLOYMENTS * EACH).unwrap();
    let mut beat = tokio::time::interval(REPORT / count);
    for number in (0..count).cycle() {
        beat.tick().await;
        let condition =
            json!({ "type": "Ready", "lastHeartbeatTime": clock::now().strftime("%FT%TZ").to_string() });
        let report = json!({ "status": { "conditions": [condition] } });
        let patch = Patch::Strategic(&report);
        nodes.patch_status(&format!("host-{number:05}"), &PatchParams::default(), &patch).await.unwrap();
    }
}

fn findings(figures: &SteadyFigures) -> Findings {
    let SteadyFigures { resident_mb, peak_mb, processor, writes, requests } = figures;
    let text = format!(
        "resident {resident_mb:.0} MB (at most {peak_mb:.0} MB since its start), {processor:.2} % of a core, {writes} writes, \
         {requests} requests in all\n"
    );
    let bound = |about, limit: String, measured: String, met| Bound { about, limit, measured, met };
    let bounds = vec![
        bound(
            "memory of the controllers with 1,000 Machines at rest",
            format!("{MEMORY:.0} MB"),
            format!("{resident_mb:.0} MB"),
            *resident_mb < MEMORY,
        ),
        bound(
            "processor time of the controllers with 1,000 Machines at rest, over 60 s",
            format!("{PROCESSOR:.0} % of a core"),
            format!("{processor:.2} %"),
            *processor < PROCESSOR,
        ),
        bound(
            "writes of the controllers with 1,000 Machines at rest, in 60 s",
            "0".to_owned(),
            writes.to_string(),
            *writes == 0,
        ),
    ];
    Findings { text, bounds }
}
