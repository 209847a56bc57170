//! Selection of hosts of a roster: the syntax of `--on`.
//!
//! ```text
//! node-1              the host               role:etcd      hosts with the role
//! node-*  rack?-1     hosts by pattern       rack=a  os=*   hosts by label value, or pattern of it
//! role:etcd&rack=a    hosts that match both  !node-3        excluded hosts
//! ```
//! Terms are separated by commas. Selected are the hosts that match a positive term, minus those that match a negated
//! one; with negated terms alone, all other hosts. `!role:etcd&rack=a` excludes the hosts that match both.

use std::fmt;
use std::str::FromStr;

use wildmatch::WildMatch;

use super::role::{Role, RoleError};
use super::roster::{Host, Roster};

/// A parsed `--on`.
#[derive(Debug, Clone, PartialEq)]
pub struct Selector {
    positive: Vec<Term>,
    negated: Vec<Term>,
}

/// Why a selector was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// Nothing between two commas, or nothing after `!`.
    #[error("{0:?} has an empty term")]
    EmptyTerm(String),
    /// `a&!b`.
    #[error("'!' must start a term: write {0:?}")]
    InnerNegation(String),
    /// An unknown role.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// A term that matches no host, such as a misspelt name.
    #[error("no host matches {term}")]
    NoMatch {
        /// As written, without `!`.
        term: String,
    },
    /// Negated terms exclude every host.
    #[error("all selected hosts are excluded")]
    AllExcluded,
}

/// A term, without its negation.
#[derive(Debug, Clone, PartialEq)]
enum Term {
    /// A name, or a pattern of names with `*` and `?`.
    Name(WildMatch),
    /// A label key, and a pattern of the value.
    Label {
        key: String,
        value: WildMatch,
    },
    Role(Role),
    /// All of these.
    All(Vec<Term>),
}

impl Term {
    fn matches(&self, host: &Host) -> bool {
        match self {
            Self::Name(pattern) => pattern.matches(host.name.as_str()),
            Self::Label { key, value } => host.labels.get(key).is_some_and(|text| value.matches(text)),
            Self::Role(role) => host.roles.contains(role),
            Self::All(terms) => terms.iter().all(|term| term.matches(host)),
        }
    }

    /// Whether it consists of roles, which cannot be misspelt.
    fn is_of_roles(&self) -> bool {
        match self {
            Self::Role(_) => true,
            Self::All(terms) => terms.iter().all(Self::is_of_roles),
            Self::Name(_) | Self::Label { .. } => false,
        }
    }
}

impl Selector {
    /// The selected hosts, ordered by name; never none.
    ///
    /// # Errors
    /// When a term matches no host, so that a misspelt name is not ignored, or all hosts are excluded.
    pub fn select<'a>(&self, roster: &'a Roster) -> Result<Vec<&'a Host>, SelectorError> {
        // A negated role cannot be misspelt, and may match no host.
        let negated = self.negated.iter().filter(|term| !term.is_of_roles());
        for term in self.positive.iter().chain(negated) {
            if !roster.hosts.values().any(|host| term.matches(host)) {
                return Err(SelectorError::NoMatch { term: term.to_string() });
            }
        }
        let any = |terms: &[Term], host: &Host| terms.iter().any(|term| term.matches(host));
        let hosts: Vec<&Host> = roster
            .hosts
            .values()
            .filter(|host| self.positive.is_empty() || any(&self.positive, host))
            .filter(|host| !any(&self.negated, host))
            .collect();
        if hosts.is_empty() { Err(SelectorError::AllExcluded) } else { Ok(hosts) }
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let mut selector = Self { positive: Vec::new(), negated: Vec::new() };
        for part in text.split(',').map(str::trim) {
            let (terms, term) = match part.strip_prefix('!') {
                Some(term) => (&mut selector.negated, term.trim()),
                None => (&mut selector.positive, part),
            };
            let parts: Vec<&str> = term.split('&').map(str::trim).collect();
            if parts.iter().any(|part| part.is_empty()) {
                return Err(SelectorError::EmptyTerm(text.to_owned()));
            }
            if parts.iter().any(|part| part.starts_with('!')) {
                return Err(SelectorError::InnerNegation(term.replace('&', ",")));
            }
            terms.push(match parts[..] {
                [one] => one.parse()?,
                _ => Term::All(parts.iter().map(|part| part.parse()).collect::<Result<_, _>>()?),
            });
        }
        Ok(selector)
    }
}

impl fmt::Display for Selector {
    /// A string that parses to the same selector.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let positive = self.positive.iter().map(ToString::to_string);
        let negated = self.negated.iter().map(|term| format!("!{term}"));
        f.write_str(&positive.chain(negated).collect::<Vec<_>>().join(","))
    }
}

impl FromStr for Term {
    type Err = RoleError;

    fn from_str(text: &str) -> Result<Self, RoleError> {
        Ok(if let Some(role) = text.strip_prefix("role:") {
            Self::Role(role.parse()?)
        } else if let Some((key, value)) = text.split_once('=') {
            Self::Label { key: key.to_owned(), value: WildMatch::new(value) }
        } else {
            Self::Name(WildMatch::new(text))
        })
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(pattern) => write!(f, "{pattern}"),
            Self::Label { key, value } => write!(f, "{key}={value}"),
            Self::Role(role) => write!(f, "role:{role}"),
            Self::All(terms) => {
                let terms: Vec<String> = terms.iter().map(ToString::to_string).collect();
                f.write_str(&terms.join("&"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::document::Document;

    const ROSTER: &str = "
hosts:
  boot: { roles: [bootstrap, master, etcd], labels: { rack: a } }
  node-1: { roles: [master, etcd], labels: { rack: b } }
  node-2: { labels: { rack: b } }
  node-10: { roles: [infra], labels: { rack: a } }
";

    #[test]
    fn a_selector_parses_from_its_own_display() {
        for text in ["node-1", "node-*,!node-?", "role:etcd & rack=a, !os=*", "!boot"] {
            let selector: Selector = text.parse().unwrap();
            assert_eq!(selector.to_string().parse(), Ok(selector), "{text}");
        }
    }

    #[test]
    fn selectors_match_hosts() {
        let roster = Roster::parse(&[Document { file: "roster.yaml", text: ROSTER }]).unwrap();
        for (text, expected) in [
            ("node-1", Ok("node-1")),
            ("node-2, boot", Ok("boot node-2")),
            ("*", Ok("boot node-1 node-10 node-2")),
            ("node-?", Ok("node-1 node-2")),
            ("node-*,!node-1", Ok("node-10 node-2")),
            ("!boot", Ok("node-1 node-10 node-2")),
            ("rack=b", Ok("node-1 node-2")),
            ("rack=b,!role:etcd", Ok("node-2")),
            ("node-2,!role:bootstrap", Ok("node-2")),
            ("boot,!rack=c", Err("no host matches rack=c")),
            ("role:control-plane", Ok("boot node-1")),
            ("role:node,role:infra", Ok("node-10 node-2")),
            ("rack=*", Ok("boot node-1 node-10 node-2")),
            ("rack=?,!rack=b", Ok("boot node-10")),
            ("role:etcd&rack=b", Ok("node-1")),
            ("role:etcd & rack=a, node-2", Ok("boot node-2")),
            ("!role:etcd&rack=a", Ok("node-1 node-10 node-2")),
            ("*,!role:etcd&role:infra", Ok("boot node-1 node-10 node-2")),
            ("role:infra&rack=b", Err("no host matches role:infra&rack=b")),
            ("*,!node-1&rack=c", Err("no host matches node-1&rack=c")),
            ("rack=b&!node-1", Err("'!' must start a term: write \"rack=b,!node-1\"")),
            ("rack=b&", Err("\"rack=b&\" has an empty term")),
            ("&", Err("\"&\" has an empty term")),
            ("node-3", Err("no host matches node-3")),
            ("*,!node-3", Err("no host matches node-3")),
            ("rack=c", Err("no host matches rack=c")),
            ("boot,!role:etcd", Err("all selected hosts are excluded")),
            (
                "role:worker",
                Err(
                    "\"worker\" is not a role; the roles are bootstrap, master (or control-plane), etcd, mirror, infra and node",
                ),
            ),
            ("boot,", Err("\"boot,\" has an empty term")),
            ("!", Err("\"!\" has an empty term")),
            ("", Err("\"\" has an empty term")),
        ] {
            let found = text.parse().and_then(|selector: Selector| {
                let hosts = selector.select(&roster)?;
                Ok(hosts.iter().map(|host| host.name.as_str()).collect::<Vec<_>>().join(" "))
            });
            assert_eq!(
                found.map_err(|error| error.to_string()),
                expected.map(str::to_owned).map_err(str::to_owned),
                "{text}"
            );
        }
    }
}
