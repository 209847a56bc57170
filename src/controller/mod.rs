//! Controllers that run in services: the signer of `metalform sign`, and the passes of the machine controllers.

pub mod candidate;
pub mod certificate_requests;
mod chosen_hosts;
pub mod cluster_passes;
pub mod controller_metrics;
pub mod csr_verdict;
pub mod event_recorder;
pub mod host_jobs;
pub mod host_life_pass;
pub mod host_workers;
pub mod job_performer;
pub mod kubelet_signer;
pub mod leadership;
pub mod life_context;
mod life_requests;
pub mod machine_caches;
pub mod machine_controller;
pub mod machine_life_pass;
pub mod machine_pass;
pub mod machine_requests;
mod measured_performer;
pub mod pass_key;
pub mod pass_loop;
pub mod pass_queue;
pub mod pool_collector;
pub mod pool_workers;
pub mod wake;
