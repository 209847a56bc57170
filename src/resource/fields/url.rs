//! Which strings are URLs that a host may request.

use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_values::FieldValues;

/// A required field that is a URL of http or https.
pub fn field(fields: &FieldValues, field: &'static str) -> Result<String, FieldError> {
    let url = fields.need(field)?;
    match fault(&url) {
        None => Ok(url),
        Some(reason) => Err(fields.invalid(field, reason)),
    }
}

/// RFC 3986: characters outside this set must be percent-encoded. Quotes and backslashes are not in it, so that a
/// URL is valid in the configuration of curl without escapes.
fn fault(url: &str) -> Option<&'static str> {
    let rest = ["http://", "https://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(c);
    match rest {
        None => Some("must begin with http:// or https://"),
        Some(rest) if rest.is_empty() || rest.starts_with(['/', '?', '#', ':']) => {
            Some("must contain a host")
        }
        Some(_) if !url.chars().all(allowed) => Some("must be percent-encoded, such as %20 for a space"),
        Some(_) => None,
    }
}

/// Whether a string is a host name or an IPv4 address.
pub fn is_host(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-' || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_one_word_of_ascii_with_a_scheme_and_a_host() {
        for good in ["http://a", "https://u:p@a.b:8443/c%20d?e=f&g", "http://[::1]/x'y"] {
            assert_eq!(fault(good), None, "{good}");
        }
        for bad in [
            "",
            "a",
            "ftp://a",
            "http://",
            "http:///a",
            "http://a b",
            "http://a\"",
            "http://a\\",
            "http://ä",
            "http://a\n",
            "-http://a",
        ] {
            assert!(fault(bad).is_some(), "{bad:?}");
        }
    }
}
