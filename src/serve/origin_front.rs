//! What a mirror lacks, or cannot read, as its origin has it: the mirror is behind, or its registry is down.
//!
//! The request is forwarded, and not redirected: a client trusts the certificate of the name that it has asked, and apt
//! knows no other one.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, Response as HttpResponse, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use super::forwarded_headers;
use crate::mirror::contents;
use crate::mirror::origin::Origin;
use crate::model::error_chain::error_chain;

/// Answers in place of a mirror that lacks something. Where the origin does not answer, the mirror's own response stays.
pub(super) async fn fall_back(State(origin): State<Arc<Origin>>, request: Request, next: Next) -> Response {
    let asked = match request.uri().path_and_query() {
        Some(target) if request.uri().path() != contents::PATH => {
            Some((request.method().clone(), target.clone(), request.headers().clone()))
        }
        _ => None,
    };
    let own = next.run(request).await;
    let lacks = own.status() == StatusCode::NOT_FOUND || own.status().is_server_error();
    let Some((method, target, headers)) = asked.filter(|(method, ..)| lacks && is_read(method)) else {
        return own;
    };
    match origin.ask(method, target.as_str(), forwarded_headers::of_request(headers)).await {
        Ok(response) => {
            let mut response = HttpResponse::from(response).map(Body::new);
            *response.headers_mut() = forwarded_headers::of_response(std::mem::take(response.headers_mut()));
            response
        }
        Err(error) => {
            tracing::warn!("{}", error_chain(&error));
            own
        }
    }
}

fn is_read(method: &Method) -> bool {
    [Method::GET, Method::HEAD].contains(method)
}
