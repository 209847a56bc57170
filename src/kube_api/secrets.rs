//! Data of Secrets. It is read for one use and kept nowhere; `Debug` does not print it.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::Api;
use zeroize::Zeroizing;

use super::client::ApiError;

/// The data of a Secret, by key. Its memory is overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct SecretData(BTreeMap<String, Zeroizing<Vec<u8>>>);

/// Why the data of a Secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// It does not exist, or may not be read.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// Its type shows that it is for something else.
    #[error("Secret {name} has type {found:?}, expected {expected:?}")]
    Type {
        /// `NAMESPACE/NAME`.
        name: String,
        /// Of the Secret.
        found: String,
        /// That is required.
        expected: &'static str,
    },
    /// It has no such key.
    #[error("Secret {name} has no key {key:?}")]
    NoKey {
        /// `NAMESPACE/NAME`.
        name: String,
        /// Of its data.
        key: String,
    },
    /// A value is no string.
    #[error("Secret {name}: {key:?} is not UTF-8")]
    NotText {
        /// `NAMESPACE/NAME`.
        name: String,
        /// Of its data.
        key: String,
    },
}

/// Reads a Secret of this type.
///
/// # Errors
/// When it cannot be read, or has another type.
pub async fn read(
    client: &Client,
    (namespace, name): (&str, &str),
    expected: &'static str,
) -> Result<SecretData, SecretError> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let object = format!("{namespace}/{name}");
    let secret =
        secrets.get(name).await.map_err(|error| ApiError::new("get", format!("secret/{object}"), error))?;
    let found = secret.type_.unwrap_or_default();
    if found != expected {
        return Err(SecretError::Type { name: object, found, expected });
    }
    let data = secret.data.unwrap_or_default().into_iter();
    Ok(SecretData(data.map(|(key, value)| (key, Zeroizing::new(value.0))).collect()))
}

impl SecretData {
    /// All values, as strings. `name` is `NAMESPACE/NAME`, for the error.
    ///
    /// # Errors
    /// The first value that is not UTF-8.
    pub fn texts(&self, name: &str) -> Result<BTreeMap<&str, &str>, SecretError> {
        self.0.keys().map(|key| Ok((key.as_str(), self.text(name, key)?))).collect()
    }

    /// One value. `name` is `NAMESPACE/NAME`, for the error.
    ///
    /// # Errors
    /// When it is missing, or not UTF-8.
    pub fn text(&self, name: &str, key: &str) -> Result<&str, SecretError> {
        let (name, key) = (name.to_owned(), key.to_owned());
        let Some(value) = self.0.get(&key) else { return Err(SecretError::NoKey { name, key }) };
        std::str::from_utf8(value).map_err(|_| SecretError::NotText { name, key })
    }
}

impl fmt::Debug for SecretData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}
