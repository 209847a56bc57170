//! Parsing of SSH settings in Node annotations and rosters.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::ssh_target::{HostKeyPolicy, SshTarget};

/// The private key that metalform generates.
pub const OWN_KEY: &str = "/etc/metalform/pki/ssh";
/// The private key in MetalK8s' documentation; replaced by [`OWN_KEY`].
const METALK8S_KEY: &str = "/etc/metalk8s/pki/salt-bootstrap";
/// Default keys of a roster's hosts: [`OWN_KEY`], and the defaults of OpenSSH's client.
pub const DEFAULT_KEYS: [&str; 4] = [OWN_KEY, "~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"];
/// Host key policy [`HostKeyPolicy::AcceptNew`].
const ACCEPT_NEW: &str = "accept-new";
/// Default SSH port.
pub const DEFAULT_PORT: u16 = 22;
/// Default login user.
pub const DEFAULT_USER: &str = "root";

/// Why an SSH setting was refused. Quotes the value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SshSyntaxError {
    /// A host key.
    #[error("{0:?} is neither a public host key, such as \"ssh-ed25519 AAAA...\", nor accept-new")]
    HostKey(String),
    /// A bastion.
    #[error("{0:?} is not a bastion, such as \"user@host:22\"; separate several by commas, first hop first")]
    Bastion(String),
    /// Path of a private key.
    #[error("{0:?} is not an absolute path")]
    KeyPath(String),
    /// Path of a private key in a roster.
    #[error("{0:?} is neither an absolute path nor a path below ~/")]
    UsersKeyPath(String),
    /// A private key instead of a path; not shown.
    #[error("expected the path of a private key, found the key itself")]
    KeyItself,
}

/// Parses a host key to pin: algorithm and base64, as in known_hosts or a `.pub` file; a comment is ignored. Or
/// `accept-new`.
///
/// # Errors
/// When it has another form, or the base64 is a key of another algorithm (RFC 4253 section 6.6).
pub fn host_key(text: &str) -> Result<HostKeyPolicy, SshSyntaxError> {
    if text == ACCEPT_NEW {
        return Ok(HostKeyPolicy::AcceptNew);
    }
    let wrong = || SshSyntaxError::HostKey(text.to_owned());
    let mut words = text.split_whitespace();
    let (Some(algorithm), Some(key)) = (words.next(), words.next()) else { return Err(wrong()) };
    let bytes = STANDARD.decode(key).map_err(|_| wrong())?;
    let length = u32::try_from(algorithm.len()).map_err(|_| wrong())?;
    let named = [&length.to_be_bytes(), algorithm.as_bytes()].concat();
    if bytes.len() > named.len() && bytes.starts_with(&named) {
        Ok(HostKeyPolicy::Pinned(format!("{algorithm} {key}")))
    } else {
        Err(wrong())
    }
}

/// Parses the path of a private key.
///
/// # Errors
/// When it is not absolute.
pub fn key_path(text: &str) -> Result<PathBuf, SshSyntaxError> {
    match text {
        // A path has one line.
        text if text.contains('\n') => Err(SshSyntaxError::KeyItself),
        METALK8S_KEY => Ok(OWN_KEY.into()),
        path if path.starts_with('/') => Ok(path.into()),
        path => Err(SshSyntaxError::KeyPath(path.to_owned())),
    }
}

/// Parses the path of a private key in a roster: absolute, or below `~/`, the home directory of the user who runs
/// metalform.
///
/// # Errors
/// When it is neither.
pub fn users_key_path(text: &str) -> Result<PathBuf, SshSyntaxError> {
    match text.strip_prefix("~/") {
        Some(below) if !below.is_empty() => Ok(text.into()),
        _ => key_path(text).map_err(|error| match error {
            SshSyntaxError::KeyPath(path) => SshSyntaxError::UsersKeyPath(path),
            other => other,
        }),
    }
}

/// A bastion, as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// Login user, if specified.
    pub user: Option<String>,
    /// Address or host name.
    pub host: String,
    /// SSH port, if specified.
    pub port: Option<u16>,
}

impl Hop {
    /// The settings of a bastion that is not a host of the roster: user and keys of the target unless specified. Its host
    /// key must be known, unless the target has `accept-new`.
    pub fn target(&self, target: &SshTarget) -> SshTarget {
        SshTarget {
            host: self.host.clone(),
            port: self.port.unwrap_or(DEFAULT_PORT),
            user: self.user.clone().unwrap_or_else(|| target.user.clone()),
            identity_files: target.identity_files.clone(),
            identities_only: target.identities_only,
            sudo: false,
            host_key: match target.host_key {
                HostKeyPolicy::AcceptNew => HostKeyPolicy::AcceptNew,
                HostKeyPolicy::Known | HostKeyPolicy::Pinned(_) | HostKeyPolicy::Fingerprint(_) => {
                    HostKeyPolicy::Known
                }
            },
            bastion: None,
        }
    }
}

/// Parses bastions: `[user@]host[:port]`, separated by commas as in ssh's `ProxyJump`. The first is connected to
/// directly.
///
/// # Errors
/// When a part has another form.
pub fn hops(text: &str) -> Result<Vec<Hop>, SshSyntaxError> {
    let wrong = || SshSyntaxError::Bastion(text.to_owned());
    let hop = |part: &str| -> Option<Hop> {
        let (user, place) = match part.split_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, part),
        };
        let (host, port) = host_and_port(place)?;
        let bad = user.is_some_and(str::is_empty)
            || host.is_empty()
            || part.contains(|c: char| c.is_whitespace() || c == '/');
        (!bad).then(|| Hop { user: user.map(str::to_owned), host: host.to_owned(), port })
    };
    text.split(',').map(|part| hop(part.trim()).ok_or_else(wrong)).collect()
}

/// The last bastion before a target, with those before it.
///
/// # Errors
/// As [`hops`].
pub fn bastion(text: &str, target: &SshTarget) -> Result<Option<Box<SshTarget>>, SshSyntaxError> {
    Ok(hops(text)?
        .iter()
        .fold(None, |before, hop| Some(Box::new(SshTarget { bastion: before, ..hop.target(target) }))))
}

/// An IPv6 address with a port is in brackets.
fn host_and_port(text: &str) -> Option<(&str, Option<u16>)> {
    let port = |text: &str| text.parse().ok().filter(|port: &u16| *port != 0);
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return match rest.strip_prefix(':') {
            Some(number) => Some((host, Some(port(number)?))),
            None => rest.is_empty().then_some((host, None)),
        };
    }
    match text.split_once(':') {
        Some((host, number)) if !number.contains(':') => Some((host, Some(port(number)?))),
        _ => Some((text, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> SshTarget {
        SshTarget {
            host: "10.0.0.2".into(),
            port: 22,
            user: "ops".into(),
            identity_files: vec![OWN_KEY.into()],
            identities_only: true,
            sudo: true,
            host_key: HostKeyPolicy::Known,
            bastion: None,
        }
    }

    /// `user@host:port` of each hop, last hop first.
    fn hops(text: &str) -> Option<Vec<String>> {
        let mut hop = bastion(text, &target()).ok()?;
        let mut hops = Vec::new();
        while let Some(this) = hop {
            hops.push(format!("{}@{}:{}", this.user, this.host, this.port));
            hop = this.bastion;
        }
        Some(hops)
    }

    #[test]
    fn bastions_have_the_syntax_of_proxy_jump() {
        for (text, expected) in [
            ("gate", Some(vec!["ops@gate:22"])),
            ("root@gate:2222", Some(vec!["root@gate:2222"])),
            ("fd00::1", Some(vec!["ops@fd00::1:22"])),
            ("[fd00::1]:2222", Some(vec!["ops@fd00::1:2222"])),
            ("outer, me@inner", Some(vec!["me@inner:22", "ops@outer:22"])),
            ("", None),
            ("@gate", None),
            ("gate:0", None),
            ("gate:ssh", None),
            ("outer,", None),
            ("[fd00::1", None),
        ] {
            assert_eq!(
                hops(text),
                expected.map(|hops| hops.into_iter().map(str::to_owned).collect()),
                "{text}"
            );
        }
    }

    #[test]
    fn host_keys_begin_with_their_algorithm() {
        let key = "AAAAC3NzaC1lZDI1NTE5AAAAIFdvrUKgYXnEjtUQ0WqTGVdXE2fVoVzVGyYaPBAMwXv2";
        let pinned = Ok(HostKeyPolicy::Pinned(format!("ssh-ed25519 {key}")));
        assert_eq!(host_key(&format!("ssh-ed25519 {key}")), pinned);
        assert_eq!(host_key(&format!("ssh-ed25519 {key} root@node-1")), pinned);
        assert_eq!(host_key("accept-new"), Ok(HostKeyPolicy::AcceptNew));
        for bad in
            [format!("ssh-rsa {key}"), key.to_owned(), "ssh-ed25519".to_owned(), "SHA256:abc def".to_owned()]
        {
            assert_eq!(host_key(&bad), Err(SshSyntaxError::HostKey(bad.clone())));
        }
    }

    #[test]
    fn metalk8s_documented_key_is_replaced() {
        assert_eq!(key_path("/etc/metalk8s/pki/salt-bootstrap"), Ok(OWN_KEY.into()));
        assert_eq!(key_path("/root/.ssh/id_ed25519"), Ok("/root/.ssh/id_ed25519".into()));
        assert_eq!(users_key_path("~/.ssh/id_ed25519"), Ok("~/.ssh/id_ed25519".into()));
        assert!(users_key_path("~/").is_err() && users_key_path("id").is_err());
        assert!(key_path("id_ed25519").is_err() && key_path("~/id_ed25519").is_err());
    }
}
