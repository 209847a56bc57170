//! The real implementation of the site, over a scripted host, a scripted API and etcd: each stands for the real thing
//! at the level where metalform meets it, and is itself held against metalform's own reading of the real thing.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of it is test code; clippy knows only test functions"
)]

#[path = "kinds/answer.rs"]
mod answer;
#[path = "real_site/api/mod.rs"]
mod api;
#[path = "real_site/autoscaler/mod.rs"]
mod autoscaler;
#[path = "real_site/bootstrap_roles.rs"]
mod bootstrap_roles;
#[path = "real_site/bootstrap_version.rs"]
mod bootstrap_version;
#[expect(dead_code, reason = "tests/kinds.rs decides the cases, here they are performed")]
#[path = "kinds/case.rs"]
mod case;
#[path = "kinds/certificates.rs"]
mod certificates;
#[path = "real_site/clones.rs"]
mod clones;
#[path = "support/component_binary.rs"]
mod component_binary;
#[path = "real_site/connections.rs"]
mod connections;
#[path = "real_site/etcd/mod.rs"]
mod etcd;
#[path = "real_site/faulty_site.rs"]
mod faulty_site;
#[path = "real_site/happen.rs"]
mod happen;
#[path = "real_site/host/mod.rs"]
mod host;
#[path = "real_site/host_oracle.rs"]
mod host_oracle;
#[path = "real_site/kubelet_requests.rs"]
mod kubelet_requests;
#[path = "real_site/looks.rs"]
mod looks;
#[path = "support/loopback.rs"]
mod loopback;
#[path = "real_site/machine_commands.rs"]
mod machine_commands;
#[path = "real_site/machine_controller.rs"]
mod machine_controller;
#[path = "real_site/machine_lives/mod.rs"]
mod machine_lives;
#[path = "real_site/machine_metrics.rs"]
mod machine_metrics;
#[path = "real_site/machine_passes.rs"]
mod machine_passes;
#[path = "real_site/operation_copy.rs"]
mod operation_copy;
#[path = "support/pinned_tls.rs"]
mod pinned_tls;
#[path = "real_site/pod_bridge.rs"]
mod pod_bridge;
#[path = "real_site/pool_jobs.rs"]
mod pool_jobs;
#[path = "real_site/refusals.rs"]
mod refusals;
#[expect(dead_code, reason = "the model plays the scripts in tests/expansion.rs")]
#[path = "expansion/script.rs"]
mod script;
#[path = "real_site/scripts.rs"]
mod scripts;
#[path = "real_site/service_endpoints.rs"]
mod service_endpoints;
#[path = "real_site/stage.rs"]
mod stage;
#[expect(dead_code, reason = "tests/simulation.rs uses the rest")]
mod support;
#[path = "real_site/transcript.rs"]
mod transcript;

use support::etcd as simulated_etcd;
