//! Which hosts of a roster are meant: the text of `--on`.
//!
//! ```text
//! node-1              this host              role:etcd      hosts with this role
//! node-*  rack?-1     hosts like this        rack=a         hosts with this label and value
//! !node-3  !role:infra                       not these
//! ```
//! Terms are separated by commas: every host that one of the plain terms means, without those that one of
//! the negated terms means. With negated terms alone, all the others.

use std::fmt;
use std::str::FromStr;

use wildmatch::WildMatch;

use super::role::{Role, RoleError};
use super::roster::{Host, Roster};

/// A parsed `--on`.
#[derive(Debug, Clone, PartialEq)]
pub struct Selector {
    plain: Vec<Term>,
    negated: Vec<Term>,
}

/// Why a selector cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// Nothing between two commas, or nothing after `!`.
    #[error("{0:?} has an empty term")]
    EmptyTerm(String),
    /// A role that does not exist.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// A term with which nothing is selected: a misspelt name, most often.
    #[error("no host of the roster is {term}")]
    NothingIs {
        /// As given, without its `!`.
        term: String,
    },
    /// All that plain terms select, negated terms take away.
    #[error("nothing is left of the hosts selected")]
    NothingLeft,
}

/// One term, without its negation.
#[derive(Debug, Clone, PartialEq)]
enum Term {
    /// A name, or a pattern of names with `*` and `?`.
    Name(WildMatch),
    Label {
        key: String,
        value: String,
    },
    Role(Role),
}

impl Term {
    fn means(&self, host: &Host) -> bool {
        match self {
            Self::Name(pattern) => pattern.matches(host.name.as_str()),
            Self::Label { key, value } => host.labels.get(key) == Some(value),
            Self::Role(role) => host.roles.contains(role),
        }
    }
}

impl Selector {
    /// The hosts meant, in the order of their names; never none.
    ///
    /// # Errors
    /// When a term means no host at all (so that a misspelt name is not a silent success), or none is left.
    pub fn select<'a>(&self, roster: &'a Roster) -> Result<Vec<&'a Host>, SelectorError> {
        // A negated role cannot be misspelt, and to have no such host is then what was wanted.
        let negated = self.negated.iter().filter(|term| !matches!(term, Term::Role(_)));
        for term in self.plain.iter().chain(negated) {
            if !roster.hosts.values().any(|host| term.means(host)) {
                return Err(SelectorError::NothingIs { term: term.to_string() });
            }
        }
        let any = |terms: &[Term], host: &Host| terms.iter().any(|term| term.means(host));
        let hosts: Vec<&Host> = roster
            .hosts
            .values()
            .filter(|host| self.plain.is_empty() || any(&self.plain, host))
            .filter(|host| !any(&self.negated, host))
            .collect();
        if hosts.is_empty() { Err(SelectorError::NothingLeft) } else { Ok(hosts) }
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let mut selector = Self { plain: Vec::new(), negated: Vec::new() };
        for part in text.split(',').map(str::trim) {
            let (terms, term) = match part.strip_prefix('!') {
                Some(term) => (&mut selector.negated, term.trim()),
                None => (&mut selector.plain, part),
            };
            if term.is_empty() {
                return Err(SelectorError::EmptyTerm(text.to_owned()));
            }
            terms.push(term.parse()?);
        }
        Ok(selector)
    }
}

impl FromStr for Term {
    type Err = RoleError;

    fn from_str(text: &str) -> Result<Self, RoleError> {
        Ok(if let Some(role) = text.strip_prefix("role:") {
            Self::Role(role.parse()?)
        } else if let Some((key, value)) = text.split_once('=') {
            Self::Label { key: key.to_owned(), value: value.to_owned() }
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
    fn selectors_mean_what_they_say() {
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
            ("boot,!rack=c", Err("no host of the roster is rack=c")),
            ("role:control-plane", Ok("boot node-1")),
            ("role:node,role:infra", Ok("node-10 node-2")),
            ("node-3", Err("no host of the roster is node-3")),
            ("*,!node-3", Err("no host of the roster is node-3")),
            ("rack=c", Err("no host of the roster is rack=c")),
            ("boot,!role:etcd", Err("nothing is left of the hosts selected")),
            (
                "role:worker",
                Err(
                    "\"worker\" is not a role; the roles are bootstrap, master (or control-plane), etcd, infra and node",
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
