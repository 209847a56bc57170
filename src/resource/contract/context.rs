//! What a comparison depends on besides desired and observed.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::resource::contract::pending::Pending;

/// The same for all resources of a run, except `pending`, which grows with each change.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Start of the run; the expiry of certificates is measured from it.
    pub now: Timestamp,
    /// Certificates (PEM) of the CAs that can sign, by name.
    pub authorities: &'a BTreeMap<String, String>,
    /// Boot id of the machine that metalform runs on; `None` where it is unknown.
    pub own_boot_id: Option<&'a str>,
    /// The changes of the resources before this one.
    pub pending: &'a Pending,
}
