//! Join tokens: the credentials of a new kubelet until it has a certificate.
//!
//! A token names its node by a group, and `crate::controller::csr_verdict` signs for that node only: a token that
//! leaks is good for that one node, until it expires.

use std::fmt;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams};

use super::FIELD_MANAGER;
use super::client::ApiError;
use crate::model::name::HostName;

/// The namespace in which the API server looks for tokens.
const NAMESPACE: &str = "kube-system";

/// The user name of a token, without its public part
/// (<https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/>).
pub const USER_PREFIX: &str = "system:bootstrap:";

/// Prefix of a node's group.
const GROUP_PREFIX: &str = "system:bootstrappers:metalform:";

/// The API server accepts groups that match `\Asystem:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]\z`.
const LONGEST_GROUP: usize = "system:bootstrappers:".len() + 256;

/// Five bits for each letter, so that all are equally likely; a token's letters are `[a-z0-9]`.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The node's name does not fit into a group.
    #[error("node name {name} is too long for a join token: at most {} characters", LONGEST_GROUP - GROUP_PREFIX.len())]
    NameTooLong { name: HostName },
    /// The API refused it.
    #[error(transparent)]
    Api(#[from] ApiError),
}

/// A token. `Debug` shows its public part only.
#[derive(Clone, PartialEq, Eq)]
pub struct BootstrapToken {
    id: String,
    secret: String,
}

impl fmt::Debug for BootstrapToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BootstrapToken").field("id", &self.id).finish_non_exhaustive()
    }
}

impl BootstrapToken {
    /// From 22 bytes of a cryptographic generator: 6 for the public part, 16 (80 bits of entropy) for the secret.
    pub fn from_random(bytes: [u8; 22]) -> Self {
        let text =
            |bytes: &[u8]| bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect();
        let (id, secret) = bytes.split_at(6);
        Self { id: text(id), secret: text(secret) }
    }

    /// The public part: six letters.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The bearer token of the kubelet: `abcdef.0123456789abcdef`. A secret.
    pub fn bearer(&self) -> String {
        format!("{}.{}", self.id, self.secret)
    }
}

/// The group of tokens for this node. No two nodes have the same: a name contains no `:`, and a group no `.`,
/// and each `.` becomes a `:`.
///
/// # Errors
/// [`TokenError::NameTooLong`] for names of more than 246 characters.
pub fn group(node: &HostName) -> Result<String, TokenError> {
    let group = format!("{GROUP_PREFIX}{}", node.as_str().replace('.', ":"));
    if group.len() > LONGEST_GROUP {
        return Err(TokenError::NameTooLong { name: node.clone() });
    }
    Ok(group)
}

/// Creates a token, valid for one node until it expires.
///
/// # Errors
/// When the name is too long or the API refuses.
pub async fn create(
    client: &Client,
    token: &BootstrapToken,
    node: &HostName,
    expires: Timestamp,
) -> Result<(), TokenError> {
    let secret = secret(token, node, expires)?;
    let api: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let parameters = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let created = api.create(&parameters, &secret).await;
    created.map_err(|error| ApiError::new("create", object(&token.id), error))?;
    Ok(())
}

/// Deletes a token; one that does not exist is no error.
///
/// # Errors
/// When the API does not answer or refuses; the token then expires.
pub async fn delete(client: &Client, id: &str) -> Result<(), ApiError> {
    let api: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let deleted = api.delete(&secret_name(id), &DeleteParams::default()).await;
    match deleted.map_err(|error| ApiError::new("delete", object(id), error)) {
        Ok(_) | Err(ApiError::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Ids of all tokens for a node, those of runs that were killed included.
///
/// # Errors
/// When the name is too long, or the API does not answer or refuses.
pub async fn ids(client: &Client, node: &HostName) -> Result<Vec<String>, TokenError> {
    let group = group(node)?;
    let api: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let tokens = ListParams::default().fields("type=bootstrap.kubernetes.io/token");
    let listed = api.list(&tokens).await.map_err(|error| ApiError::new("list", "join tokens", error))?;
    let field = |secret: &Secret, key: &str| {
        let bytes = secret.data.as_ref()?.get(key)?;
        Some(String::from_utf8_lossy(&bytes.0).into_owned())
    };
    let ours =
        listed.items.iter().filter(|secret| field(secret, "auth-extra-groups").as_ref() == Some(&group));
    Ok(ours.filter_map(|secret| field(secret, "token-id")).collect())
}

fn secret_name(id: &str) -> String {
    format!("bootstrap-token-{id}")
}

fn object(id: &str) -> String {
    format!("secret/{NAMESPACE}/{}", secret_name(id))
}

/// <https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/#bootstrap-token-secret-format>
fn secret(token: &BootstrapToken, node: &HostName, expires: Timestamp) -> Result<Secret, TokenError> {
    let data = [
        ("description", format!("metalform: lets {node} join")),
        ("token-id", token.id.clone()),
        ("token-secret", token.secret.clone()),
        ("expiration", expires.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()),
        ("usage-bootstrap-authentication", "true".to_owned()),
        ("auth-extra-groups", group(node)?),
    ];
    Ok(Secret {
        metadata: ObjectMeta { name: Some(secret_name(&token.id)), ..ObjectMeta::default() },
        type_: Some("bootstrap.kubernetes.io/token".to_owned()),
        string_data: Some(data.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ..Secret::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> BootstrapToken {
        BootstrapToken::from_random(std::array::from_fn(|n| u8::try_from(n * 11).unwrap()))
    }

    #[test]
    fn a_secret_has_the_fields_of_a_bootstrap_token() {
        let secret = secret(&token(), &"n1.rack-2".parse().unwrap(), Timestamp::UNIX_EPOCH).unwrap();
        insta::assert_yaml_snapshot!(secret, @r#"
        apiVersion: v1
        kind: Secret
        metadata:
          name: bootstrap-token-alwbmx
        stringData:
          auth-extra-groups: "system:bootstrappers:metalform:n1:rack-2"
          description: "metalform: lets n1.rack-2 join"
          expiration: "1970-01-01T00:00:00Z"
          token-id: alwbmx
          token-secret: cnydozep2fq3gr4h
          usage-bootstrap-authentication: "true"
        type: bootstrap.kubernetes.io/token
        "#);
    }

    #[test]
    fn debug_does_not_show_the_secret() {
        assert_eq!(format!("{:?}", token()), r#"BootstrapToken { id: "alwbmx", .. }"#);
    }

    #[test]
    fn each_node_has_its_own_group() {
        let group = |name: &str| group(&name.parse().unwrap()).unwrap();
        assert_eq!(group("n1.rack--2"), "system:bootstrappers:metalform:n1:rack--2");
        assert_ne!(group("a.b"), group("a-b"));
        assert_ne!(group("a.b"), group("a--b"));
    }

    #[test]
    fn a_group_is_never_longer_than_the_api_server_accepts() {
        let long = |length: usize| -> HostName {
            let text = format!("{}.", "a".repeat(61)).repeat(5);
            text[..length].parse().unwrap()
        };
        assert_eq!(group(&long(246)).unwrap().len(), LONGEST_GROUP);
        assert!(matches!(group(&long(247)), Err(TokenError::NameTooLong { .. })));
    }
}
