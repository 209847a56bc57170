//! The CAs and keys of the cluster: read once, or generated in memory for a dry run.

use std::sync::{Arc, Mutex, PoisonError};

use super::Workspace;
use crate::workspace::trust::{self, Trust, TrustError};

/// Empty until it is first needed.
pub(super) struct TrustSource(Mutex<Option<Arc<Trust>>>);

impl TrustSource {
    pub(super) fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// The keys of the cluster. In a dry run on a host without any, new ones are generated in memory, and no file is
    /// written.
    pub(super) fn get(&self, workspace: &Workspace, dry: bool) -> Result<Arc<Trust>, TrustError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(trust) = &*known {
            return Ok(trust.clone());
        }
        let (layout, subject, now) = (&workspace.layout, &workspace.subject, (workspace.now)());
        let trust = match trust::load(layout) {
            Ok(trust) => trust,
            // Keys that a cluster has lost fail here, as they do when it is not a dry run.
            Err(_) if dry && !trust::missing(layout, subject, now)?.is_empty() => {
                Trust::in_memory(subject, now, &mut rand::rng())?
            }
            Err(error) => return Err(error),
        };
        Ok(known.insert(Arc::new(trust)).clone())
    }

    /// Creates what is missing; returns how many files that were.
    pub(super) fn create(&self, workspace: &Workspace) -> Result<usize, TrustError> {
        let now = (workspace.now)();
        let missing = trust::missing(&workspace.layout, &workspace.subject, now)?.len();
        let created = trust::create(&workspace.layout, &workspace.subject, now, &mut rand::rng())?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(created));
        Ok(missing)
    }
}
