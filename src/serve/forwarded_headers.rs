//! The headers that go on with a request or response which is forwarded.

use axum::http::{HeaderMap, header};

/// Apply to one connection only (RFC 9110 section 7.6.1).
const HOP_BY_HOP: [header::HeaderName; 6] = [
    header::CONNECTION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::PROXY_AUTHORIZATION,
];

/// Of a request without a body.
pub(super) fn of_request(mut headers: HeaderMap) -> HeaderMap {
    for name in [header::HOST, header::CONTENT_LENGTH, header::EXPECT] {
        headers.remove(name);
    }
    of_response(headers)
}

/// Of a response.
pub(super) fn of_response(mut headers: HeaderMap) -> HeaderMap {
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    headers
}
