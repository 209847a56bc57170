//! Files of metalform on the bootstrap node: where they are, and the certificate authorities among them.

pub mod layout;
pub mod trust;
