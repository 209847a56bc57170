//! The host: facts, what differs on it, and the units and containers that a wait depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::facts::Facts;
use crate::operation::cause::Cause;
use crate::operation::effect::{Action, LookKey, Observation, Target};
use crate::operation::host_reset::inventory::HostDifference;
use crate::operation::layer::Layer;
use crate::operation::observed::layer_plan::LayerPlan;
use crate::operation::observed::report::{ContainerReport, UnitReport};
use crate::operation::survey::Survey;

/// What was observed of the host.
#[derive(Debug, Clone, Default)]
pub struct HostPart {
    /// What the host is.
    pub facts: Option<Facts>,
    /// This machine's clock when the facts were received, in seconds since the epoch.
    pub received: i64,
    /// What is on it.
    pub survey: Option<Survey>,
    /// What differs from the states of each layer.
    pub plans: BTreeMap<Layer, LayerPlan>,
    /// Units by name.
    pub units: BTreeMap<String, UnitReport>,
    /// Containers of static pods by name.
    pub containers: BTreeMap<String, ContainerReport>,
    /// What is not as it was before metalform changed the host.
    pub differences: Option<Vec<HostDifference>>,
}

/// What this run has begun on the host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostBegun {
    /// Resources that this run has changed, by layer.
    #[serde(with = "by_layer")]
    pub changed: BTreeMap<Layer, BTreeSet<String>>,
    /// Whether it has done anything on the host.
    pub touched: bool,
    /// Whether it restarted the kubelet.
    pub kubelet_restarted: bool,
    /// Whether it stopped the kubelet for good.
    pub node_stopped: bool,
    /// Whether it cleared the host.
    pub host_cleared: bool,
    /// Whether it removed the record of what was there before.
    pub host_forgotten: bool,
    /// How often containers of older manifests had exited when this run first saw them.
    pub earlier_exits: BTreeMap<String, u32>,
}

impl HostPart {
    /// Takes in what is this part's, so long after the run began.
    pub fn put(&mut self, begun: &mut HostBegun, observation: &Observation, now: Duration) {
        match observation {
            Observation::Facts(facts, received) => {
                (self.facts, self.received) = (Some(facts.clone()), *received);
            }
            Observation::Survey(survey) => self.survey = Some(survey.clone()),
            Observation::Plan(layer, plan) => {
                self.plans.insert(layer.clone(), plan.clone());
            }
            Observation::HostDifferences(differences) => self.differences = Some(differences.clone()),
            Observation::Unit(name, unit) => {
                self.units.insert(name.clone(), unit.clone());
            }
            Observation::Container(name, container) => {
                let earlier = match container.age > now {
                    true => *begun.earlier_exits.entry(name.clone()).or_insert(container.exits),
                    false => 0,
                };
                let recent_exits = container.exits.saturating_sub(earlier);
                self.containers.insert(name.clone(), ContainerReport { recent_exits, ..container.clone() });
            }
            _ => {}
        }
    }

    /// Forgets what is this part's.
    pub fn forget(&mut self, key: &LookKey) {
        match key {
            LookKey::Facts => self.facts = None,
            LookKey::Survey => self.survey = None,
            LookKey::Plan(layer) => {
                self.plans.remove(layer);
            }
            LookKey::PendingPlans => self.plans.retain(|_, plan| matches!(plan, LayerPlan::Unchanged(_))),
            LookKey::HostDifferences => self.differences = None,
            LookKey::Unit(name) => {
                self.units.remove(name);
            }
            LookKey::Container(name) => {
                self.containers.remove(name);
            }
            _ => {}
        }
    }

    /// Takes an action as done.
    pub fn predict(&mut self, action: &Action) {
        match action {
            Action::Apply(layer, _) => {
                self.plans.insert(layer.clone(), LayerPlan::Unchanged(0));
                // They contain it.
                if matches!(layer, Layer::First | Layer::Base) {
                    self.plans.insert(Layer::Proxy, LayerPlan::Unchanged(0));
                }
                if let (Layer::OtherRoles, Some(survey)) = (layer, &mut self.survey) {
                    (survey.master_files, survey.member_files, survey.mirror_files) = (false, false, false);
                }
                if let (Layer::Base, Some(survey)) = (layer, &mut self.survey) {
                    survey.joined = true;
                }
                if let (Some(cluster), Some(survey)) = (layer.initial_cluster(), &mut self.survey) {
                    survey.etcd_data = true;
                    survey.etcd_flags =
                        Some(BTreeMap::from([("initial-cluster".to_owned(), cluster.to_owned())]));
                }
            }
            Action::BeginCluster(_) => {
                if let Some(survey) = &mut self.survey {
                    survey.etcd_data = true;
                }
            }
            // The proxy is to list the new API server.
            Action::MarkApiServerReady => {
                self.plans.remove(&Layer::Proxy);
            }
            Action::ClearHost(..) => self.differences = Some(Vec::new()),
            Action::StopControlPlane => {
                if let Some(survey) = &mut self.survey {
                    survey.control_plane = false;
                }
            }
            Action::SetAsideMemberData | Action::RemoveMemberManifest => {
                if let Some(survey) = &mut self.survey {
                    (survey.etcd_data, survey.etcd_flags) = (false, None);
                }
            }
            _ => {}
        }
    }

    /// What the causes of a wait show, one line for each that does not run.
    pub fn complaints(&self, causes: &[Cause]) -> Vec<String> {
        causes
            .iter()
            .filter_map(|cause| match cause {
                Cause::Unit(name) => self.units.get(name)?.complaint(name),
                Cause::Container(name) => self.containers.get(name)?.complaint(name),
                Cause::Lease => None,
            })
            .collect()
    }

    /// Why waiting is in vain, as far as its causes show.
    pub fn hopeless(&self, causes: &[Cause]) -> Option<String> {
        causes.iter().find_map(|cause| match cause {
            Cause::Unit(name) => self.units.get(name)?.hopeless(name),
            Cause::Container(name) => self.containers.get(name)?.hopeless(name),
            Cause::Lease => None,
        })
    }
}

impl HostBegun {
    /// Takes in that an action is about to be done: the host may finish what this run has given up.
    pub fn attempt(&mut self, action: &Action) {
        if let Action::Apply(layer, _) = action
            && layer.initial_cluster().is_some()
        {
            self.changed.entry(layer.clone()).or_default();
        }
    }

    /// Takes in that an action was done.
    pub fn remember(&mut self, action: &Action) {
        self.touched |= action.target() == Target::Host;
        match action {
            // It depends on the other nodes, which change meanwhile: the same resource may differ again.
            Action::Apply(Layer::Proxy, _) => {}
            Action::Apply(layer, plan) => {
                let ids = plan.changes().into_iter().map(|change| change.id);
                self.changed.entry(layer.clone()).or_default().extend(ids);
            }
            Action::SetAsideMemberData | Action::RemoveMemberManifest => {
                self.changed.retain(|layer, _| !matches!(layer, Layer::EtcdMember { .. }));
            }
            Action::RestartKubelet => self.kubelet_restarted = true,
            Action::StopNode => self.node_stopped = true,
            Action::ClearHost(..) => self.host_cleared = true,
            Action::ForgetHost => self.host_forgotten = true,
            _ => {}
        }
    }

    /// Whether this run made the etcd member start for the first time: what was seen of its data may be of before.
    pub fn began_member(&self) -> bool {
        self.changed.keys().any(Layer::is_first_start)
    }

    /// Whether this run has changed what a member that voted before runs with.
    pub fn restarted_member(&self) -> bool {
        self.changed.keys().any(|layer| layer.initial_cluster().is_some() && !layer.is_first_start())
    }

    /// Whether this run has changed a resource of this layer already.
    pub fn was_changed(&self, layer: &Layer, id: &str) -> bool {
        self.changed.get(layer).is_some_and(|ids| ids.contains(id))
    }
}

/// A map with keys that are no strings, as a list of pairs.
mod by_layer {
    use std::collections::{BTreeMap, BTreeSet};

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Layer;

    type Changed = BTreeMap<Layer, BTreeSet<String>>;

    pub(super) fn serialize<S: Serializer>(changed: &Changed, serializer: S) -> Result<S::Ok, S::Error> {
        changed.iter().collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Changed, D::Error> {
        Ok(Vec::<(Layer, BTreeSet<String>)>::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Looks = &'static [(u64, u32)];

    #[test]
    fn a_container_that_has_exited_for_a_year_is_given_up_only_for_what_it_does_now() {
        let seconds = Duration::from_secs;
        let causes = [Cause::Container("kube-scheduler".to_owned())];
        // How long ago the manifest was written, the exits that this run saw after so many seconds, and whether it gives up.
        let cases: [(u64, Looks, bool); 5] = [
            (3600, &[(10, 3)], false),
            (3600, &[(10, 3), (20, 5)], false),
            (3600, &[(10, 3), (20, 5), (50, 6)], true),
            // It is of this run.
            (5, &[(10, 3)], true),
            (5, &[(10, 2)], false),
        ];
        for (age, looks, hopeless) in cases {
            let (mut part, mut begun) = (HostPart::default(), HostBegun::default());
            for (at, exits) in looks {
                let report = ContainerReport {
                    running: Some(false),
                    exits: *exits,
                    age: seconds(age),
                    ..ContainerReport::default()
                };
                let observation = Observation::Container("kube-scheduler".to_owned(), report);
                part.put(&mut begun, &observation, seconds(*at));
            }
            assert_eq!(part.hopeless(&causes).is_some(), hopeless, "{age}: {looks:?}");
        }
    }
}
