//! The filters we add to minijinja's own (`default`, `indent`, `join`, `replace` and so on). Kept few: what
//! needs more than this belongs in Rust, as a value.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::{Environment, Error, ErrorKind, Value};

/// Makes every filter below known under its function's name.
pub(super) fn register(environment: &mut Environment<'_>) {
    environment.add_filter("to_json", to_json);
    environment.add_filter("b64encode", b64encode);
}

/// `{{ names | to_json }}`: one line of JSON, which is YAML too. Unlike minijinja's `tojson` it escapes
/// nothing for HTML.
fn to_json(value: &Value) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| {
        Error::new(ErrorKind::BadSerialization, "this has no form in JSON").with_source(error)
    })
}

/// `{{ text | b64encode }}`: base64 with padding (RFC 4648 section 4) of the UTF-8 bytes.
fn b64encode(text: &str) -> String {
    STANDARD.encode(text)
}
