//! How a machine becomes a member of the cluster: an ordered list of phases, each a pure question.
//!
//! # How to read it
//! [`DEPLOY`] and [`BOOTSTRAP`] are the two recipes, in the order in which things must hold. Each phase is a
//! file in `phases/`, and answers [`phase::Phase::next`]: it holds, or something has to be looked at, done or
//! waited for, or it is blocked. [`run`] asks it again until it holds; [`site`] is what looks and does.
//!
//! # Guarantees
//! - What to do next follows from the goal and from what was just seen, from nothing else: a killed run is
//!   resumed by running it again.
//! - A dry run ([`dry_run`]) asks the same questions and only leaves the doing out.

pub mod cluster_site;
pub mod dry_run;
pub mod goal;
pub mod layer;
pub mod phase;
pub mod phases;
pub mod preflight;
pub mod run;
pub mod site;
pub mod survey;
pub mod values;
pub mod world;

use phase::Phase;

/// What must hold, in order, for a machine to be part of a cluster that exists.
pub const DEPLOY: &[&dyn Phase] = &[
    &phases::reachable::Reachable,
    &phases::preflight::Preflight,
    &phases::base_system::BaseSystem,
    &phases::node_joined::NodeJoined,
    &phases::etcd_voter::EtcdVoter,
    &phases::control_plane::ControlPlane,
    &phases::apiserver_proxies::ApiServerProxies,
    &phases::end_state::EndState,
];

/// What must hold, in order, for a machine to be the first of a cluster.
pub const BOOTSTRAP: &[&dyn Phase] = &[
    &phases::reachable::Reachable,
    &phases::preflight::Preflight,
    &phases::authorities::AuthoritiesMade,
    &phases::package_service::PackageService,
    &phases::images_loaded::ImagesLoaded,
    &phases::first_control_plane::FirstControlPlane,
    &phases::cluster_objects::ClusterObjects,
    &phases::base_system::BaseSystem,
    &phases::node_joined::NodeJoined,
    &phases::end_state::EndState,
];
