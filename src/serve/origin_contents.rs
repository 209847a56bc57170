//! What the bootstrap node serves, for the mirrors that copy it.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

use crate::bundle::digest::Sha256;
use crate::bundle::served_bundle::ServedBundle;
use crate::mirror::contents::MirrorContents;
use crate::mirror::directory::{bundle_digest, file_digests};
use crate::model::error_chain::error_chain;
use crate::registry::client::RegistryClient;
use crate::registry::error::RegistryError;
use crate::registry::user_images;

/// Where it is all read. One answer is made at a time, whoever asks.
pub(super) struct OriginContents {
    pub(super) bundles: Vec<ServedBundle>,
    pub(super) overlay: PathBuf,
    pub(super) registry: RegistryClient,
    pub(super) turn: Mutex<()>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum ContentsError {
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error("cannot read the bundles or their indexes")]
    Read(#[from] io::Error),
    #[error("interrupted")]
    Interrupted,
}

/// Responds with the [`MirrorContents`].
pub(super) async fn respond(State(origin): State<Arc<OriginContents>>) -> Response {
    let _turn = origin.turn.lock().await;
    match contents(&origin).await {
        Ok(contents) => Json(contents).into_response(),
        Err(error) => {
            let reason = error_chain(&error);
            tracing::warn!("cannot list what there is for mirrors: {reason}");
            (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response()
        }
    }
}

async fn contents(origin: &OriginContents) -> Result<MirrorContents, ContentsError> {
    let images = user_images::list(&origin.registry).await?;
    let images = images.into_iter().map(|(name, digest)| (name.to_string(), digest)).collect();
    let (bundles, overlay) = (origin.bundles.clone(), origin.overlay.clone());
    let read = spawn_blocking(move || Ok((digests(&bundles)?, indexes(&bundles, overlay)?)));
    let read: io::Result<_> = read.await.map_err(|_| ContentsError::Interrupted)?;
    let (bundles, indexes) = read?;
    Ok(MirrorContents { bundles, indexes, images, ..MirrorContents::default() })
}

fn digests(bundles: &[ServedBundle]) -> io::Result<BTreeMap<String, Sha256>> {
    bundles.iter().map(|bundle| Ok((bundle.kubernetes.clone(), bundle_digest(&bundle.directory)?))).collect()
}

/// Those of bundles that are served: others may be left from earlier ones.
fn indexes(bundles: &[ServedBundle], overlay: PathBuf) -> io::Result<BTreeMap<String, Sha256>> {
    let mut indexes = file_digests(&overlay)?;
    let prefixes: Vec<String> = bundles.iter().map(|bundle| format!("{}/", bundle.path())).collect();
    indexes.retain(|path, _| prefixes.iter().any(|prefix| path.starts_with(prefix)));
    Ok(indexes)
}
