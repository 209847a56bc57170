//! Host keys seen for the first time, for people.

use crate::service::new_host_key::NewHostKey;

/// A line for each key; empty where there is none.
pub fn text(keys: &[NewHostKey]) -> String {
    let line = |new: &NewHostKey| format!("  {} ({}): {}\n", new.node, new.address, new.key);
    match keys {
        [] => String::new(),
        keys => format!("host keys seen for the first time:\n{}", keys.iter().map(line).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_new_key_is_a_line() {
        let new = |node: &str, address: &str| NewHostKey {
            node: node.parse().unwrap(),
            address: address.to_owned(),
            key: "ssh-ed25519 SHA256:abc".to_owned(),
        };
        assert_eq!(text(&[]), "");
        insta::assert_snapshot!(text(&[new("a", "192.0.2.1:22"), new("b", "[2001:db8::1]:22")]), @"
        host keys seen for the first time:
          a (192.0.2.1:22): ssh-ed25519 SHA256:abc
          b ([2001:db8::1]:22): ssh-ed25519 SHA256:abc
        ");
    }
}
