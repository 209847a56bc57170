//! A cluster to measure: an API server of its own, hosts, and MachineDeployments.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt, stream};
use kube::Client;
use kube::api::{Api, Patch, PatchParams, PostParams};
use metalform::cli::clock;
use metalform::controller::controller_metrics::ControllerMetrics;
use metalform::controller::machine_controller::{ControllerSettings, control};
use metalform::machine::api::host::HostObject;
use metalform::machine::api::host_state::HostState;
use metalform::machine::api::machine_deployment::MachineDeployment;
use serde_json::json;
use tokio::time::sleep;

use super::api_requests::ApiRequests;
use super::api_server::ApiServer;
use super::hosts::SimulatedHosts;

pub const NAMESPACE: &str = "kube-system";
/// Requests at the same time while objects are created.
const AT_ONCE: usize = 32;
/// Of a job whose time does not matter.
pub const SHORT: Duration = Duration::from_millis(100);
/// The longest wait for anything.
const LIMIT: Duration = Duration::from_secs(900);
/// Between two looks at whether something holds.
const PAUSE: Duration = Duration::from_millis(200);
/// Without a write for so long, the controllers are at rest.
const REST: Duration = Duration::from_secs(3);

pub struct Cluster {
    pub server: ApiServer,
    pub admin: Client,
}

impl Cluster {
    pub async fn start() -> Self {
        let server = ApiServer::start().await.unwrap();
        server.install().await.unwrap();
        let admin = server.admin().await;
        Self { server, admin }
    }

    /// As the controllers are identified.
    pub async fn controller(&self) -> Client {
        self.server.client("metalform:machine-controller", None).await
    }

    /// Hosts `host-<from>` to `host-<to - 1>` that are free: the first one is made so by the controllers, the others are
    /// created with its status.
    pub async fn add_hosts(&self, from: usize, to: usize) {
        let hosts: Api<HostObject> = Api::all(self.admin.clone());
        let first = "host-00000";
        if from == 0 {
            hosts.create(&PostParams::default(), &host(0, &[])).await.unwrap();
            let simulated = self.hosts(&self.admin, SHORT, SHORT);
            let is_free = async || {
                let status = hosts.get(first).await.unwrap().status.unwrap_or_default();
                status.state == HostState::Available
            };
            run_controllers(&self.controller().await, simulated, 1, until(is_free)).await;
        }
        let example = hosts.get(first).await.unwrap();
        let finalizers = example.metadata.finalizers.clone().unwrap_or_default();
        let status = json!({ "status": example.status });
        let created = stream::iter(from.max(1)..to).map(|number| {
            let (hosts, status, object) = (hosts.clone(), status.clone(), host(number, &finalizers));
            async move {
                let name = object.metadata.name.clone().unwrap();
                hosts.create(&PostParams::default(), &object).await?;
                hosts.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status)).await
            }
        });
        created.buffer_unordered(AT_ONCE).try_for_each(|_| async { Ok(()) }).await.unwrap();
    }

    pub async fn add_deployment(&self, name: &str, replicas: usize, surge: usize) {
        let object: MachineDeployment = serde_json::from_value(json!({
            "apiVersion": "cluster.k8s.io/v1alpha1", "kind": "MachineDeployment",
            "metadata": { "name": name },
            "spec": {
                "replicas": replicas,
                "strategy": { "rollingUpdate": { "maxSurge": surge, "maxUnavailable": 0 } },
                "selector": { "matchLabels": { "group": name } },
                "template": {
                    "metadata": { "labels": { "group": name } },
                    "spec": {
                        "versions": { "kubelet": "1.35.4" },
                        "providerSpec": { "value": { "cloudProvider": "metalform", "operatingSystem": "debian" } },
                    },
                },
            },
        }))
        .unwrap();
        self.deployments().create(&PostParams::default(), &object).await.unwrap();
    }

    pub fn deployments(&self) -> Api<MachineDeployment> {
        Api::namespaced(self.admin.clone(), NAMESPACE)
    }

    /// Until every MachineDeployment has all of its Machines available, and no others.
    pub async fn complete(&self) {
        let deployments = self.deployments();
        until(async || {
            let all = deployments.list(&Default::default()).await.unwrap();
            all.items.iter().all(|one| {
                let (wanted, generation) = (one.spec.replicas, one.metadata.generation);
                one.status.as_ref().is_some_and(|status| {
                    Some(status.observed_generation) == generation
                        && [status.replicas, status.updated_replicas, status.available_replicas]
                            == [wanted; 3]
                })
            })
        })
        .await;
    }

    /// Hosts whose kubelets write with a client of their own.
    pub fn hosts(&self, kubelets: &Client, deployment: Duration, other: Duration) -> Arc<SimulatedHosts> {
        Arc::new(SimulatedHosts {
            kubelets: kubelets.clone(),
            deployment,
            other,
            deployments: Mutex::default(),
        })
    }
}

/// What `work` results in, while the controllers run.
pub async fn run_controllers<T>(
    client: &Client,
    hosts: Arc<SimulatedHosts>,
    provisionings: usize,
    work: impl Future<Output = T>,
) -> T {
    let provisionings = NonZeroUsize::new(provisionings).unwrap();
    let bundles = vec!["1.35.4".to_owned()];
    let settings = ControllerSettings { provisionings, max_pods: 110, bundles };
    let metrics = Arc::new(ControllerMetrics::new(clock::now));
    tokio::select! {
        () = control(client.clone(), hosts, settings, metrics, clock::now) => panic!("the controllers ended"),
        result = work => result,
    }
}

/// Until it holds.
pub async fn until(holds: impl AsyncFn() -> bool) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < LIMIT, "it does not hold after {LIMIT:?}");
        sleep(PAUSE).await;
    }
}

/// Until nothing was written for some seconds.
pub async fn at_rest(requests: &ApiRequests) {
    let (mut writes, mut since) = (requests.writes(), Instant::now());
    let began = Instant::now();
    while since.elapsed() < REST {
        assert!(began.elapsed() < LIMIT, "the controllers do not rest: {:?}", requests.counts());
        sleep(PAUSE).await;
        if requests.writes() != writes {
            (writes, since) = (requests.writes(), Instant::now());
        }
    }
}

fn host(number: usize, finalizers: &[String]) -> HostObject {
    let address = format!("10.{}.{}.{}", 1 + number / 65_536, number / 256 % 256, number % 256);
    serde_json::from_value(json!({
        "apiVersion": "metalform.dev/v1alpha1", "kind": "Host",
        "metadata": { "name": format!("host-{number:05}"), "finalizers": finalizers },
        "spec": { "address": address, "failureDomain": format!("rack-{}", number % 20) },
    }))
    .unwrap()
}
