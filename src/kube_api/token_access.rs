//! Whether the bearer of a token may read a path of another server than the API server, as the API server decides it:
//! TokenReview, then SubjectAccessReview (k8s.io/apiserver, delegated authentication and authorization).

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};

use super::client::ApiError;

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
