//! Simulated hosts: jobs take a time and succeed; a deployed host has a Node that is Ready, as its kubelet would report it.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use metalform::controller::job_performer::{JobContext, JobPerformer};
use metalform::machine::api::host::HostObject;
use metalform::machine::api::host_facts::HostFacts;
use metalform::machine::host_job::HostJob;
use metalform::machine::job_order::JobOrder;
use metalform::machine::job_outcome::{HostFindings, HostPresence, JobError};
use metalform::machine::pool_node;
use metalform::model::facts::Facts;
use serde_json::json;

/// Phases of `deploy-node` of a node that is no master.
const PHASES: [&str; 7] = [
    "Reachable",
    "Preflight",
    "Roles withdrawn",
    "Base system",
    "Node joined",
    "API server proxies",
    "End state",
];

pub struct SimulatedHosts {
    /// The kubelets'.
    pub kubelets: Client,
    pub deployment: Duration,
    /// Of any other job.
    pub other: Duration,
    /// When each deployment began and ended.
    pub deployments: Mutex<Vec<(Instant, Instant)>>,
}

#[async_trait]
impl JobPerformer for SimulatedHosts {
    async fn perform(&self, order: &JobOrder, context: &JobContext<'_>) -> Result<HostFindings, JobError> {
        if order.job == HostJob::Deploy {
            let began = Instant::now();
            for phase in PHASES {
                (context.phase)(phase);
                tokio::time::sleep(self.deployment / u32::try_from(PHASES.len()).unwrap()).await;
            }
            self.register(order).await;
            self.deployments.lock().unwrap().push((began, Instant::now()));
        } else {
            (context.phase)("Reachable");
            tokio::time::sleep(self.other).await;
        }
        let facts = matches!(order.job, HostJob::Inspect | HostJob::Check);
        Ok(HostFindings { facts: facts.then(facts_of_all), ..HostFindings::default() })
    }

    async fn probe(&self, _: &HostObject) -> HostPresence {
        HostPresence::Answers
    }
}

fn facts_of_all() -> HostFacts {
    HostFacts::from(&Facts::examples()[0])
}

impl SimulatedHosts {
    /// The Node is created by the deployment, and its status by the kubelet.
    async fn register(&self, order: &JobOrder) {
        let nodes: Api<Node> = Api::all(self.kubelets.clone());
        let node = order.node.as_ref().unwrap();
        let object = pool_node::object(&order.fence.host, &order.host.spec, node);
        nodes.create(&PostParams::default(), &object).await.unwrap();
        let status = json!({ "status": {
            "conditions": [
                { "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status" },
                { "type": "NetworkUnavailable", "status": "False", "reason": "RouteCreated", "message": "" },
            ],
            "addresses": [{ "type": "InternalIP", "address": order.host.spec.address }],
            "nodeInfo": {
                "kubeletVersion": format!("v{}", node.kubelet), "architecture": "amd64", "bootID": "b",
                "containerRuntimeVersion": "containerd://2.2.0", "kernelVersion": "6.12", "kubeProxyVersion": "",
                "machineID": "m", "operatingSystem": "linux", "osImage": "Debian GNU/Linux 13", "systemUUID": "s",
            },
        } });
        let patch = Patch::Strategic(&status);
        nodes.patch_status(order.fence.host.as_str(), &PatchParams::default(), &patch).await.unwrap();
    }
}
