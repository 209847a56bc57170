//! The real site with faults on request: an action fails, or the run ends before, during or after it.

use std::future::pending;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use metalform::operation::cluster_site::ClusterSite;
use metalform::operation::effect::{Action, Look, Observation, Returned};
use metalform::operation::site::{EffectError, Site};
use tokio::sync::Notify;

use crate::host::Link;
use crate::host::session::HostSession;
use crate::stage::Stage;
use crate::support::fault::{Fault, Faults, failing};
use crate::support::site::duration;

pub struct FaultySite {
    pub site: ClusterSite,
    pub session: HostSession,
    pub stage: Stage,
    /// How long the API is away after each change of etcd's members.
    pub away_after_change: Duration,
    pub faults: Mutex<Faults>,
    pub killed: Notify,
}

impl FaultySite {
    async fn die(&self) -> ! {
        self.killed.notify_one();
        pending().await
    }
}

#[async_trait]
impl Site for FaultySite {
    async fn look(&self, look: &Look) -> Result<Observation, EffectError> {
        self.site.look(look).await
    }

    async fn act(&self, action: &Action) -> Result<Returned, EffectError> {
        let fault = (self.faults.lock().unwrap())(action);
        match fault {
            Fault::KilledBefore => self.die().await,
            Fault::FailsBefore => return Err(failing(action, &self.session.name)),
            Fault::KilledMidway => {
                if let Action::Apply(_, plan) = action {
                    self.session.lock().link = Link::BreaksAfter(plan.changes().len() / 2);
                }
                let _ = self.site.act(action).await;
                self.session.lock().link = Link::Up;
                self.die().await
            }
            Fault::None | Fault::FailsAfter | Fault::KilledAfter => {}
        }
        let slowness = match action {
            Action::Apply(..) => {
                self.stage.machines().get(&self.session.name).map_or(1, |machine| machine.slowness)
            }
            _ => 1,
        };
        tokio::time::sleep(duration(action) * slowness).await;
        // The cluster did not stand still for that long.
        let _ = self.stage.pass();
        let done = self.site.act(action).await;
        let is_change = matches!(action, Action::ChangeMembership(..)) && done.is_ok();
        if is_change && !self.away_after_change.is_zero() {
            self.stage.api.lock().rules.away_for(self.away_after_change);
        }
        match fault {
            Fault::KilledAfter => self.die().await,
            Fault::FailsAfter => Err(failing(action, &self.session.name)),
            _ => done,
        }
    }
}
