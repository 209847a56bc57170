//! The changes that a saved plan foresees on a host, and the limit that they are for a run of it.

use std::collections::{BTreeMap, BTreeSet};

use super::layer::Layer;
use super::observed::layer_plan::LayerPlan;
use crate::model::role::Role;

/// Resources that list the API servers of other nodes: they change whenever another node joins.
const PROXY: [&str; 2] = ["template:/etc/haproxy/haproxy.cfg", "service:haproxy"];
/// Lists the etcd members, on a node without one.
const API_SERVER: &str = "static_pod:kube-apiserver";

/// By layer, the resources that a dry run would change; nothing of a layer that it could not compare.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForeseenChanges(BTreeMap<Layer, BTreeSet<String>>);

impl ForeseenChanges {
    /// Takes in a comparison of a dry run.
    pub fn put(&mut self, layer: &Layer, plan: &LayerPlan) {
        let ids = match plan {
            LayerPlan::Differs(plan) => plan.changes().into_iter().map(|change| change.id).collect(),
            LayerPlan::Unchanged(_) | LayerPlan::Refused(_) => Vec::new(),
        };
        self.0.entry(layer.clone()).or_default().extend(ids);
    }

    /// Those of these resources of a layer that are not to be changed, each with the reason. What follows from the states of
    /// other machines is not foreseeable.
    pub fn exceeded_by(
        &self,
        roles: &BTreeSet<Role>,
        layer: &Layer,
        ids: &[String],
    ) -> Vec<(String, String)> {
        let Some(foreseen) = self.0.get(layer) else { return Vec::new() };
        let of_others = |id: &str| PROXY.contains(&id) || id == API_SERVER && !roles.contains(&Role::Etcd);
        let reason =
            "requires a change that is not in the plan: the host changed since the comparison with it";
        let unforeseen = ids.iter().filter(|id| !foreseen.contains(*id) && !of_others(id));
        unforeseen.map(|id| (id.clone(), reason.to_owned())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Tree;

    #[test]
    fn what_the_dry_run_compared_limits_what_is_changed() {
        let mut foreseen = ForeseenChanges::default();
        foreseen.0.insert(Layer::Base, ["file:/a", "file:/b"].map(str::to_owned).into());
        foreseen.put(&Layer::ControlPlane, &LayerPlan::Unchanged(3));
        for (layer, roles, ids, expected) in [
            (Layer::Base, vec![Role::Node], vec!["file:/a", "file:/b"], vec![]),
            (Layer::Base, vec![Role::Node], vec!["file:/b", "file:/c"], vec!["file:/c"]),
            (Layer::Base, vec![Role::Node], PROXY.to_vec(), vec![]),
            (Layer::ControlPlane, vec![Role::Master, Role::Etcd], vec![API_SERVER], vec![API_SERVER]),
            (Layer::ControlPlane, vec![Role::Master], vec![API_SERVER], vec![]),
            (Layer::Etcd, vec![Role::Etcd], vec!["file:/d"], vec![]),
        ] {
            let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
            let exceeding = foreseen.exceeded_by(&roles.into_iter().collect(), &layer, &ids);
            let found: Vec<&str> = exceeding.iter().map(|(id, _)| id.as_str()).collect();
            assert_eq!(found, expected, "{layer:?} {ids:?}");
        }
    }

    /// A template that reads what other machines have is a source of changes that no dry run foresees.
    #[test]
    fn only_these_templates_read_what_other_machines_have() {
        let tree = Tree::embedded();
        let reads = |text: &str| text.contains("peers") || text.contains("node.etcd.endpoints");
        let files = tree.states().chain(tree.templates());
        let readers: Vec<&str> = files.filter(|(_, text)| reads(text)).map(|(path, _)| path).collect();
        assert_eq!(readers, ["haproxy/haproxy.cfg.j2", "kube-apiserver/static-pod.yaml.j2"]);
    }
}
