//! `mirror sync`: makes this mirror what the bootstrap node is.

use super::command_error::{CommandError, ErrorClass};
use super::image_store::{ImageStoreError, lock};
use super::registry_writer::{self, RegistryWriterError};
use crate::bundle::event::BundleEvents;
use crate::mirror::contents::MirrorItem;
use crate::mirror::sync::{SyncError, SyncRequest, Synced, sync};
use crate::model::error_chain::error_chain;
use crate::workspace::layout::Layout;

/// Why this mirror is not what the bootstrap node is.
#[derive(Debug, thiserror::Error)]
pub enum MirrorSyncError {
    /// Another process changes images.
    #[error(transparent)]
    Lock(Box<ImageStoreError>),
    /// Something was not copied, or not removed.
    #[error("{}", error_chain(.0.as_ref()))]
    Sync(Box<SyncError>),
    /// Images were not copied; all else was.
    #[error("{}", .0.join("\n"))]
    Images(Vec<String>),
    /// Blobs were not freed.
    #[error(transparent)]
    Writer(#[from] RegistryWriterError),
}

impl CommandError for MirrorSyncError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Lock(error) => error.class(),
            Self::Sync(_) | Self::Images(_) | Self::Writer(_) => ErrorClass::Host,
        }
    }

    fn errors(&self) -> Vec<String> {
        match self {
            Self::Images(failed) => failed.clone(),
            _ => vec![self.to_string()],
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Lock(error) => error.hints(),
            _ => Vec::new(),
        }
    }
}

/// Copies what this mirror lacks and removes what the bootstrap node no longer has, as [`sync`], while no other process
/// changes images. Blobs that no image has any more are freed.
///
/// # Errors
/// When something was not copied or removed; the next sync goes on from there.
pub async fn run(
    layout: &Layout,
    request: &SyncRequest,
    events: BundleEvents<'_>,
) -> Result<Synced, MirrorSyncError> {
    let _lock = lock(layout).map_err(|error| MirrorSyncError::Lock(Box::new(error)))?;
    let mut synced = sync(request, events).await.map_err(|error| MirrorSyncError::Sync(Box::new(error)))?;
    if synced.removed.iter().any(|item| matches!(item, MirrorItem::Image(_))) {
        registry_writer::restart(&request.registry).await?;
    }
    match std::mem::take(&mut synced.failed) {
        none if none.is_empty() => Ok(synced),
        failed => Err(MirrorSyncError::Images(failed)),
    }
}
