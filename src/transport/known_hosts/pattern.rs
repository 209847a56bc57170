//! Host names of a known_hosts line.

use ring::hmac;
use russh::keys::ssh_key::known_hosts::HostPatterns;
use wildmatch::WildMatch;

/// How a known_hosts line names a host: in lowercase, and with brackets where the port is not 22.
pub fn host_field(host: &str, port: u16) -> String {
    let host = host.to_lowercase();
    if port == 22 { host } else { format!("[{host}]:{port}") }
}

/// Whether a line applies to the host of this name (a [`host_field`]). A negated pattern that matches overrides all
/// others of its line.
pub fn matches(patterns: &HostPatterns, name: &str) -> bool {
    match patterns {
        HostPatterns::Patterns(patterns) => {
            let (negated, plain): (Vec<&String>, Vec<&String>) =
                patterns.iter().partition(|p| p.starts_with('!'));
            plain.iter().any(|pattern| glob(&pattern.to_lowercase(), name))
                && !negated.iter().any(|pattern| glob(&pattern[1..].to_lowercase(), name))
        }
        HostPatterns::HashedName { salt, hash } => {
            let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, salt);
            hmac::verify(&key, name.as_bytes(), hash).is_ok()
        }
    }
}

/// Whether `text` matches `pattern`, in which `*` is any string and `?` any one character (ssh_config(5), "PATTERNS").
pub fn glob(pattern: &str, text: &str) -> bool {
    WildMatch::new(pattern).matches(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_openssh_does() {
        for (patterns, host, port, expected) in [
            ("node-1", "node-1", 22, true),
            ("node-1", "NODE-1", 22, true),
            ("Node-1", "node-1", 22, true),
            ("node-1", "node-10", 22, false),
            ("node-1,10.0.0.1", "10.0.0.1", 22, true),
            ("node-1", "node-1", 2222, false),
            ("[node-1]:2222", "node-1", 2222, true),
            ("[node-1]:2222", "node-1", 22, false),
            ("[*.example]:2222", "a.example", 2222, true),
            ("*.example", "a.b.example", 22, true),
            ("10.0.0.?", "10.0.0.7", 22, true),
            ("10.0.0.?", "10.0.0.17", 22, false),
            ("*,!node-1", "node-1", 22, false),
            ("!node-1,*", "node-2", 22, true),
            ("!node-1", "node-2", 22, false),
            ("*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaac", 22, false),
            ("fd00::5", "FD00::5", 22, true),
            // HMAC-SHA1 of node-1 and of [node-1]:2222, as `ssh-keygen -H` makes it.
            ("|1|AAECAwQFBgcICQoLDA0ODxAREhM=|/USPuUgq6b6LrN2cjngc1r/klJY=", "node-1", 22, true),
            ("|1|AAECAwQFBgcICQoLDA0ODxAREhM=|/USPuUgq6b6LrN2cjngc1r/klJY=", "node-2", 22, false),
            ("|1|AAECAwQFBgcICQoLDA0ODxAREhM=|AuBdDHXBgFqRqL5sJkFFrKfSkr0=", "node-1", 2222, true),
            ("|1|AAECAwQFBgcICQoLDA0ODxAREhM=|AuBdDHXBgFqRqL5sJkFFrKfSkr0=", "node-1", 22, false),
        ] {
            let parsed: HostPatterns = patterns.parse().unwrap();
            assert_eq!(matches(&parsed, &host_field(host, port)), expected, "{patterns} {host} {port}");
        }
    }
}
