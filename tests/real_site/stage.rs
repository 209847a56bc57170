//! Scripted hosts, the scripted API and etcd together: what happens between them by itself while time passes. A static
//! pod runs because its manifest is on a host whose kubelet runs; the API answers because such a pod and etcd do.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

use crate::api::ScriptedApi;
use crate::api::cluster;
use crate::api::store::Store;
use crate::etcd::server::{MemberServer, SharedEtcd};
use crate::host::session::HostSession;
use crate::host::tree::of_root;
use crate::host::{Crash, ScriptedHost};
use crate::simulated_etcd::Etcd;

/// How long a static pod takes to start.
const START: Duration = Duration::from_millis(400);
const MANIFESTS: &str = "/etc/kubernetes/manifests";
const CERTIFICATE: &str = "/var/lib/kubelet/pki/kubelet-client-current.pem";
const PROXY: &str = "/etc/haproxy/haproxy.cfg";
/// Holds the id of the member whose data the directory has.
pub const MEMBER: &str = "/var/lib/etcd/member/wal/id";
/// In place of the id, in data of a new cluster.
pub const BEGUN: &str = "begun";
/// The static pod of etcd mounts it, and does not start without it.
const DIRECTORY: &str = "/var/lib/etcd/member";

/// A host of the cluster.
#[derive(Clone)]
pub struct Machine {
    pub session: HostSession,
    /// On the control plane.
    pub address: IpAddr,
    /// Whether etcd starts on it at all.
    pub etcd_works: bool,
    /// Whether it exits at once whenever it is started.
    pub etcd_crashes: bool,
    /// How many times as long everything takes that is applied to it.
    pub slowness: u32,
}

#[derive(Default)]
struct Machines {
    all: BTreeMap<String, Machine>,
    /// `node/pod` → since when its manifest is there as it is and its kubelet runs.
    since: BTreeMap<String, Instant>,
    /// `node/pod` → the manifest that its kubelet runs.
    manifests: BTreeMap<String, Option<String>>,
    /// A flag with which no API server starts.
    broken: Option<String>,
}

/// All of it.
#[derive(Clone)]
pub struct Stage {
    pub api: ScriptedApi,
    pub etcd: SharedEtcd,
    machines: Arc<Mutex<Machines>>,
}

impl Stage {
    pub fn new() -> Self {
        let etcd: SharedEtcd = Arc::new(Mutex::new(Etcd::default()));
        let machines: Arc<Mutex<Machines>> = Arc::default();
        let (passing, members) = (machines.clone(), etcd.clone());
        let api = ScriptedApi::with(Box::new(move |store| {
            passing.lock().unwrap().pass(store, &mut members.lock().unwrap())
        }));
        Self { api, etcd, machines }
    }

    pub fn add(&self, name: &str, host: ScriptedHost, address: IpAddr) -> HostSession {
        let session = HostSession::new(name, host);
        let machine =
            Machine { session: session.clone(), address, etcd_works: true, etcd_crashes: false, slowness: 1 };
        self.machines.lock().unwrap().all.insert(name.to_owned(), machine);
        session
    }

    pub fn machine(&self, name: &str, change: impl FnOnce(&mut Machine)) {
        if let Some(machine) = self.machines.lock().unwrap().all.get_mut(name) {
            change(machine);
        }
    }

    /// From now on no API server starts with this flag.
    pub fn break_api_servers(&self, flag: String) {
        self.machines.lock().unwrap().broken = Some(flag);
    }

    /// All hosts, by name.
    pub fn machines(&self) -> BTreeMap<String, Machine> {
        self.machines.lock().unwrap().all.clone()
    }

    pub fn session(&self, name: &str) -> Option<HostSession> {
        Some(self.machines.lock().unwrap().all.get(name)?.session.clone())
    }

    /// A client of the member that serves this URL: `https://192.0.2.11:2379`.
    ///
    /// # Errors
    /// When no member runs there.
    pub async fn etcd_client(&self, url: &str) -> Result<etcd_client::Client, etcd_client::Error> {
        // What was started since the last request runs by now.
        let _ = self.pass();
        MemberServer::new(&self.etcd, &url.replace(":2379", ":2380")).client().await
    }

    /// What happens by itself, up to now. An error is why no API server answers.
    pub fn pass(&self) -> Result<(), String> {
        let mut api = self.api.lock();
        self.machines.lock().unwrap().pass(&mut api.store, &mut self.etcd.lock().unwrap())
    }
}

impl Machines {
    fn pass(&mut self, store: &mut Store, etcd: &mut Etcd) -> Result<(), String> {
        let now = Instant::now();
        self.start_pods(now);
        self.run_etcd(etcd);
        etcd.copy(now);
        let serving: Vec<IpAddr> = self
            .all
            .values()
            .filter(|machine| serves(machine, etcd))
            .map(|machine| machine.address)
            .collect();
        if serving.is_empty() {
            return Err("connection refused".to_owned());
        }
        if self.all.values().any(|machine| is_ready(&machine.session.lock(), "kube-controller-manager")) {
            cluster::allocate_pod_networks(store);
            cluster::run_daemon_sets(store);
        }
        for (name, machine) in &self.all {
            let mut host = machine.session.lock();
            let proxy = host.tree.text(PROXY).unwrap_or_default();
            let reaches_the_api = serving.iter().any(|address| proxy.contains(&format!("{address}:6443")));
            // Its certificate is not there at once.
            let joins = host.tree.get(CERTIFICATE).is_none() && !store.all("secrets").is_empty();
            let key = format!("{name}/its certificate");
            if !joins {
                self.since.remove(&key);
            }
            let ready = !joins || now >= *self.since.entry(key).or_insert(now) + START;
            if host.runs("kubelet.service") && reaches_the_api && ready {
                cluster::run_kubelet(store, name, &mut host, &machine.address.to_string());
            } else {
                let runs = host.runs("kubelet.service");
                host.registered &= runs;
                cluster::mark_silent_node(store, name);
            }
        }
        Ok(())
    }

    /// Pods take their time. A kubelet ends a static pod whose manifest has changed, and starts it again.
    fn start_pods(&mut self, now: Instant) {
        for (name, machine) in &self.all {
            let mut host = machine.session.lock();
            let runs = host.runs("kubelet.service");
            host.starting.clear();
            for path in host.tree.glob(&format!("{MANIFESTS}/*.yaml")) {
                let pod = path[MANIFESTS.len() + 1..].trim_end_matches(".yaml").to_owned();
                let key = format!("{name}/{pod}");
                let manifest = host.tree.sha256(&path);
                if self.manifests.insert(key.clone(), manifest.clone()).is_some_and(|ran| ran != manifest) {
                    self.since.remove(&key);
                }
                let breaks = |flag: &String| host.tree.text(&path).is_some_and(|text| text.contains(flag));
                if pod == "kube-apiserver" && self.broken.as_ref().is_some_and(breaks) {
                    host.starting.insert(pod);
                } else if !runs || (pod == "etcd" && !host.tree.is_directory(DIRECTORY)) {
                    self.since.remove(&key);
                    host.starting.insert(pod);
                } else if now < *self.since.entry(key).or_insert(now) + START {
                    host.starting.insert(pod);
                }
            }
        }
    }

    fn run_etcd(&self, etcd: &mut Etcd) {
        for (name, machine) in &self.all {
            let url = format!("https://{}:2380", machine.address);
            let mut host = machine.session.lock();
            let running = etcd.members.iter().any(|member| member.peer_url == url && member.running);
            let begins = machine.etcd_works && is_ready(&host, "etcd");
            let wanted = begins && !machine.etcd_crashes;
            if begins && machine.etcd_crashes {
                let crash = Crash { status: 1, restarts: 2, last_line: "unknown flag: --bogus".to_owned() };
                host.crashing.insert("etcd".to_owned(), crash);
            }
            if running && !wanted {
                etcd.members.iter_mut().filter(|one| one.peer_url == url).for_each(|one| one.running = false);
            }
            if wanted && !running {
                let manifest = host.tree.text(&format!("{MANIFESTS}/etcd.yaml")).unwrap_or_default();
                let flag = |name: &str| {
                    let (_, rest) = manifest.split_once(&format!("--{name}="))?;
                    rest.split_whitespace().next().map(|value| value.trim_matches(['"', ',', ']']).to_owned())
                };
                let members = flag("initial-cluster").unwrap_or_default();
                let mut data = host.tree.text(MEMBER).and_then(|id| match id.as_str() {
                    BEGUN => Some(etcd.begin(name, &url)),
                    id => id.parse().ok(),
                });
                match etcd.start(name, &url, &members, &mut data) {
                    Ok(()) => drop(host.crashing.remove("etcd")),
                    Err(complaint) => {
                        let crash = Crash { status: 1, restarts: 1, last_line: complaint.to_owned() };
                        host.crashing.insert("etcd".to_owned(), crash);
                    }
                }
                if let Some(id) = data {
                    let clock = host.clock;
                    host.tree.write(MEMBER, id.to_string().as_str().into(), of_root(0o600), clock);
                }
            }
            if !machine.etcd_works {
                host.starting.insert("etcd".to_owned());
            }
        }
    }
}

fn is_ready(host: &MutexGuard<'_, ScriptedHost>, pod: &str) -> bool {
    host.on && host.tree.get(&format!("{MANIFESTS}/{pod}.yaml")).is_some() && !host.starting.contains(pod)
}

fn serves(machine: &Machine, etcd: &Etcd) -> bool {
    is_ready(&machine.session.lock(), "kube-apiserver") && etcd.has_quorum()
}

#[cfg(test)]
mod tests {
    use metalform::kube_api::nodes;
    use metalform::kube_api::pods::{ExpectedPod, missing, of_node};
    use metalform::model::facts::Facts;
    use metalform::resource::contract::step::UnitVerb;

    use super::*;

    fn master() -> ScriptedHost {
        let mut host = ScriptedHost::new(Facts::examples()[0].clone());
        let etcd = "- --initial-cluster=n1=https://192.0.2.11:2380\n";
        for (path, text) in [
            ("/etc/systemd/system/kubelet.service", "[Service]\n"),
            ("/etc/kubernetes/pki/ca.crt", "CA"),
            ("/etc/cni/net.d/10-metalform.conflist", "{}"),
            ("/etc/haproxy/haproxy.cfg", "server n1 192.0.2.11:6443 check\n"),
            ("/etc/kubernetes/manifests/etcd.yaml", etcd),
            (MEMBER, BEGUN),
            ("/etc/kubernetes/manifests/kube-apiserver.yaml", ""),
            ("/etc/kubernetes/manifests/kube-controller-manager.yaml", ""),
        ] {
            host.tree.write(path, text.into(), of_root(0o600), 1);
        }
        let certificate = crate::host::guards::kubelet_certificate("CA");
        let path = "/var/lib/kubelet/pki/kubelet-client-current.pem";
        host.tree.write(path, certificate.as_str().into(), of_root(0o600), 1);
        let ScriptedHost { units, tree, .. } = &mut host;
        for verb in [UnitVerb::Enable, UnitVerb::Start] {
            units.act("kubelet.service", verb, tree, 1).unwrap();
        }
        host
    }

    #[tokio::test(start_paused = true)]
    async fn a_control_plane_runs_because_its_manifests_are_there() {
        let stage = Stage::new();
        let host = stage.add("n1", master(), "192.0.2.11".parse().unwrap());
        let client = stage.api.client();
        let name = "n1".parse().unwrap();
        assert!(nodes::get(&client, &name).await.is_err(), "nothing has started yet");
        assert!(stage.etcd_client("https://192.0.2.11:2379").await.is_err());
        tokio::time::sleep(START).await;
        let node = nodes::get(&client, &name).await.unwrap().unwrap();
        assert_eq!(node.status.unwrap().conditions.unwrap()[0].status, "True");
        let mut etcd = stage.etcd_client("https://192.0.2.11:2379").await.unwrap();
        assert_eq!(etcd.member_list().await.unwrap().members()[0].name(), "n1");
        let expected = ["etcd", "kube-apiserver"].map(|pod| ExpectedPod::Static(pod.to_owned()));
        let none = std::collections::BTreeMap::new();
        assert!(missing(&of_node(&client, &name).await.unwrap(), &name, &expected, &none).is_empty());

        host.lock().on = false;
        assert!(nodes::get(&client, &name).await.is_err(), "its host has no power");
        host.lock().boot();
        assert!(nodes::get(&client, &name).await.is_err(), "its pods start again");
        tokio::time::sleep(START).await;
        assert!(nodes::get(&client, &name).await.is_ok(), "the member goes on with its data");
        for pod in ["etcd", "kube-apiserver"] {
            let path = format!("{MANIFESTS}/{pod}.yaml");
            let manifest = host.lock().tree.text(&path).unwrap();
            host.lock().tree.write(&path, format!("# {manifest}").as_str().into(), of_root(0o600), 1);
            assert!(nodes::get(&client, &name).await.is_err(), "{pod} restarts with another manifest");
            tokio::time::sleep(START).await;
            assert!(nodes::get(&client, &name).await.is_ok(), "{pod} has started again");
        }
        stage.machine("n1", |machine| machine.etcd_works = false);
        assert!(nodes::get(&client, &name).await.is_err(), "etcd has no quorum");
    }
}
