//! `host_entry`: names of an address in `/etc/hosts` (hosts(5)).
//!
//! The names that are listed are ours, and an address keeps what other names it has. A name means one address
//! of a family, and resolvers take the first line that has it: so a listed name goes from every other address
//! of the family (`127.0.1.1` of Debian's installer among them). Comments stay.

use std::net::IpAddr;

use crate::resource::contract::change::Verdict;
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::fields::field::{FieldSort, FieldSpec};
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::text::edited::Edited;
use crate::resource::text::lines::{Edit, Lines};

/// Its fields.
pub const FIELDS: &[FieldSpec] = &[FieldSpec {
    name: "names",
    sort: FieldSort::TextList,
    required: true,
    about: "Host names of the address, the canonical one first; no other address of the family keeps them. With \
            `ensure: absent` these go, or all names of the address when none are given.",
}];

/// Names of an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostEntry {
    file: Edited,
    address: IpAddr,
    names: Vec<String>,
    ensure: Ensure,
}

impl HostEntry {
    pub(in crate::resource) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        let Ok(address) = name.parse() else {
            let reason = "it must be an IP address";
            return Err(FieldError::Name { kind: "host_entry", name: name.to_owned(), reason });
        };
        let names = given.list("names");
        if names.is_empty() && given.ensure == Ensure::Present {
            return Err(given.invalid("names", "at least one must be given"));
        }
        if let Some(bad) = names.iter().find(|name| !is_host_name(name)) {
            return Err(given.invalid("names", format!("{bad:?} is not a host name")));
        }
        let file = Edited { path: "/etc/hosts".to_owned(), create: true, sensitive: given.sensitive };
        Ok(Self { file, address, names, ensure: given.ensure })
    }

    pub(in crate::resource) fn file(&self) -> &Edited {
        &self.file
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        vec![self.file.probe()]
    }

    pub(in crate::resource) fn diff(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Verdict, Refusal> {
        let present = self.file.text(observed, context)?;
        let mut lines = Lines::of(present.map_or("", |present| present.text));
        let reason = match self.ensure {
            Ensure::Present => {
                self.bring(&mut lines);
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
        Ok(self.file.change(present, lines.into_text(), context).or(reason))
    }

    fn bring(&self, lines: &mut Lines) {
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
            Some(Edit::Become(format!("{before}{words}{after}")))
        });
        if !appended {
            lines.insert(usize::MAX, &format!("{}\t{}", self.address, words.trim_start()));
        }
    }

    /// The line, if it names our address.
    fn entry<'a>(&self, body: &'a str) -> Option<Entry<'a>> {
        Entry::of(body).filter(|entry| entry.address == self.address)
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|ours| ours.eq_ignore_ascii_case(name))
    }
}

/// One line that names an address.
#[derive(Debug)]
struct Entry<'a> {
    body: &'a str,
    address: IpAddr,
    names: Vec<&'a str>,
    /// Where its last word ends.
    end: usize,
}

impl<'a> Entry<'a> {
    /// `None` for comments, empty lines, and addresses with a zone, which are left alone.
    fn of(body: &'a str) -> Option<Self> {
        let words = body.split('#').next().unwrap_or_default().trim_end();
        let mut parts = words.split_whitespace();
        let address = parts.next()?.parse().ok()?;
        Some(Self { body, address, names: parts.collect(), end: words.len() })
    }

    fn has(&self, wanted: &str) -> bool {
        self.names.iter().any(|name| name.eq_ignore_ascii_case(wanted))
    }

    /// What becomes of the line when these names go. A comment at its end stays.
    fn without(&self, goes: impl Fn(&str) -> bool) -> Option<Edit> {
        let stay: Vec<&str> = self.names.iter().copied().filter(|name| !goes(name)).collect();
        let comment = self.body[self.end..].trim_start();
        if stay.len() == self.names.len() {
            None
        } else if !stay.is_empty() {
            let address = self.body.split_whitespace().next().unwrap_or_default();
            let space = if comment.is_empty() { "" } else { " " };
            Some(Edit::Become(format!("{address}\t{}{space}{comment}", stay.join(" "))))
        } else if comment.is_empty() {
            Some(Edit::Go)
        } else {
            Some(Edit::Become(comment.to_owned()))
        }
    }
}

/// As in RFC 1123, and `_`, which is in use.
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
    fn our_names_come_to_their_address_and_others_stay_where_they_are() {
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
            entry("10.0.0.1", &["a", "b"]).bring(&mut lines);
            assert_eq!(lines.into_text(), after, "{before:?}");
        }
    }

    #[test]
    fn addresses_are_compared_by_what_they_mean() {
        let mut lines = Lines::of("0:0:0:0:0:0:0:1 localhost\n");
        entry("::1", &["ip6-localhost"]).bring(&mut lines);
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
