//! The numbers of the pool, counted from the caches at each scrape.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeGaugeValue};
use prometheus_client::metrics::MetricType;

use super::machine_caches::MachineCaches;
use super::pass_queue::PassQueue;
use crate::machine::pool_census::PoolCensus;

/// What the process that has the Lease sees.
#[derive(Clone)]
pub struct LeaderView {
    /// All objects, as of a moment ago.
    pub caches: MachineCaches,
    /// Passes that are due.
    pub queue: Arc<Mutex<PassQueue>>,
}

/// Reports nothing while no view is set.
pub struct PoolCollector {
    clock: fn() -> Timestamp,
    view: Mutex<Option<LeaderView>>,
}

/// What is reported.
struct PoolReport {
    census: PoolCensus,
    waiting: usize,
}

impl PoolCollector {
    /// Without a view.
    pub fn new(clock: fn() -> Timestamp) -> Self {
        Self { clock, view: Mutex::default() }
    }

    /// Replaces the view.
    pub fn set(&self, view: Option<LeaderView>) {
        *self.view.lock().unwrap_or_else(PoisonError::into_inner) = view;
    }

    fn report(&self) -> Option<PoolReport> {
        let LeaderView { caches, queue } =
            self.view.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let now = (self.clock)();
        let (hosts, machines) = (caches.hosts.state(), caches.machines.state());
        let census = PoolCensus::of(&hosts, &machines, &caches.deployments.state(), now);
        let waiting = queue.lock().unwrap_or_else(PoisonError::into_inner).waiting(now);
        Some(PoolReport { census, waiting })
    }
}

impl Collector for PoolCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        match self.report() {
            Some(report) => report.encode(&mut encoder),
            None => Ok(()),
        }
    }
}

impl PoolReport {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Self { census, waiting } = self;
        by(encoder, ("hosts", "state"), "Hosts by state.", &census.hosts)?;
        by(encoder, ("machines", "phase"), "Machines by phase.", &census.machines)?;
        let help = "Machines whose Node is Ready, without those that are being deleted.";
        one(encoder, "machines_ready", help, &census.ready)?;
        let help = "For how long the Machine that is not Ready for longest is not Ready; 0 without one.";
        let longest = census.longest_not_ready.as_secs_f64();
        one(encoder, "machine_longest_not_ready_seconds", help, &longest)?;
        let help = "MachineDeployments by what their rollouts are.";
        by(encoder, ("machinedeployments", "rollout"), help, &census.deployments)?;
        one(encoder, "reconciles_waiting", "Passes that are due and have not begun.", waiting)
    }
}

fn one(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: &impl EncodeGaugeValue,
) -> fmt::Result {
    encoder.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(value)
}

/// A gauge with one label, whose values are the keys.
fn by<K: fmt::Debug>(
    encoder: &mut DescriptorEncoder<'_>,
    (name, label): (&str, &'static str),
    help: &str,
    numbers: &BTreeMap<K, u32>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (key, number) in numbers {
        let labels = [(label, format!("{key:?}"))];
        family.encode_family(&labels)?.encode_gauge(number)?;
    }
    Ok(())
}

impl fmt::Debug for PoolCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolCollector").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::prometheus_text;
    use prometheus_client::registry::Registry;

    use super::*;

    #[derive(Debug)]
    struct Fixed(PoolCensus);

    impl Collector for Fixed {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            PoolReport { census: self.0.clone(), waiting: 7 }.encode(&mut encoder)
        }
    }

    fn text(collector: impl Collector, mut registry: Registry) -> String {
        registry.register_collector(Box::new(collector));
        let mut text = String::new();
        prometheus_text::encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn every_state_phase_and_stage_is_reported() {
        let census = PoolCensus::of(&[], &[], &[], Timestamp::UNIX_EPOCH);
        insta::assert_snapshot!(text(Fixed(census), Registry::with_prefix("metalform")), @r#"
        # HELP metalform_hosts Hosts by state.
        # TYPE metalform_hosts gauge
        metalform_hosts{state="Unknown"} 0
        metalform_hosts{state="Inspecting"} 0
        metalform_hosts{state="Available"} 0
        metalform_hosts{state="Claimed"} 0
        metalform_hosts{state="Provisioning"} 0
        metalform_hosts{state="InUse"} 0
        metalform_hosts{state="Draining"} 0
        metalform_hosts{state="Resetting"} 0
        metalform_hosts{state="Quarantined"} 0
        metalform_hosts{state="Unreachable"} 0
        metalform_hosts{state="Lost"} 0
        # HELP metalform_machines Machines by phase.
        # TYPE metalform_machines gauge
        metalform_machines{phase="Pending"} 0
        metalform_machines{phase="Provisioning"} 0
        metalform_machines{phase="Provisioned"} 0
        metalform_machines{phase="Running"} 0
        metalform_machines{phase="Deleting"} 0
        metalform_machines{phase="Failed"} 0
        # HELP metalform_machines_ready Machines whose Node is Ready, without those that are being deleted.
        # TYPE metalform_machines_ready gauge
        metalform_machines_ready 0
        # HELP metalform_machine_longest_not_ready_seconds For how long the Machine that is not Ready for longest is not Ready; 0 without one.
        # TYPE metalform_machine_longest_not_ready_seconds gauge
        metalform_machine_longest_not_ready_seconds 0.0
        # HELP metalform_machinedeployments MachineDeployments by what their rollouts are.
        # TYPE metalform_machinedeployments gauge
        metalform_machinedeployments{rollout="Complete"} 0
        metalform_machinedeployments{rollout="Progressing"} 0
        metalform_machinedeployments{rollout="Blocked"} 0
        metalform_machinedeployments{rollout="Paused"} 0
        metalform_machinedeployments{rollout="DeadlineExceeded"} 0
        metalform_machinedeployments{rollout="Deleting"} 0
        # HELP metalform_reconciles_waiting Passes that are due and have not begun.
        # TYPE metalform_reconciles_waiting gauge
        metalform_reconciles_waiting 7
        "#);
    }

    #[test]
    fn a_process_without_the_lease_reports_nothing() {
        assert_eq!(text(PoolCollector::new(|| Timestamp::UNIX_EPOCH), Registry::default()), "");
    }
}
