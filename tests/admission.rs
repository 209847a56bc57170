//! What a real API server admits of the kinds of Machines, with the definitions and policies of `bootstrap`.
//!
//! One server for all tests. Without kube-apiserver or etcd, as before the first bundle of a machine, the tests print
//! what they skip; `make real-api-server` requires them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of it is test code; clippy knows only test functions"
)]

#[path = "api_server/mod.rs"]
mod api_server;
#[path = "admission/cases.rs"]
mod cases;
#[path = "support/component_binary.rs"]
mod component_binary;
#[expect(dead_code, reason = "tests/machines.rs plays the rules")]
#[path = "machines/definition.rs"]
mod definition;
#[path = "admission/foreign_definition.rs"]
mod foreign_definition;
#[path = "admission/kubelet_versions.rs"]
mod kubelet_versions;
#[path = "admission/kubelets.rs"]
mod kubelets;
#[path = "support/loopback.rs"]
mod loopback;
#[path = "machines/cases.rs"]
mod machine_cases;
#[path = "admission/resources.rs"]
mod resources;
#[path = "admission/seeds.rs"]
mod seeds;
#[path = "admission/shared.rs"]
mod shared;
#[path = "support/sources.rs"]
mod sources;
