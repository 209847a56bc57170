//! The fields `url`, `sha256` and `ca` of kinds that download.

use crate::resource::contract::remote_file::RemoteFile;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::fields::path;
use crate::resource::fields::url;

pub const URL: FieldSpec = FieldSpec::required(
    "url",
    FieldType::String,
    "http or https URL; the host downloads it with curl or wget, whichever is installed.",
);

pub const SHA256: FieldSpec = FieldSpec::required(
    "sha256",
    FieldType::String,
    "Expected SHA-256 digest, 64 hexadecimal digits. A download with another digest is not installed.",
);

pub const CA: FieldSpec = FieldSpec::optional(
    "ca",
    FieldType::String,
    "Path on the host of the CA certificate that verifies https; the system's store by default.",
);

pub fn parse(fields: &FieldValues) -> Result<RemoteFile, FieldError> {
    let sha256 = fields.need("sha256")?.to_ascii_lowercase();
    if sha256.len() != 64 || !sha256.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(fields.invalid("sha256", "must be 64 hexadecimal digits"));
    }
    Ok(RemoteFile { url: url::field(fields, "url")?, sha256, ca: path::field(fields, "ca")? })
}
