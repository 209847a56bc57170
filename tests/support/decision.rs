//! What a run decides to stop or to restart, judged by what it has observed before: what happens to machines afterwards is
//! not its fault.

use metalform::model::api_contract::API_SERVER;
use metalform::operation::effect::Action;
use metalform::operation::host_access::HostPlan;
use tokio::time::Instant;

use super::cluster::Cluster;
use super::host::{APISERVER_CONFIGURATION, ETCD_CONFIGURATION};
use super::readings::Readings;
use super::site::ModelSite;

impl ModelSite {
    /// Before anything is done of it.
    pub fn check_decision(&self, action: &Action) {
        let mut cluster = self.lock();
        let mut readings = self.readings.lock().unwrap();
        let wrong = match action {
            Action::UpdateProxy(node, _) => {
                readings.ask_proxy(node);
                None
            }
            Action::StopControlPlane => self.stopping_in_use(&cluster, &readings),
            Action::Apply(_, plan) => self.restarting_alone(&cluster, &readings, plan),
            _ => None,
        };
        let lines = wrong.map(|wrong| format!("{} {wrong}", self.name()));
        cluster.violations.extend(lines);
    }

    /// No proxy that the run can change uses an API server that stops.
    fn stopping_in_use(&self, cluster: &Cluster, readings: &Readings) -> Option<String> {
        let using = readings.left_using(self.name(), cluster);
        (!using.is_empty()).then(|| format!("stops its API server while it is used by {using:?}"))
    }

    /// One voter restarts at a time, while the others are well, and one API server while another one is ready. The bootstrap
    /// node repairs what the API needs: it has no lease where no API server answers.
    fn restarting_alone(&self, cluster: &Cluster, readings: &Readings, plan: &HostPlan) -> Option<String> {
        let lease = cluster.lease.as_ref().filter(|lease| lease.holder == self.run);
        if self.goal.first && lease.is_none() {
            return None;
        }
        let leased = lease.map(|lease| lease.since);
        let changes = plan.changes();
        let changed = |id: &str| changes.iter().any(|change| change.id == id);
        let wrong = [
            changed(ETCD_CONFIGURATION).then(|| self.member_restart(cluster, readings, leased)).flatten(),
            changed(APISERVER_CONFIGURATION)
                .then(|| self.server_restart(cluster, readings, leased))
                .flatten(),
        ];
        let wrong: Vec<String> = wrong.into_iter().flatten().collect();
        (!wrong.is_empty()).then(|| format!("restarts {}", wrong.join(", and ")))
    }

    /// `leased`: when the run took the lease.
    fn member_restart(
        &self,
        cluster: &Cluster,
        readings: &Readings,
        leased: Option<Instant>,
    ) -> Option<String> {
        let own = cluster.etcd.voters().find(|voter| voter.name == self.name() && voter.running)?;
        let Some(basis) = readings.last_basis() else {
            return Some("its member without a look at the others".to_owned());
        };
        if leased.is_some_and(|leased| basis.at < leased) {
            return Some("its member by a list that it read before it had the lease".to_owned());
        }
        let (own, voters) = (own.id, basis.voters.len());
        if !basis.voters.contains(&own) || voters == 1 {
            return None;
        }
        let unwell = basis.unwell_besides(Some(own));
        // A silent one may vote: what it may restart without is a quorum of the others.
        let spared = basis.silent.contains(&own) && basis.healthy_besides(own) * 2 > voters;
        let wrong = !unwell.is_empty() && !spared;
        wrong.then(|| format!("its member while {} other voters were unwell", unwell.len()))
    }

    /// `leased`: when the run took the lease.
    fn server_restart(
        &self,
        cluster: &Cluster,
        readings: &Readings,
        leased: Option<Instant>,
    ) -> Option<String> {
        if !cluster.nodes.get(self.name())?.annotations.contains_key(API_SERVER) {
            return None;
        }
        match readings.other_servers()? {
            None => Some("its API server without a look at the others".to_owned()),
            Some(others) if leased.is_some_and(|leased| others.at < leased) => {
                Some("its API server by a look at the others from before it had the lease".to_owned())
            }
            Some(others) if others.any_ready => None,
            Some(_) => Some("its API server while no other one served".to_owned()),
        }
    }
}
