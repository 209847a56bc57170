//! Whether the bearer of a token may read a path of another server than the API server, as the API server decides it:
//! TokenReview, then SubjectAccessReview (k8s.io/apiserver, delegated authentication and authorization).

use std::path::PathBuf;
use std::time::Duration;

use axum::http::Uri;
use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SubjectAccessReview,
    SubjectAccessReviewSpec,
};
use kube::api::{Api, PostParams};
use kube::config::AuthInfo;
use kube::{Client, Config};

use super::client::ApiError;
use crate::pki::tls_provider::install_tls_provider;

/// Deadline of a connection to the API server.
const CONNECT: Duration = Duration::from_secs(5);

/// What the bearer of a token may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenAccess {
    /// It may read the path.
    Allowed,
    /// It may not.
    Forbidden {
        /// Whose token it is.
        user: String,
    },
    /// The token is of no user: it is invalid, or has expired.
    Unauthenticated,
}

/// An API server that reviews tokens with the rights of their bearers.
#[derive(Debug, Clone)]
pub struct ReviewServer {
    /// `https://127.0.0.1:7443`
    pub url: Uri,
    /// PEM file of its CA, read again when it is replaced. Without one, those of the system.
    pub ca: Option<PathBuf>,
}

/// Whether the bearer of this token may use this verb on this path, as the API server answers the bearer: SelfSubjectReview,
/// then SelfSubjectAccessReview. The caller needs no rights of its own.
///
/// # Errors
/// When the API server does not answer or refuses the reviews to every user.
pub async fn own_access(
    server: &ReviewServer,
    token: &str,
    (verb, path): (&str, &str),
) -> Result<TokenAccess, ApiError> {
    install_tls_provider();
    let mut config = Config::new(server.url.clone());
    config.root_cert_file.clone_from(&server.ca);
    config.proxy_url = None;
    config.auth_info = AuthInfo { token: Some(token.to_owned().into()), ..AuthInfo::default() };
    config.connect_timeout = Some(CONNECT);
    config.default_retry = false;
    let client =
        Client::try_from(config).map_err(|error| ApiError::new("create", "selfsubjectreview", error))?;
    let api: Api<SelfSubjectReview> = Api::all(client.clone());
    let user = match api.create(&PostParams::default(), &SelfSubjectReview::default()).await {
        Ok(reviewed) => reviewed.status.and_then(|status| status.user_info).and_then(|user| user.username),
        Err(kube::Error::Api(status)) if status.code == 401 => return Ok(TokenAccess::Unauthenticated),
        Err(error) => return Err(ApiError::new("create", "selfsubjectreview", error)),
    };
    let attributes = NonResourceAttributes { path: Some(path.to_owned()), verb: Some(verb.to_owned()) };
    let spec =
        SelfSubjectAccessReviewSpec { non_resource_attributes: Some(attributes), resource_attributes: None };
    let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
    let api: Api<SelfSubjectAccessReview> = Api::all(client);
    let reviewed = api.create(&PostParams::default(), &review).await;
    let reviewed = reviewed.map_err(|error| ApiError::new("create", "selfsubjectaccessreview", error))?;
    let allowed = reviewed.status.is_some_and(|status| status.allowed);
    Ok(if allowed { TokenAccess::Allowed } else { TokenAccess::Forbidden { user: user.unwrap_or_default() } })
}

/// Whether the bearer of this token may `get` this path.
///
/// # Errors
/// When the API server does not answer or refuses the reviews.
pub async fn may_get(client: &Client, token: &str, path: &str) -> Result<TokenAccess, ApiError> {
    let Some(user) = user(client, token).await? else { return Ok(TokenAccess::Unauthenticated) };
    let name = user.username.clone().unwrap_or_default();
    let review = SubjectAccessReview { spec: access(user, path), ..SubjectAccessReview::default() };
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    let reviewed = api.create(&PostParams::default(), &review).await;
    let reviewed = reviewed.map_err(|error| ApiError::new("create", "subjectaccessreview", error))?;
    let allowed = reviewed.status.is_some_and(|status| status.allowed);
    Ok(if allowed { TokenAccess::Allowed } else { TokenAccess::Forbidden { user: name } })
}

async fn user(client: &Client, token: &str) -> Result<Option<UserInfo>, ApiError> {
    let spec = TokenReviewSpec { token: Some(token.to_owned()), audiences: None };
    let api: Api<TokenReview> = Api::all(client.clone());
    let review = TokenReview { spec, ..TokenReview::default() };
    let reviewed = api.create(&PostParams::default(), &review).await;
    let reviewed = reviewed.map_err(|error| ApiError::new("create", "tokenreview", error))?;
    let status = reviewed.status.unwrap_or_default();
    Ok(status.user.filter(|_| status.authenticated == Some(true)))
}

fn access(user: UserInfo, path: &str) -> SubjectAccessReviewSpec {
    let attributes = NonResourceAttributes { path: Some(path.to_owned()), verb: Some("get".to_owned()) };
    SubjectAccessReviewSpec {
        user: user.username,
        uid: user.uid,
        groups: user.groups,
        extra: user.extra,
        non_resource_attributes: Some(attributes),
        resource_attributes: None,
    }
}
