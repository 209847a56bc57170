//! Annotations under metalform's prefix or its alias, and the SSH settings among them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{ALIAS_PREFIX, NodeProblem, PREFIX};
use crate::model::api_contract::{SSH_HOST, SSH_SETTINGS};
use crate::model::ssh_syntax::{self, DEFAULT_PORT, DEFAULT_USER, OWN_KEY, SshSyntaxError};
use crate::model::ssh_target::{HostKeyPolicy, SshTarget};

/// Annotations, looked up under both prefixes.
struct Settings<'a>(&'a BTreeMap<String, String>);

impl<'a> Settings<'a> {
    /// The key that is set, and its value. Both keys may be set to the same value.
    fn get(&self, name: &str, problems: &mut Vec<NodeProblem>) -> Option<(String, &'a str)> {
        let (ours, alias) = (format!("{PREFIX}{name}"), format!("{ALIAS_PREFIX}{name}"));
        match (self.0.get(&ours), self.0.get(&alias)) {
            (Some(value), Some(other)) if value != other => {
                let (value, other) = (value.clone(), other.clone());
                problems.push(NodeProblem::Conflict { ours, value, alias, other });
                None
            }
            (Some(value), _) => Some((ours, value)),
            (None, Some(value)) => Some((alias, value)),
            (None, None) => None,
        }
    }

    fn contains(&self, name: &str) -> bool {
        [PREFIX, ALIAS_PREFIX].into_iter().any(|prefix| self.0.contains_key(&format!("{prefix}{name}")))
    }

    /// The value parsed by `read`, or the default; a parse error is a problem.
    fn read<T>(
        &self,
        name: &str,
        default: T,
        problems: &mut Vec<NodeProblem>,
        read: impl FnOnce(&str) -> Result<T, Refusal>,
    ) -> T {
        let Some((annotation, value)) = self.get(name, problems) else { return default };
        match read(value) {
            Ok(value) => return value,
            Err(Refusal::Syntax(source)) => problems.push(NodeProblem::Ssh { annotation, source }),
            Err(Refusal::Expected(expected)) => {
                problems.push(NodeProblem::Value { annotation, value: value.to_owned(), expected });
            }
        }
        default
    }
}

enum Refusal {
    Expected(&'static str),
    Syntax(SshSyntaxError),
}

/// Adds every problem to `problems`; `None` without a host.
pub(super) fn ssh_target(
    annotations: &BTreeMap<String, String>,
    problems: &mut Vec<NodeProblem>,
) -> Option<SshTarget> {
    refuse_unknown(annotations, problems);
    let settings = Settings(annotations);
    let host = settings.read("ssh-host", None, problems, |text| Ok(Some(word(text)?)));
    if host.is_none() && !settings.contains("ssh-host") {
        problems.push(NodeProblem::Missing { annotation: SSH_HOST.to_owned() });
    }
    let mut target = SshTarget {
        host: host.unwrap_or_default(),
        port: settings.read("ssh-port", DEFAULT_PORT, problems, port),
        user: settings.read("ssh-user", DEFAULT_USER.to_owned(), problems, word),
        identity_files: settings.read("ssh-key-path", vec![OWN_KEY.into()], problems, key_path),
        identities_only: true,
        sudo: settings.read("ssh-sudo", false, problems, boolean),
        host_key: settings.read("ssh-host-key", HostKeyPolicy::Known, problems, |text| {
            ssh_syntax::host_key(text).map_err(Refusal::Syntax)
        }),
        bastion: None,
    };
    target.bastion = settings.read("ssh-bastion", None, problems, |text| {
        ssh_syntax::bastion(text, &target).map_err(Refusal::Syntax)
    });
    (!target.host.is_empty()).then_some(target)
}

/// A misspelt key would leave its default in place unnoticed.
fn refuse_unknown(annotations: &BTreeMap<String, String>, problems: &mut Vec<NodeProblem>) {
    for annotation in annotations.keys() {
        let name = annotation.strip_prefix(PREFIX).or_else(|| annotation.strip_prefix(ALIAS_PREFIX));
        if name.is_some_and(|name| name.starts_with("ssh-") && !SSH_SETTINGS.contains(&name)) {
            problems.push(NodeProblem::Unknown {
                annotation: annotation.clone(),
                known: SSH_SETTINGS.join(", "),
            });
        }
    }
}

fn word(text: &str) -> Result<String, Refusal> {
    if text.is_empty() || text.contains(char::is_whitespace) {
        return Err(Refusal::Expected("a string without blanks"));
    }
    Ok(text.to_owned())
}

fn port(text: &str) -> Result<u16, Refusal> {
    text.parse().ok().filter(|port| *port != 0).ok_or(Refusal::Expected("a number from 1 to 65535"))
}

fn key_path(text: &str) -> Result<Vec<PathBuf>, Refusal> {
    ssh_syntax::key_path(text).map(|path| vec![path]).map_err(Refusal::Syntax)
}

/// Annotations are strings: Python's `bool("false")`, which MetalK8s uses, is true.
fn boolean(text: &str) -> Result<bool, Refusal> {
    text.parse().map_err(|_| Refusal::Expected("true or false"))
}
