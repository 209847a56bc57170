//! What a script lets happen to the stage, without any command of metalform.

use std::sync::Arc;
use std::time::Duration;

use metalform::model::api_contract::API_SERVER;
use metalform::model::facts::Cidr;
use metalform::resource::contract::probe::InstalledPackage;
use metalform::state::{Library, Tree};
use serde_json::{Value, json};

use crate::api::BUDGET;
use crate::host::tree::of_root;
use crate::host::{Failing, Link, ScriptedHost};
use crate::scripts::Play;

const CA: &str = "/etc/kubernetes/pki/ca.crt";
/// One that has expired is as good as none.
const CERTIFICATE: &str = "/var/lib/kubelet/pki/kubelet-client-current.pem";
const DATA: &str = "/var/lib/etcd/member";
/// What the title of every step begins with.
const ANY_STEP: &str = "";
/// The templates of etcd and the API server, each with a flag whose value is a number.
const CONFIGURED: [(&str, &str, &str); 2] = [
    (
        "templates/etcd/static-pod.yaml.j2",
        include_str!("../../templates/etcd/static-pod.yaml.j2"),
        "--snapshot-count=",
    ),
    (
        "templates/kube-apiserver/static-pod.yaml.j2",
        include_str!("../../templates/kube-apiserver/static-pod.yaml.j2"),
        "--audit-log-maxage=",
    ),
];

impl Play {
    /// # Errors
    /// When no such thing can happen to the stage.
    pub fn happen(&mut self, words: &[&str]) -> Result<(), String> {
        match words {
            ["etcd", "on", name, "cannot", "start"] => {
                self.stage.machine(name, |machine| machine.etcd_works = false);
            }
            ["etcd", "on", name, "can", "start"] => self.stage.machine(name, |machine| {
                (machine.etcd_works, machine.etcd_crashes) = (true, false);
            }),
            ["the", "certificate", "of", "the", "kubelet", "of", name, "expires"] => {
                self.host(name, |host| host.tree.remove(CERTIFICATE));
            }
            ["the", "manifest", "of", pod, "on", name, "is", "lost"] => {
                self.host(name, |host| host.tree.remove(&format!("/etc/kubernetes/manifests/{pod}.yaml")));
            }
            ["the", "data", "of", "etcd", "on", name, "is", "lost"] => {
                self.host(name, |host| host.tree.remove(DATA));
            }
            ["the", "disk", "of", "etcd", "on", name, "is", "not", "mounted"] => {
                self.host(name, |host| host.tree.rename(DATA, "/unmounted"));
            }
            ["the", "disk", "of", "etcd", "on", name, "is", "mounted"] => {
                self.host(name, |host| host.tree.rename("/unmounted", DATA));
            }
            [name, "also", "has", "the", "address", address, "on", interface] => self.host(name, |host| {
                let cidr = Cidr { address: address.parse().unwrap(), prefix: 32 };
                host.facts.addresses.insert((*interface).to_owned(), vec![cidr]);
            }),
            ["the", "control-plane", "address", "of", name, "is", address] => self.host(name, |host| {
                let cidr = Cidr { address: address.parse().unwrap(), prefix: 24 };
                host.facts.addresses.insert("eth0".to_owned(), vec![cidr]);
            }),
            ["the", "disk", "of", name, "is", times, "times", "slower"] => {
                self.stage.machine(name, |machine| machine.slowness = times.parse().unwrap());
            }
            ["the", "disk", "of", name, "is", "full"] => self.host(name, |host| {
                let full = Failing { status: 1, output: "No space left on device".to_owned() };
                host.failing.insert(ANY_STEP.to_owned(), full);
            }),
            ["the", "disk", "of", name, "is", "not", "full"] => {
                self.host(name, |host| drop(host.failing.remove(ANY_STEP)));
            }
            ["the", "address", "of", name, "leads", "to", other] => {
                let other = self.stage.session(other).ok_or("there is no such host")?.lock().facts.clone();
                self.host(name, |host| {
                    (host.facts.hostname, host.facts.machine_id) = (other.hostname, other.machine_id);
                });
            }
            ["the", "kubelet", "of", name, "claims", "the", "machine", "of", other] => {
                let other = self.stage.session(other).ok_or("there is no such host")?.lock().facts.clone();
                self.change("nodes", "", name, |node| {
                    node["status"]["nodeInfo"]["machineID"] = json!(other.machine_id);
                });
            }
            ["the", "workload", "address", "of", name, "is", "that", "of", other] => {
                let other = self.stage.session(other).ok_or("there is no such host")?.lock().facts.clone();
                let workload = other.addresses["eth1"].clone();
                self.host(name, |host| drop(host.facts.addresses.insert("eth1".to_owned(), workload)));
            }
            ["the", "configuration", "changes"] => drop(self.change_configuration()?),
            ["the", "configuration", "changes", "so", "that", "no", "API", "server", "starts"] => {
                let flag = self.change_configuration()?;
                self.stage.break_api_servers(flag);
            }
            ["the", "API", "server", "of", name, "is", "recorded", "again"] => {
                self.change("nodes", "", name, |node| {
                    node["metadata"]["annotations"][API_SERVER] = json!("ready");
                });
            }
            ["pod", pod, "runs", "on", node] => self.run_pod(pod, node, true),
            ["pod", pod, "runs", "on", node, "without", "a", "controller"] => self.run_pod(pod, node, false),
            ["a", "budget", "keeps", pod] => self.change("pods", "default", pod, |pod| {
                pod["metadata"]["annotations"][BUDGET] = json!("none may go");
            }),
            ["no", "budget", "keeps", pod] => self.change("pods", "default", pod, |pod| {
                pod["metadata"]["annotations"] = json!({});
            }),
            ["an", "administrator", "cordons", node] => self.change("nodes", "", node, |node| {
                node["spec"]["unschedulable"] = json!(true);
            }),
            ["the", "Node", name, "is", "deleted"] => self.delete_node(name),
            ["the", "Node", name, "is", "applied", "again"] => self.apply_node(name),
            ["the", "roles", "of", name, "are", roles @ ..] => self.change("nodes", "", name, |node| {
                let prefix = "node-role.kubernetes.io/";
                let labels = roles.iter().map(|role| (format!("{prefix}{role}"), json!("")));
                node["metadata"]["labels"] = labels.collect::<serde_json::Map<_, _>>().into();
            }),
            ["the", "kubelet", "of", name, "stops"] => {
                self.host(name, |host| host.units.set_active("kubelet.service", "inactive", "dead"));
            }
            [name, "belongs", "to", "another", "cluster"] => self.host(name, |host| {
                host.tree.write(CA, "CA OF ANOTHER CLUSTER".into(), of_root(0o644), 1);
            }),
            [name, "held", "a", "member", "that", "was", "removed"] => {
                let bootstrap = self.stage.session("bootstrap").unwrap();
                let ca = bootstrap.lock().tree.text(CA).ok_or("the cluster has no CA")?;
                self.host(name, |host| {
                    host.tree.write(CA, ca.as_str().into(), of_root(0o644), 1);
                    host.tree.write(&format!("{DATA}/wal/id"), "99".into(), of_root(0o600), 1);
                });
            }
            [name, "is", "unfit"] => self.host(name, |host| {
                "localhost".clone_into(&mut host.facts.hostname);
                (host.facts.memory, host.facts.disk_free) = (1 << 30, 1 << 30);
                let package = InstalledPackage { version: "1.0".to_owned(), held: false, configured: true };
                host.packages.installed.insert("docker.io".to_owned(), package);
                host.listening.insert(7443);
            }),
            ["the", "proof's", "pod", "of", name, "has", "ended"] => {
                let ended = json!({
                    "metadata": { "name": format!("metalform-reachability-{name}") },
                    "spec": { "nodeName": name },
                    "status": { "phase": "Failed", "reason": "DeadlineExceeded" },
                });
                self.stage.api.lock().store.insert("pods", "kube-system", ended);
            }
            ["the", "API", "is", "away", "for", seconds, "s", "after", "each", "change", "of", "members"] => {
                self.away_after_change = Duration::from_secs(seconds.parse().unwrap());
            }
            ["the", "API", "is", "away", "for", seconds, "s"] => {
                self.stage.api.lock().rules.away_for(Duration::from_secs(seconds.parse().unwrap()));
            }
            ["power-off", name] => self.host(name, |host| host.on = false),
            ["power-on", name] => self.host(name, ScriptedHost::boot),
            ["cut", name] => {
                self.host(name, |host| host.link = Link::Unreachable("no route to host".to_owned()));
            }
            ["heal", name] => self.host(name, |host| host.link = Link::Up),
            _ => return Err(format!("unknown command: {}", words.join(" "))),
        }
        // What starts by it starts now, not when something looks next.
        let _ = self.stage.pass();
        Ok(())
    }

    /// The operator changes what etcd and the API servers run with, and nothing else: a flag of each. Returns that of the API
    /// servers.
    fn change_configuration(&mut self) -> Result<String, String> {
        self.configuration += 1;
        let (mut tree, mut last) = (Tree::embedded(), String::new());
        for (path, template, flag) in CONFIGURED {
            let (before, after) = template.split_once(flag).ok_or(format!("{path} has no {flag}"))?;
            let changed = format!("{before}{flag}{}{after}", self.configuration);
            tree.insert(path, changed.into_bytes());
            let value = after.lines().next().unwrap_or_default();
            last = format!("{flag}{}{value}", self.configuration);
        }
        let workspace = Arc::get_mut(&mut self.workspace).ok_or("a run still uses the workspace")?;
        workspace.library = Library::read(&tree).map_err(|errors| format!("{errors:?}"))?;
        Ok(last)
    }

    fn change(&self, plural: &str, namespace: &str, name: &str, change: impl FnOnce(&mut Value)) {
        self.stage.api.lock().store.change(plural, namespace, name, change);
    }

    fn run_pod(&self, pod: &str, node: &str, managed: bool) {
        let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "1", "controller": true });
        let owners: Vec<Value> = managed.then_some(owner).into_iter().collect();
        let pod = json!({
            "metadata": { "name": pod, "ownerReferences": owners },
            "spec": { "nodeName": node, "containers": [{ "name": "x" }] },
            "status": { "phase": "Running" },
        });
        self.stage.api.lock().store.insert("pods", "default", pod);
    }

    /// With its pods, as the garbage collector of pods does.
    fn delete_node(&self, name: &str) {
        let mut api = self.stage.api.lock();
        api.store.remove("nodes", "", name);
        let pods: Vec<Value> = api.store.all("pods").into_iter().cloned().collect();
        for pod in pods.iter().filter(|pod| pod["spec"]["nodeName"] == json!(name)) {
            api.store.remove("pods", "kube-system", pod["metadata"]["name"].as_str().unwrap());
        }
    }

    fn host(&self, name: &str, change: impl FnOnce(&mut ScriptedHost)) {
        change(&mut self.stage.session(name).unwrap().lock());
    }
}
