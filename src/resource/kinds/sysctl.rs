//! `sysctl`: a kernel parameter, set now and at boot (`/etc/sysctl.d/zz-metalform-<key>.conf`, or a line of a file that
//! several parameters share). At boot the last file in the order of names wins (sysctl.d(5)), and distributions and
//! hardening tools use names up to 99.

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::kind::Kind;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::Step;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::text::edited::Edited;
use crate::resource::text::persisted::Persisted;

pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::required("value", FieldType::Any, "A string or a number."),
    FieldSpec::optional(
        "file",
        FieldType::String,
        "A file NAME.conf in /etc/sysctl.d that contains it as a line; a file of its own by default.",
    ),
];

/// A kernel parameter. With `ensure: absent` its file or line is removed, and the live value stays until a reboot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysctl {
    key: String,
    /// `None` when it should be absent.
    value: Option<String>,
    persisted: Persisted,
}

impl Sysctl {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "._-:@".contains(c);
        let empty_part = name.split('.').any(str::is_empty);
        if empty_part || !name.chars().all(allowed) || name.starts_with('-') {
            let reason = "use the dotted form, such as net.ipv4.ip_forward";
            return Err(fields.invalid_name(name, reason));
        }
        let value = match fields.ensure {
            Ensure::Absent => None,
            Ensure::Present => Some(fields.need_scalar("value")?),
        };
        if value.as_ref().is_some_and(|value| value.trim().is_empty() || value.contains('\n')) {
            return Err(fields.invalid("value", "must be a single line"));
        }
        let line = value.as_ref().map(|value| format!("{name} = {value}"));
        let [own, former] = ["zz", "90"].map(|order| format!("{order}-metalform-{name}.conf"));
        let persisted = Persisted::parse(fields, "/etc/sysctl.d", &own, line)?
            .formerly(format!("/etc/sysctl.d/{former}"));
        Ok(Self { key: name.to_owned(), value, persisted })
    }

    pub fn file(&self) -> Option<&Edited> {
        self.persisted.file()
    }

    pub fn probes(&self) -> Vec<Probe> {
        let live = self.value.as_ref().map(|_| self.live_probe());
        self.persisted.probes().into_iter().chain(live).collect()
    }

    fn live_probe(&self) -> Probe {
        Probe::Sysctl { key: self.key.clone() }
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let persisted = |observed| {
            self.persisted.compare(observed, context, |line| key_of(line).as_deref() == Some(&self.key))
        };
        let Some(value) = &self.value else {
            return Ok(persisted(observed)?.into_verdict("is not configured by metalform"));
        };
        let live = observed.line(self.live_probe())?;
        if live.is_none() && !context.pending.adds_any(Kind::Kmod) {
            return Err(Refusal::NoParameter { key: self.key.clone() });
        }
        let mut change = Change::default();
        // The kernel separates the numbers of one parameter by tabs; sysctl(8) accepts any white space.
        if !live.is_some_and(|live| live.split_whitespace().eq(value.split_whitespace())) {
            change.field("value", live.map(str::trim_end), Some(value));
            change.steps.push(Step::SetSysctl { key: self.key.clone(), value: value.clone() });
        }
        change.append(persisted(observed)?);
        Ok(change.into_verdict(format!("is {value}, now and at boot")))
    }
}

/// The dotted key that a line of sysctl.d(5) sets; `None` for a comment. Where the first separator is a slash, dots
/// and slashes are swapped.
fn key_of(line: &str) -> Option<String> {
    let line = line.trim_start();
    if line.starts_with(['#', ';']) {
        return None;
    }
    let (key, _) = line.strip_prefix('-').unwrap_or(line).split_once('=')?;
    let key = key.trim();
    if key.find(['.', '/']).is_some_and(|first| key[first..].starts_with('/')) {
        let swapped = key.chars().map(|c| match c {
            '.' => '/',
            '/' => '.',
            other => other,
        });
        return Some(swapped.collect());
    }
    Some(key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_every_notation() {
        for line in ["net.ipv4.ip_forward = 1", "  -net.ipv4.ip_forward=0", "net/ipv4/ip_forward = 1"] {
            assert_eq!(key_of(line).as_deref(), Some("net.ipv4.ip_forward"), "{line}");
        }
        assert_eq!(
            key_of("net.ipv4.conf.eth0/1.rp_filter = 1").as_deref(),
            Some("net.ipv4.conf.eth0/1.rp_filter")
        );
        for line in ["# net.ipv4.ip_forward = 1", "; a = b", "", "text"] {
            assert_eq!(key_of(line), None, "{line}");
        }
    }
}
