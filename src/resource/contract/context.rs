//! What a comparison needs to know beside the desired and the observed.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::resource::contract::pending::Pending;

/// The same for all resources of one run, but for `pending`, which grows with each change.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// When the run began.
    pub now: Timestamp,
    /// Certificates (PEM) of the authorities that can sign, by name.
    pub authorities: &'a BTreeMap<String, String>,
    /// Boot id of the machine that metalform runs on; `None` where it is not known.
    pub own_boot_id: Option<&'a str>,
    /// What the resources before this one will have changed.
    pub pending: &'a Pending,
}
