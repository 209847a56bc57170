//! Controllers that run in services: the signer of `metalform sign`, and the passes of the machine controllers.

pub mod certificate_requests;
pub mod csr_verdict;
pub mod host_life_pass;
pub mod host_workers;
pub mod kubelet_signer;
pub mod life_context;
mod life_requests;
pub mod machine_life_pass;
pub mod machine_pass;
pub mod machine_requests;
