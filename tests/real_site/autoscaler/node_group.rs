//! What the provider `clusterapi` makes of the objects that its informers show.

use std::collections::BTreeMap;

use serde_json::Value;

use super::client::Informers;

const BOUND: &str = "cluster.k8s.io/cluster-api-autoscaler-node-group";
const CAPACITY: &str = "capacity.cluster-autoscaler.kubernetes.io";

/// A MachineDeployment that may be scaled.
#[derive(Debug, Clone)]
pub struct NodeGroup {
    pub object: Value,
    pub min: i64,
    pub max: i64,
}

/// The node that a scale-up is simulated with.
#[derive(Debug, PartialEq, Eq)]
pub struct TemplateNode {
    pub cpu: String,
    pub memory: String,
    pub pods: String,
    pub labels: BTreeMap<String, String>,
    pub taints: String,
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// `normalizedProviderString`: what is behind the last slash.
fn normalized(provider_id: &Value) -> Option<&str> {
    text(provider_id).rsplit('/').next().filter(|last| !last.is_empty())
}

impl NodeGroup {
    /// `newNodeGroupFromScalableResource`; `None` for what cannot be scaled.
    fn of(object: &Value) -> Option<Self> {
        let bound = |which: &str| annotation(object, &format!("{BOUND}-{which}-size")).parse().unwrap_or(0);
        let group = Self { object: object.clone(), min: bound("min"), max: bound("max") };
        let grows = group.target() != 0 || group.template().is_some();
        (grows && group.max >= group.min && group.max > 0).then_some(group)
    }

    /// `Id`.
    pub fn id(&self) -> String {
        let metadata = &self.object["metadata"];
        format!("MachineDeployment/{}/{}", text(&metadata["namespace"]), text(&metadata["name"]))
    }

    /// `TargetSize`: from the informer.
    pub fn target(&self) -> i64 {
        self.object["spec"]["replicas"].as_i64().unwrap()
    }

    /// `TemplateNodeInfo`, with an architecture that is assumed unless the labels have it; `None` if it cannot scale
    /// from zero.
    pub fn template(&self) -> Option<TemplateNode> {
        let value = |name: &str| annotation(&self.object, &format!("{CAPACITY}/{name}"));
        let (cpu, memory) = (value("cpu"), value("memory"));
        if cpu.is_empty() || memory.is_empty() {
            return None;
        }
        let pods = value("maxPods");
        pods.parse::<i64>().unwrap();
        let labels = [("kubernetes.io/arch", "assumed")].into_iter();
        let given = value("labels");
        let labels = labels.chain(given.split(',').filter_map(|one| one.split_once('=')));
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        Some(TemplateNode { cpu, memory, pods, labels, taints: value("taints") })
    }
}

fn annotation(object: &Value, key: &str) -> String {
    text(&object["metadata"]["annotations"][key]).to_owned()
}

fn named<'a>(all: &'a [Value], namespace: &str, name: &str) -> Option<&'a Value> {
    let is = |one: &&Value| {
        text(&one["metadata"]["namespace"]) == namespace && text(&one["metadata"]["name"]) == name
    };
    all.iter().find(is)
}

impl Informers {
    pub fn node_groups(&self) -> Vec<NodeGroup> {
        let owned = |set: &&Value| owner(set, "MachineDeployment").is_some();
        assert_eq!(self.sets.iter().filter(owned).count(), self.sets.len(), "a MachineSet is a node group");
        self.deployments.iter().filter_map(NodeGroup::of).collect()
    }

    /// `findMachineByProviderID`, and where no Machine has it, by the annotation of the node: both find the same one.
    pub fn machine_of(&self, node: &Value) -> Option<&Value> {
        let id = normalized(&node["spec"]["providerID"])?;
        let mut all = self.machines.iter().filter(|one| normalized(&one["spec"]["providerID"]) == Some(id));
        let machine = all.next();
        assert_eq!(all.next(), None, "two Machines have one provider ID");
        let noted = annotation(node, "cluster.k8s.io/machine");
        let by_annotation =
            noted.split_once('/').and_then(|(namespace, name)| named(&self.machines, namespace, name));
        assert_eq!(machine, by_annotation);
        machine
    }

    /// `nodeGroupForNode`: by the owners of its Machine.
    pub fn node_group_of(&self, node: &Value) -> Option<NodeGroup> {
        let machine = self.machine_of(node)?;
        let namespace = text(&machine["metadata"]["namespace"]);
        let set = named(&self.sets, namespace, &owner(machine, "MachineSet")?)?;
        let deployment = named(&self.deployments, namespace, &owner(set, "MachineDeployment")?)?;
        NodeGroup::of(deployment)
    }

    /// `Nodes`: provider ID and state of each Machine that the selector matches.
    pub fn instances(&self, group: &NodeGroup) -> Vec<(String, &'static str)> {
        let selector = group.object["spec"]["selector"]["matchLabels"].as_object().unwrap();
        let selected = |machine: &&Value| {
            selector.iter().all(|(key, value)| machine["metadata"]["labels"].get(key) == Some(value))
        };
        self.machines.iter().filter(selected).map(instance).collect()
    }
}

/// `findScalableResourceProviderIDs`.
fn instance(machine: &Value) -> (String, &'static str) {
    let id = text(&machine["spec"]["providerID"]);
    let key =
        || format!("{}_{}", text(&machine["metadata"]["namespace"]), text(&machine["metadata"]["name"]));
    if !machine["status"]["failureMessage"].is_null() {
        (key(), "failed")
    } else if id.is_empty() {
        assert!(machine["status"]["nodeRef"].is_null(), "a node without a provider ID");
        (key(), "pending")
    } else if !machine["metadata"]["deletionTimestamp"].is_null() {
        (key(), "deleting")
    } else {
        (id.to_owned(), "running")
    }
}

fn owner(object: &Value, kind: &str) -> Option<String> {
    let owners = object["metadata"]["ownerReferences"].as_array()?;
    let own = owners.iter().find(|owner| owner["kind"] == kind)?;
    Some(text(&own["name"]).to_owned())
}
