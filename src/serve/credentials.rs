//! Tokens in the headers of requests.

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The token of `Authorization: Bearer TOKEN` (RFC 6750); the scheme in any case (RFC 9110).
pub(super) fn bearer(headers: &HeaderMap) -> Option<String> {
    of_scheme(headers, "bearer").map(str::to_owned)
}

/// The token of a bearer, or the password of `Authorization: Basic` (RFC 7617), whatever the user.
pub(super) fn bearer_or_password(headers: &HeaderMap) -> Option<String> {
    if let Some(token) = bearer(headers) {
        return Some(token);
    }
    let decoded = String::from_utf8(STANDARD.decode(of_scheme(headers, "basic")?).ok()?).ok()?;
    let (_, password) = decoded.split_once(':')?;
    // What cannot be in a header is no token.
    let is_token = !password.is_empty() && password.bytes().all(|byte| byte.is_ascii_graphic());
    is_token.then(|| password.to_owned())
}

fn of_scheme<'a>(headers: &'a HeaderMap, expected: &str) -> Option<&'a str> {
    let (scheme, credentials) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let credentials = credentials.trim();
    (scheme.eq_ignore_ascii_case(expected) && !credentials.is_empty()).then_some(credentials)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_what_follows_the_scheme_or_the_password() {
        for (header, token, either) in [
            ("Bearer abc.def", Some("abc.def"), Some("abc.def")),
            ("bearer  abc", Some("abc"), Some("abc")),
            ("Bearer", None, None),
            ("Bearer ", None, None),
            // token:a:b
            ("Basic dG9rZW46YTpi", None, Some("a:b")),
            ("basic dG9rZW46YTpi", None, Some("a:b")),
            // token:
            ("Basic dG9rZW46", None, None),
            // token
            ("Basic dG9rZW4=", None, None),
            // token:a\nb
            ("Basic dG9rZW46YQpi", None, None),
            ("Basic ???", None, None),
            ("abc", None, None),
            ("", None, None),
        ] {
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, header.parse().unwrap())]);
            assert_eq!(bearer(&headers).as_deref(), token, "{header}");
            assert_eq!(bearer_or_password(&headers).as_deref(), either, "{header}");
        }
        assert_eq!(bearer_or_password(&HeaderMap::new()), None);
    }
}
