//! What a mirror has, for `metalform mirror status`: as its last sync left it, and before the first one nothing.

use std::io;
use std::path::PathBuf;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::mirror::contents::MirrorContents;

/// Responds with the file's content, which is JSON.
pub(super) async fn respond(State(file): State<PathBuf>) -> Response {
    match tokio::fs::read(&file).await {
        Ok(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Json(MirrorContents::default()).into_response()
        }
        Err(error) => {
            tracing::warn!("{}: {error}", file.display());
            (StatusCode::INTERNAL_SERVER_ERROR, "cannot read what this mirror has\n").into_response()
        }
    }
}
