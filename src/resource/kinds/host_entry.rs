//! `host_entry`: names of an address in `/etc/hosts` (hosts(5)).
//!
//! An address keeps its other names. Resolvers use the first line with a name, so a listed name is removed from every
//! other address of the same family (such as `127.0.1.1` of Debian's installer). Comments stay.

use std::net::IpAddr;

use crate::resource::contract::change::Verdict;
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::text::edited::Edited;
use crate::resource::text::lines::{Edit, Lines};

pub const FIELDS: &[FieldSpec] = &[FieldSpec::required(
    "names",
    FieldType::StringList,
    "Host names of the address, the canonical one first; they are removed from other addresses of the family. With `ensure: absent` these names are removed, or all names of the address where none are listed.",
)];

/// Names of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostEntry {
    file: Edited,
    address: IpAddr,
    names: Vec<String>,
    ensure: Ensure,
}

impl HostEntry {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        let Ok(address) = name.parse() else {
            let reason = "must be an IP address";
            return Err(fields.invalid_name(name, reason));
        };
        let names = fields.list("names");
        if names.is_empty() && fields.ensure == Ensure::Present {
            return Err(fields.invalid("names", "must not be empty"));
        }
        if let Some(bad) = names.iter().find(|name| !is_host_name(name)) {
            return Err(fields.invalid("names", format!("invalid host name {bad:?}")));
        }
        let file = Edited { path: "/etc/hosts".to_owned(), create: true, sensitive: fields.sensitive };
        Ok(Self { file, address, names, ensure: fields.ensure })
    }

    pub fn file(&self) -> &Edited {
        &self.file
    }

    pub fn probes(&self) -> Vec<Probe> {
        vec![self.file.probe()]
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let present = self.file.text(observed, context)?;
        let mut lines = Lines::of(present.map_or("", |present| present.text));
        let reason = match self.ensure {
            Ensure::Present => {
                self.add(&mut lines);
                "has these names"
            }
            Ensure::Absent => {
                lines.edit(|body| {
                    let entry = self.entry(body)?;
                    entry.without(|name| self.names.is_empty() || self.has(name))
                });
                "is absent"
            }
        };
        Ok(self.file.change(present, lines.into_text(), context).into_verdict(reason))
    }

    fn add(&self, lines: &mut Lines) {
        let is_v4 = self.address.is_ipv4();
        lines.edit(|body| {
            let entry = Entry::of(body)?;
            let other = entry.address != self.address && entry.address.is_ipv4() == is_v4;
            if other { entry.without(|name| self.has(name)) } else { None }
        });
        let here: Vec<Entry<'_>> = lines.bodies().filter_map(|body| self.entry(body)).collect();
        let missing = self.names.iter().filter(|name| !here.iter().any(|entry| entry.has(name)));
        let words: String = missing.map(|name| format!(" {name}")).collect();
        if words.is_empty() {
            return;
        }
        let mut appended = false;
        lines.edit(|body| {
            let entry = self.entry(body).filter(|_| !std::mem::replace(&mut appended, true))?;
            let (before, after) = body.split_at(entry.end);
            Some(Edit::Replace(format!("{before}{words}{after}")))
        });
        if !appended {
            lines.insert(usize::MAX, &format!("{}\t{}", self.address, words.trim_start()));
        }
    }

    /// The line as an entry of this address.
    fn entry<'a>(&self, body: &'a str) -> Option<Entry<'a>> {
        Entry::of(body).filter(|entry| entry.address == self.address)
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|ours| ours.eq_ignore_ascii_case(name))
    }
}

/// One line with an address.
#[derive(Debug)]
struct Entry<'a> {
    body: &'a str,
    address: IpAddr,
    names: Vec<&'a str>,
    /// End of the last word.
    end: usize,
}

impl<'a> Entry<'a> {
    /// `None` for comments, empty lines, and addresses with a zone, which stay unchanged.
    fn of(body: &'a str) -> Option<Self> {
        let words = body.split('#').next().unwrap_or_default().trim_end();
        let mut parts = words.split_whitespace();
        let address = parts.next()?.parse().ok()?;
        Some(Self { body, address, names: parts.collect(), end: words.len() })
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// The change that removes these names. A comment at the end stays.
    fn without(&self, removed: impl Fn(&str) -> bool) -> Option<Edit> {
        let rest: Vec<&str> = self.names.iter().copied().filter(|name| !removed(name)).collect();
        let comment = self.body[self.end..].trim_start();
        if rest.len() == self.names.len() {
            None
        } else if !rest.is_empty() {
            let address = self.body.split_whitespace().next().unwrap_or_default();
            let space = if comment.is_empty() { "" } else { " " };
            Some(Edit::Replace(format!("{address}\t{}{space}{comment}", rest.join(" "))))
        } else if comment.is_empty() {
            Some(Edit::Remove)
        } else {
            Some(Edit::Replace(comment.to_owned()))
        }
    }
}

/// As in RFC 1123, and also with `_`, which is common.
fn is_host_name(name: &str) -> bool {
    name.len() <= 253
        && name.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_')
                && !label.starts_with('-')
                && !label.ends_with('-')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(address: &str, names: &[&str]) -> HostEntry {
        HostEntry {
            file: Edited { path: "/etc/hosts".to_owned(), create: true, sensitive: false },
            address: address.parse().unwrap(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            ensure: Ensure::Present,
        }
    }

    #[test]
    fn listed_names_move_to_their_address_and_others_stay() {
        let cases = [
            ("", "10.0.0.1\ta b\n"),
            ("10.0.0.1 x # of others\n", "10.0.0.1 x a b # of others\n"),
            ("10.0.0.1\tb x A\n", "10.0.0.1\tb x A\n"),
            ("10.0.0.1 a\n10.0.0.1 b\n", "10.0.0.1 a\n10.0.0.1 b\n"),
            ("127.0.1.1 a.example a\n::1 a\n", "127.0.1.1\ta.example\n::1 a\n10.0.0.1\ta b\n"),
            ("10.0.0.2 B a # ours once\n10.0.0.3 a\n# a\n", "# ours once\n# a\n10.0.0.1\ta b\n"),
            ("fe80::1%eth0 a\n10.0.0.1 a b", "fe80::1%eth0 a\n10.0.0.1 a b"),
        ];
        for (before, after) in cases {
            let mut lines = Lines::of(before);
            entry("10.0.0.1", &["a", "b"]).add(&mut lines);
            assert_eq!(lines.into_text(), after, "{before:?}");
        }
    }

    #[test]
    fn addresses_are_compared_by_value() {
        let mut lines = Lines::of("0:0:0:0:0:0:0:1 localhost\n");
        entry("::1", &["ip6-localhost"]).add(&mut lines);
        assert_eq!(lines.into_text(), "0:0:0:0:0:0:0:1 localhost ip6-localhost\n");
    }

    #[test]
    fn names_are_host_names() {
        for good in ["a", "a.example", "node-1", "a_b", "1"] {
            assert!(is_host_name(good), "{good}");
        }
        for bad in ["", "a b", "a\nb", "-a", "a-", "a..b", "a#", "ä", "."] {
            assert!(!is_host_name(bad), "{bad:?}");
        }
    }
}
