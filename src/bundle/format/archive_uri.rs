//! URIs of archives, as they are recorded.

/// Without a user name and a password: what a bundle records is for everybody.
pub(in crate::bundle) fn without_credentials(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else { return uri.to_owned() };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_have_no_password() {
        assert_eq!(without_credentials("http://me:secret@a.example/debian"), "http://a.example/debian");
        for uri in [
            "http://a.example/debian",
            "https://a.example/tool@1.0",
            "https://a.example",
            "9/BaseOS/$basearch/os",
        ] {
            assert_eq!(without_credentials(uri), uri);
        }
    }
}
