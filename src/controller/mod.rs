//! Controllers that run in `metalform sign`.

pub mod certificate_requests;
pub mod csr_verdict;
pub mod kubelet_signer;
