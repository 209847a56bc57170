//! The body of a request as a stream that ends with an error where it is larger or slower than it may be.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt};
use tokio::time::timeout;

use super::push_request::Refusal;

/// Why a body was not read to its end; shared with the stream.
#[derive(Debug, Clone, Default)]
pub(super) struct BodyFault(Arc<Mutex<Option<Refusal>>>);

impl BodyFault {
    pub(super) fn get(&self) -> Option<Refusal> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, refusal: Refusal) -> std::io::Error {
        let error = std::io::Error::other(refusal.message.clone());
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
        error
    }
}

/// More than a limit.
pub(super) fn too_large(limit: u64) -> Refusal {
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "SIZE_INVALID", format!("more than {limit} bytes"))
}

/// At most `limit` bytes, and no pause longer than `stall`.
pub(super) fn limited(
    body: Body,
    limit: u64,
    stall: Duration,
    fault: &BodyFault,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send + use<> {
    let state = (body.into_data_stream(), limit, fault.clone());
    stream::try_unfold(state, move |(mut body, left, fault)| async move {
        let Ok(next) = timeout(stall, body.next()).await else {
            let message = format!("no byte within {} s", stall.as_secs());
            return Err(fault.set(Refusal::new(StatusCode::REQUEST_TIMEOUT, "BLOB_UPLOAD_INVALID", message)));
        };
        let Some(chunk) = next else { return Ok(None) };
        let chunk = chunk.map_err(std::io::Error::other)?;
        match left.checked_sub(chunk.len() as u64) {
            Some(left) => Ok(Some((chunk, (body, left, fault)))),
            None => Err(fault.set(too_large(limit))),
        }
    })
}

#[cfg(test)]
mod tests {
    use futures::stream::TryStreamExt;

    use super::*;

    async fn read(body: Body, limit: u64) -> (usize, Option<u16>) {
        let fault = BodyFault::default();
        let mut stream = Box::pin(limited(body, limit, Duration::from_secs(60), &fault));
        let mut read = 0;
        while let Ok(Some(chunk)) = stream.try_next().await {
            read += chunk.len();
        }
        (read, fault.get().map(|refusal| refusal.status.as_u16()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_ends_at_its_limit_and_when_it_stalls() {
        let chunks =
            || stream::iter([4, 4, 4].map(|length| Ok::<_, std::io::Error>(Bytes::from(vec![0; length]))));
        assert_eq!(read(Body::from_stream(chunks()), 12).await, (12, None));
        assert_eq!(read(Body::from_stream(chunks()), 11).await, (8, Some(413)));
        assert_eq!(read(Body::empty(), 0).await, (0, None));
        let stalls = chunks().chain(stream::pending());
        assert_eq!(read(Body::from_stream(stalls), 100).await, (12, Some(408)));
    }
}
