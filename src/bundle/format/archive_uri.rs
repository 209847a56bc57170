//! URIs of archives, as they are recorded.

/// Without a user name and a password: what a bundle records is for everybody.
pub(super) fn without_credentials(uri: &str) -> String {
    match uri.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?.1))) {
        Some((scheme, rest)) => format!("{scheme}://{rest}"),
        None => uri.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_have_no_password() {
        assert_eq!(without_credentials("http://me:secret@a.example/debian"), "http://a.example/debian");
        assert_eq!(without_credentials("http://a.example/debian"), "http://a.example/debian");
    }
}
