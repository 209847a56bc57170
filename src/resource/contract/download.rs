//! What a host fetches by itself: where from, and the digest that it must have.

use crate::resource::fields::field::{FieldSort, FieldSpec};
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::fields::path;
use crate::resource::fields::url;

pub(in crate::resource) const URL: FieldSpec = FieldSpec {
    name: "url",
    sort: FieldSort::Text,
    required: true,
    about: "Where the host gets it, by http or https, with curl or wget, whichever it has.",
};

pub(in crate::resource) const SHA256: FieldSpec = FieldSpec {
    name: "sha256",
    sort: FieldSort::Text,
    required: true,
    about: "Digest that it must have, 64 hexadecimal digits; else nothing is put in place.",
};

pub(in crate::resource) const CA: FieldSpec = FieldSpec {
    name: "ca",
    sort: FieldSort::Text,
    required: false,
    about: "Path on the host of the authority that https is checked against; the system's by default.",
};

/// Something to fetch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Download {
    /// Of http or https; may hold a password, so it is neither shown nor an argument of a process.
    pub url: String,
    /// SHA-256 of its content, lowercase hex.
    pub sha256: String,
    /// Path on the host of the authority that https is checked against; `None` is the system's.
    pub ca: Option<String>,
}

impl Download {
    pub(in crate::resource) fn parse(given: &Given) -> Result<Self, FieldError> {
        let sha256 = given.need("sha256")?.to_ascii_lowercase();
        if sha256.len() != 64 || !sha256.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(given.invalid("sha256", "it must be 64 hexadecimal digits"));
        }
        Ok(Self { url: url::field(given, "url")?, sha256, ca: path::field(given, "ca")? })
    }
}
