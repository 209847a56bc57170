//! The CAs and keys of the cluster: read once, or generated in memory for a dry run.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;

use super::Workspace;
use crate::pki::authority::Authority;
use crate::pki::encryption_key::encryption_key;
use crate::pki::openpgp::RepositoryKey;
use crate::pki::serial::Serial;
use crate::pki::service_account::ServiceAccountKey;
use crate::pki::store::{Authorities, StoreError};
use crate::workspace::trust::{self, Trust, TrustError};

/// Empty until it is first needed.
pub(super) struct TrustSource(Mutex<Option<Arc<Trust>>>);

impl TrustSource {
    pub(super) fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// What signs. In a dry run, what does not exist is generated, and nothing is written.
    pub(super) fn get(&self, workspace: &Workspace, dry: bool) -> Result<Arc<Trust>, TrustError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(trust) = &*known {
            return Ok(trust.clone());
        }
        let now = (workspace.now)();
        // Reading creates what is missing until `trust::load` of workspace/ is strict.
        let read = if !workspace.layout.pki().join("ca.key").exists() && dry {
            in_memory(now)?
        } else {
            trust::load(&workspace.layout, now, &mut rand::rng())?
        };
        Ok(known.insert(Arc::new(read)).clone())
    }

    /// Creates what is missing; returns how many files that were.
    pub(super) fn create(&self, workspace: &Workspace) -> Result<usize, TrustError> {
        let now = (workspace.now)();
        let missing = trust::missing(&workspace.layout, &workspace.subject, now).len();
        let created = trust::create(&workspace.layout, &workspace.subject, now, &mut rand::rng())?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(created));
        Ok(missing)
    }
}

/// Stands for `Trust::in_memory` of workspace/.
fn in_memory(now: Timestamp) -> Result<Trust, TrustError> {
    let rng = &mut rand::rng();
    let mut authority = |name: &str| {
        Authority::create(name, now, Serial::random(rng))
            .map_err(|source| StoreError::Authority { path: name.into(), source })
    };
    let (kubernetes, etcd, front_proxy) = (
        authority("metalform-kubernetes")?,
        authority("metalform-etcd")?,
        authority("metalform-front-proxy")?,
    );
    let service_account = ServiceAccountKey::create()
        .map_err(|source| StoreError::ServiceAccount { path: "sa.key".into(), source })?;
    let repository = RepositoryKey::create("metalform repository", now, rng)
        .map_err(|source| StoreError::Repository { path: "repository.key".into(), source })?;
    let authorities = Authorities { kubernetes, etcd, front_proxy, service_account, repository };
    Ok(Trust { authorities, encryption_key: encryption_key(rng) })
}
