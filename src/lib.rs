//! metalform grows Kubernetes clusters on bare metal, over SSH, from one node.
//!
//! # Map
//! A module uses only what stands to its left; `tests/layers.rs` holds it to that.
//!
//! ```text
//! model → {render, pki} → resource → state → transport → engine → {bundle, etcd, kube_api}
//!       → registry → workspace → mirror → operation → machine → service → {controller, serve, report} → cli
//! ```
//!
//! Everything left of `transport` is synchronous and deterministic: ordered maps, clock and randomness
//! are arguments. Deciding is pure ([`resource`] compares desired with observed, [`operation`] says what must
//! happen next); doing is dumb ([`engine`], [`transport`] and the two clients carry out what was decided).
//!
//! # Terms
//! - **state**: a file in `states/`, an ordered list of resources that one host must have.
//! - **resource**: one thing on a host (a package, a file, a service), with a kind and a name.
//! - **probe**: one question about a host; all probes of a run travel in one round trip.
//! - **step**: one mutation of a host, decided beforehand.
//! - **plan**: the changes that would make a host what its states say.
//! - **facts**: what a host is (its OS, addresses, machine id), as opposed to what it should be.
//! - **roster**: the hosts that metalform may reach, and how.
//! - **role**: what a node is for; a label of its `v1/Node`, mapped to states by `states/top.yaml`.
//! - **phase**: one thing that must hold, in order, for a machine to be a member of the cluster.
//! - **bundle**: everything that an offline cluster is made of, with digests.

pub mod model;

pub mod pki;
pub mod render;

pub mod resource;

pub mod state;

pub mod transport;

pub mod engine;

pub mod bundle;
pub mod etcd;
pub mod kube_api;

pub mod registry;

pub mod workspace;

pub mod mirror;

pub mod operation;

pub mod machine;

pub mod service;

pub mod controller;
pub mod report;
pub mod serve;

pub mod cli;

/// The harness of `tests/damage`, for parsers that are private.
#[cfg(test)]
#[path = "../tests/damage/harness.rs"]
mod damage;
