//! `wait`: later resources run once a port, a URL or a path is available.

use std::net::Ipv6Addr;

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::host_condition::HostCondition;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::Step;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::fields::path;
use crate::resource::fields::url;

/// Exactly one of `port`, `http` and `file` is required.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::optional(
        "port",
        FieldType::String,
        "\"HOST:PORT\" that must accept TCP connections from the host.",
    ),
    FieldSpec::optional(
        "http",
        FieldType::String,
        "http or https URL that must return `status`; redirects are not followed.",
    ),
    FieldSpec::optional("status", FieldType::Integer, "With `http`: expected status code, 200 by default."),
    FieldSpec::optional(
        "ca",
        FieldType::String,
        "With `http`: path on the host of the CA certificate that verifies https; the system's store by default.",
    ),
    FieldSpec::optional("file", FieldType::String, "Path that must exist."),
    FieldSpec::optional("deadline", FieldType::Integer, "Seconds until it fails, 60 by default."),
];

/// A wait. Its name is a sentence that describes its purpose.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    condition: HostCondition,
    seconds: u32,
}

impl Wait {
    pub fn parse(fields: &FieldValues) -> Result<Self, FieldError> {
        fields.require_present()?;
        let condition = match (fields.string("port"), fields.string("http"), path::field(fields, "file")?) {
            (Some(port), None, None) => self::port(&port).ok_or_else(|| {
                fields.invalid("port", "must be \"HOST:PORT\", such as 127.0.0.1:6443 or [::1]:6443")
            })?,
            (None, Some(_), None) => http(fields)?,
            (None, None, Some(path)) => HostCondition::File { path },
            _ => return Err(fields.invalid("port", "exactly one of port, http and file is required")),
        };
        if !matches!(condition, HostCondition::Http { .. }) {
            for field in ["status", "ca"] {
                if fields.has(field) {
                    return Err(fields.invalid(field, "requires http"));
                }
            }
        }
        Ok(Self { condition, seconds: fields.integer("deadline", 1..=86_400, 60)? })
    }

    pub fn probes(&self) -> Vec<Probe> {
        vec![self.probe()]
    }

    fn probe(&self) -> Probe {
        Probe::Condition(self.condition.clone())
    }

    /// An observation is out of date once an earlier resource changes: a service may be down by then.
    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
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

fn port(text: &str) -> Option<HostCondition> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port > 0)?;
    let host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().ok()?.to_string(),
        None if url::is_host(host) => host.to_owned(),
        None => return None,
    };
    Some(HostCondition::Port { host, port })
}

fn http(fields: &FieldValues) -> Result<HostCondition, FieldError> {
    let url = url::field(fields, "http")?;
    // It is shown in plans, and is an argument of a process.
    if url.split('/').nth(2).is_some_and(|authority| authority.contains('@')) {
        return Err(fields.invalid("http", "must not contain a user or a password"));
    }
    let status = fields.integer("status", 100..=599, 200)?;
    let status = u16::try_from(status).map_err(|_| fields.invalid("status", "must be a status code"))?;
    Ok(HostCondition::Http { url, status, ca: path::field(fields, "ca")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_has_a_host_and_a_number() {
        let is = |text, host: &str, port| {
            assert_eq!(self::port(text), Some(HostCondition::Port { host: host.to_owned(), port }), "{text}");
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
