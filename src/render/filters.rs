//! The filters besides those of minijinja (`default`, `indent`, `join`, `replace` and so on). There are few: a value that
//! needs more is computed in Rust.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::{Environment, Error, ErrorKind, Value};

use crate::model::image_reference;

/// Registers the filters by the names of their functions.
pub(super) fn register(environment: &mut Environment<'_>) {
    environment.add_filter("to_json", to_json);
    environment.add_filter("b64encode", b64encode);
    environment.add_filter("without_tag", without_tag);
}

/// `{{ names | to_json }}`: one line of JSON, which is YAML too. Unlike minijinja's `tojson` it escapes
/// nothing for HTML.
fn to_json(value: &Value) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| {
        Error::new(ErrorKind::BadSerialization, "the value has no JSON form").with_source(error)
    })
}

/// `{{ text | b64encode }}`: base64 with padding (RFC 4648 section 4) of the UTF-8 bytes.
fn b64encode(text: &str) -> String {
    STANDARD.encode(text)
}

/// `{{ cluster.images.pause | without_tag }}`: the name under which containerd stores an image with a digest.
fn without_tag(reference: &str) -> String {
    image_reference::without_tag(reference)
}
