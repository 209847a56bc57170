//! The host: facts, what differs on it, and the units and containers that a wait depends on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::facts::Facts;
use crate::operation::condition::Cause;
use crate::operation::effect::{Action, LookKey, Observation};
use crate::operation::host_access::HostPlan;
use crate::operation::layer::Layer;
use crate::operation::survey::Survey;

/// So many failed starts are no accident.
const FAILURES: u32 = 3;

/// What was observed of the host.
#[derive(Debug, Clone, Default)]
pub struct HostPart {
    /// What the host is.
    pub facts: Option<Facts>,
    /// What is on it.
    pub survey: Option<Survey>,
    /// What differs from the states of each layer.
    pub plans: BTreeMap<Layer, LayerPlan>,
    /// Units by name.
    pub units: BTreeMap<String, UnitReport>,
    /// Containers of static pods by name.
    pub containers: BTreeMap<String, ContainerReport>,
}

/// What this run has begun on the host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostBegun {
    /// Resources that this run has changed, by layer.
    #[serde(with = "by_layer")]
    pub changed: BTreeMap<Layer, BTreeSet<String>>,
    /// Whether it restarted the kubelet.
    pub kubelet_restarted: bool,
}

/// The comparison of the host with a layer.
#[derive(Debug, Clone)]
pub enum LayerPlan {
    /// Nothing differs, of so many resources.
    Unchanged(usize),
    /// Carrying out the plan makes it so.
    Differs(Arc<HostPlan>),
    /// Resources that must not be changed: id and reason.
    Refused(Vec<(String, String)>),
}

/// A systemd unit, from systemctl(1) show and journalctl(1).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitReport {
    /// `ActiveState`.
    pub active: String,
    /// `SubState`.
    pub sub: String,
    /// `Result`: `exit-code`, `start-limit-hit`.
    pub result: String,
    /// `ExecMainStatus`.
    pub status: i32,
    /// `NRestarts`, since it was last started by hand.
    pub restarts: u32,
    /// Its last error in the journal.
    pub last_error: String,
}

/// The container of a static pod, from its logs and containerd.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerReport {
    /// Whether it runs; `None` when no container was ever created.
    pub running: Option<bool>,
    /// How often it has exited.
    pub exits: u32,
    /// The last line of its log.
    pub last_line: String,
}

impl LayerPlan {
    /// Of what a host returned.
    pub fn of(plan: HostPlan) -> Self {
        let verdicts = plan.0.plan();
        let refusals = verdicts.refusals();
        if !refusals.is_empty() {
            Self::Refused(refusals)
        } else if verdicts.works().is_empty() {
            Self::Unchanged(verdicts.unchanged())
        } else {
            Self::Differs(Arc::new(plan))
        }
    }
}

impl UnitReport {
    /// Why it does not run; `None` when it does.
    pub fn complaint(&self, name: &str) -> Option<String> {
        if self.active.is_empty() || self.active == "active" {
            return None;
        }
        let result = match self.result.as_str() {
            "" | "success" => String::new(),
            "exit-code" => format!(", exit status {}", self.status),
            other => format!(", {other}"),
        };
        let restarts =
            if self.restarts > 0 { format!(", {} restarts", self.restarts) } else { String::new() };
        Some(with_line(
            format!("{name} is {} ({}){result}{restarts}", self.active, self.sub),
            &self.last_error,
        ))
    }

    /// Why it will not run without a person.
    fn hopeless(&self, name: &str) -> Option<String> {
        let permanent = matches!(self.result.as_str(), "exec-condition" | "start-limit-hit")
            && self.active == "failed"
            || self.restarts >= FAILURES;
        self.complaint(name).filter(|_| permanent)
    }
}

impl ContainerReport {
    /// Why it does not run; `None` when it does.
    pub fn complaint(&self, name: &str) -> Option<String> {
        match self.running {
            Some(true) => None,
            None => Some(format!("container {name} was not created")),
            Some(false) => Some(with_line(
                format!("container {name} is not running, it exited {}", times(self.exits)),
                &self.last_line,
            )),
        }
    }

    fn hopeless(&self, name: &str) -> Option<String> {
        self.complaint(name).filter(|_| self.running == Some(false) && self.exits >= FAILURES)
    }
}

fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn with_line(text: String, line: &str) -> String {
    if line.is_empty() { text } else { format!("{text}: {line}") }
}

impl HostPart {
    /// Takes in what is this part's.
    pub fn put(&mut self, observation: &Observation) {
        match observation {
            Observation::Facts(facts) => self.facts = Some(facts.clone()),
            Observation::Survey(survey) => self.survey = Some(survey.clone()),
            Observation::Plan(layer, plan) => {
                self.plans.insert(layer.clone(), plan.clone());
            }
            Observation::Unit(name, unit) => {
                self.units.insert(name.clone(), unit.clone());
            }
            Observation::Container(name, container) => {
                self.containers.insert(name.clone(), container.clone());
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
                if let (Layer::Base, Some(survey)) = (layer, &mut self.survey) {
                    survey.joined = true;
                }
                if let (Some((cluster, state)), Some(survey)) = (layer.member_flags(), &mut self.survey) {
                    survey.etcd_data = true;
                    survey.etcd_flags = Some(BTreeMap::from([
                        ("initial-cluster".to_owned(), cluster.to_owned()),
                        ("initial-cluster-state".to_owned(), state.to_owned()),
                    ]));
                }
            }
            Action::SetAsideMemberData => {
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
            })
            .collect()
    }

    /// Why waiting is in vain, as far as its causes show.
    pub fn hopeless(&self, causes: &[Cause]) -> Option<String> {
        causes.iter().find_map(|cause| match cause {
            Cause::Unit(name) => self.units.get(name)?.hopeless(name),
            Cause::Container(name) => self.containers.get(name)?.hopeless(name),
        })
    }
}

impl HostBegun {
    /// Takes in that an action was done.
    pub fn remember(&mut self, action: &Action) {
        match action {
            Action::Apply(layer, plan) => {
                let ids = plan.changes().into_iter().map(|(id, _)| id);
                self.changed.entry(layer.clone()).or_default().extend(ids);
            }
            Action::SetAsideMemberData => {
                self.changed.retain(|layer, _| !matches!(layer, Layer::EtcdMember { .. }));
            }
            Action::RestartKubelet => self.kubelet_restarted = true,
            _ => {}
        }
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

    #[test]
    fn a_unit_that_does_not_run_is_described_by_its_own_last_error() {
        let unit = UnitReport {
            active: "activating".to_owned(),
            sub: "auto-restart".to_owned(),
            result: "exit-code".to_owned(),
            status: 1,
            restarts: 2,
            last_error: "failed to load kubelet config file".to_owned(),
        };
        let complaint = "kubelet.service is activating (auto-restart), exit status 1, 2 restarts: failed to load kubelet config file";
        assert_eq!(unit.complaint("kubelet.service").as_deref(), Some(complaint));
        assert_eq!(unit.hopeless("kubelet.service"), None, "it may start yet");
        let again = UnitReport { restarts: 3, ..unit.clone() };
        assert!(again.hopeless("kubelet.service").is_some());
        let running = UnitReport { active: "active".to_owned(), ..again };
        assert_eq!(running.hopeless("kubelet.service"), None, "earlier failures do not count");
        let refused = UnitReport {
            active: "failed".to_owned(),
            result: "start-limit-hit".to_owned(),
            restarts: 0,
            ..unit
        };
        assert!(refused.hopeless("kubelet.service").is_some());
    }

    #[test]
    fn a_container_is_given_up_after_its_third_exit() {
        let mut container =
            ContainerReport { running: Some(false), exits: 2, last_line: "bad flag".to_owned() };
        let complaint = "container etcd is not running, it exited 2 times: bad flag";
        assert_eq!(container.complaint("etcd").as_deref(), Some(complaint));
        assert_eq!(container.hopeless("etcd"), None);
        container.exits = 3;
        assert!(container.hopeless("etcd").is_some());
        container.running = Some(true);
        assert_eq!(container.complaint("etcd"), None);
    }
}
