//! `wait`: a barrier; what follows it runs once a port, a URL or a path answers.

use std::net::Ipv6Addr;

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::condition::Condition;
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::Step;
use crate::resource::fields::field::{FieldSort, FieldSpec};
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::fields::path;
use crate::resource::fields::url;

/// Its fields; exactly one of `port`, `http` and `file` must be given.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec {
        name: "port",
        sort: FieldSort::Text,
        required: false,
        about: "\"HOST:PORT\" that must accept TCP connections from the host.",
    },
    FieldSpec {
        name: "http",
        sort: FieldSort::Text,
        required: false,
        about: "URL of http or https that must answer; redirects are not followed.",
    },
    FieldSpec {
        name: "status",
        sort: FieldSort::Integer,
        required: false,
        about: "With `http`: the status code that it must answer with, 200 by default.",
    },
    FieldSpec {
        name: "ca",
        sort: FieldSort::Text,
        required: false,
        about: "With `http`: path on the host of the authority that https is checked against; the system's by default.",
    },
    FieldSpec {
        name: "file",
        sort: FieldSort::Text,
        required: false,
        about: "Path at which something must be.",
    },
    FieldSpec {
        name: "deadline",
        sort: FieldSort::Integer,
        required: false,
        about: "Seconds after which it fails, 60 by default.",
    },
];

/// A wait. Its name is a sentence that says what it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    condition: Condition,
    seconds: u32,
}

impl Wait {
    pub(in crate::resource) fn parse(given: &Given) -> Result<Self, FieldError> {
        if given.ensure == Ensure::Absent {
            return Err(FieldError::NotRemovable { kind: "wait" });
        }
        let condition = match (given.text("port"), given.text("http"), path::field(given, "file")?) {
            (Some(port), None, None) => self::port(&port).ok_or_else(|| {
                given.invalid("port", "it must be \"HOST:PORT\", as 127.0.0.1:6443 or [::1]:6443")
            })?,
            (None, Some(_), None) => http(given)?,
            (None, None, Some(path)) => Condition::File { path },
            _ => return Err(given.invalid("port", "exactly one of port, http and file must be given")),
        };
        if !matches!(condition, Condition::Http { .. }) {
            for field in ["status", "ca"] {
                if given.has(field) {
                    return Err(given.invalid(field, "it goes with http"));
                }
            }
        }
        Ok(Self { condition, seconds: given.number("deadline", 1..=86_400, 60)? })
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        vec![self.probe()]
    }

    fn probe(&self) -> Probe {
        Probe::Condition(self.condition.clone())
    }

    /// What was seen is worth nothing once something before it changes: a service may be down by then.
    pub(in crate::resource) fn diff(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Verdict, Refusal> {
        let seen = observed.condition(self.probe())?;
        if seen.is_none() && !context.pending.changes_anything() {
            return Ok(Verdict::NoChange { reason: self.condition.to_string() });
        }
        let mut change = Change::default();
        let wish = format!("{}, for at most {} s", self.condition.wish(), self.seconds);
        change.field("waits for", seen, Some(&wish));
        change.steps.push(Step::Await { condition: self.condition.clone(), seconds: self.seconds });
        Ok(Verdict::Change(change))
    }
}

fn port(text: &str) -> Option<Condition> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().ok()?.to_string(),
        None if url::is_host(host) => host.to_owned(),
        None => return None,
    };
    Some(Condition::Port { host, port })
}

fn http(given: &Given) -> Result<Condition, FieldError> {
    let url = url::field(given, "http")?;
    // It is shown in plans and is an argument of what asks it.
    if url.split('/').nth(2).is_some_and(|authority| authority.contains('@')) {
        return Err(given.invalid("http", "it must not hold a user or a password"));
    }
    let status = given.number("status", 100..=599, 200)?;
    let status = u16::try_from(status).map_err(|_| given.invalid("status", "it is no status code"))?;
    Ok(Condition::Http { url, status, ca: path::field(given, "ca")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_has_a_host_and_a_number() {
        let is = |text, host: &str, port| {
            assert_eq!(self::port(text), Some(Condition::Port { host: host.to_owned(), port }), "{text}");
        };
        is("127.0.0.1:6443", "127.0.0.1", 6443);
        is("api.example:1", "api.example", 1);
        is("[fd00::1]:65535", "fd00::1", 65535);
        for text in
            ["", "6443", ":6443", "a:", "a:0", "a:65536", "fd00::1:80", "a b:80", "-a:80", "[a]:80", "a/b:1"]
        {
            assert_eq!(self::port(text), None, "{text:?}");
        }
    }
}
