//! What etcd and the API servers run with is changed while a machine is off, and a node is deployed.

use std::sync::{Arc, Mutex};

use metalform::model::role::Role;

use crate::old_list::{calm, run};
use crate::play::{FIRST, Subject};
use crate::support::attempt::Recipe;
use crate::support::cluster::Cluster;
use crate::support::defect::Defect;

const OTHERS: [Subject; 3] =
    [("etcd-2", &[Role::Etcd]), ("etcd-3", &[Role::Etcd]), ("master-4", &[Role::Master])];

/// What the deployment of `name` did that must not happen.
pub fn deploy(name: &str, off: &str, defect: Option<Defect>) -> Vec<String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut cluster = Cluster::default();
        for (name, roles) in [FIRST].iter().chain(&OTHERS) {
            cluster.add_host(name, roles.iter().copied().collect());
        }
        let world = Arc::new(Mutex::new(cluster));
        let recipe = |name: &str| if name == FIRST.0 { Recipe::Bootstrap } else { Recipe::Deploy };
        for (name, _) in [FIRST].iter().chain(&OTHERS) {
            run(&world, recipe(name), name, calm(), None).await;
        }
        {
            let mut cluster = world.lock().unwrap();
            assert_eq!(cluster.etcd.voters().count(), 3);
            cluster.host(off).on = false;
            cluster.configuration += 1;
        }
        run(&world, recipe(name), name, calm(), defect).await;
        world.lock().unwrap().violations.clone()
    })
}
