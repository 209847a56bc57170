//! The list of etcd's members through a voter that lags: it has not heard of the member that a killed run has added.

use std::sync::{Arc, Mutex};

use metalform::engine::cancel;
use metalform::model::role::Role;
use metalform::operation::effect::Action;
use metalform::operation::layer::Layer;

use crate::support::attempt::{Attempt, Circumstances, Recipe};
use crate::support::cluster::Cluster;
use crate::support::defect::Defect;
use crate::support::fault::{Fault, Faults};
use crate::support::luck::Luck;
use crate::support::site::Shared;

const FIRST: &str = "bootstrap";
const LAGGING: &str = "master-2";
const OTHER: &str = "master-3";
const JOINER: &str = "master-4";

/// What the second run of the joiner did first that must not happen.
pub fn rerun(defect: Option<Defect>) -> Vec<String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = begin();
        run(&world, Recipe::Bootstrap, FIRST, calm(), None).await;
        for name in [LAGGING, OTHER] {
            run(&world, Recipe::Deploy, name, calm(), None).await;
        }
        let meanwhile = world.clone();
        let faults = Box::new(move |action: &Action| match action {
            Action::ChangeMembership(..) => {
                meanwhile.lock().unwrap().host(LAGGING).lags = true;
                Fault::None
            }
            Action::Apply(Layer::EtcdMember { .. }, _) => Fault::KilledAfter,
            _ => Fault::None,
        });
        run(&world, Recipe::Deploy, JOINER, faults, None).await;
        assert!(world.lock().unwrap().violations.is_empty());
        run(&world, Recipe::Deploy, JOINER, calm(), defect).await;
        world.lock().unwrap().violations.iter().take(1).cloned().collect()
    })
}

fn begin() -> Shared {
    let mut cluster = Cluster::default();
    cluster.etcd.load.writes = 100;
    cluster.add_host(FIRST, [Role::Bootstrap, Role::Master, Role::Etcd, Role::Infra].into());
    for name in [LAGGING, OTHER, JOINER] {
        cluster.add_host(name, [Role::Master, Role::Etcd].into());
    }
    Arc::new(Mutex::new(cluster))
}

pub fn calm() -> Faults {
    Box::new(|_| Fault::None)
}

pub async fn run(world: &Shared, recipe: Recipe, name: &str, faults: Faults, defect: Option<Defect>) {
    let (_handle, cancel) = cancel::channel();
    let seen = Mutex::new(Vec::new());
    let attempt = Attempt { world, recipe, name, beside: &[], number: 1, cancel, seen: &seen };
    attempt.run_in(Circumstances { faults, luck: Luck::default(), defect }).await;
}
