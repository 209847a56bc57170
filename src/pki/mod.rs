//! Authorities, leaf certificates, kubeconfigs and the repository's signing key.
//!
//! Keys are ECDSA P-256 (the repository's is Ed25519). Clock and serial numbers are arguments; the private
//! keys of certificates come from the operating system's generator, which rcgen gives no way to replace.

pub mod authority;
pub mod certificate_request;
pub mod encryption_key;
pub mod kubeconfig;
pub mod leaf;
pub mod openpgp;
pub mod serial;
pub mod service_account;
pub mod store;
pub mod validity;
