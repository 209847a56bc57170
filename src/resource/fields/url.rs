//! Which texts are URLs that a host may be told to ask.

use crate::resource::fields::given::{FieldError, Given};

/// A required field that is a URL of http or https.
pub(in crate::resource) fn field(given: &Given, field: &'static str) -> Result<String, FieldError> {
    let url = given.need(field)?;
    match fault(&url) {
        None => Ok(url),
        Some(reason) => Err(given.invalid(field, reason)),
    }
}

/// RFC 3986: what is not in this set of characters must be percent-encoded. Quotes and backslashes are not
/// in it, so that a URL can stand in the configuration of curl as it is.
fn fault(url: &str) -> Option<&'static str> {
    let rest = ["http://", "https://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(c);
    match rest {
        None => Some("it must begin with http:// or https://"),
        Some(rest) if rest.is_empty() || rest.starts_with(['/', '?', '#', ':']) => Some("it names no host"),
        Some(_) if !url.chars().all(allowed) => {
            Some("it holds a character that must be written with %, as %20 for a space")
        }
        Some(_) => None,
    }
}

/// Whether a text is a host name or an IPv4 address.
pub(in crate::resource) fn is_host(text: &str) -> bool {
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
