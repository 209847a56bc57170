//! Certificate authorities, leaf certificates, kubeconfigs and the signing key of the package repositories.
//!
//! Nothing here touches the disk. Keys are ECDSA P-256 (the repositories' is Ed25519); the clock and the
//! random generator are arguments. Only the nonces of ECDSA signatures come from the operating system's
//! generator: rcgen signs with ring, which accepts no other.

pub mod authorities;
pub mod authority;
pub mod bundle_signature;
pub mod certificate_request;
mod ecdsa;
pub mod encryption_key;
pub mod https_client;
pub mod kubeconfig;
pub mod leaf;
mod leaf_check;
pub mod openpgp;
pub mod routing_key;
pub mod serial;
pub mod service_account;
pub mod tls_provider;
pub mod validity;
