//! `host_entry`: names of an address, or addresses of a name, in `/etc/hosts` (hosts(5)).
//!
//! An address keeps its other names. Resolvers use the first line with a name, so a name that an address shall have is
//! removed from every other address of the same family (such as `127.0.1.1` of Debian's installer). A name that shall have
//! several addresses is removed from all others.

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
use crate::resource::text::hosts_file::{add, add_line, is_host_name, remove};
use crate::resource::text::lines::Lines;

pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::optional(
        "names",
        FieldType::StringList,
        "Of an address: its host names, the canonical one first; they are removed from other addresses of the family. With `ensure: absent` these names are removed, or all names of the address where none are listed.",
    ),
    FieldSpec::optional(
        "addresses",
        FieldType::StringList,
        "Of a host name: its addresses; the name is removed from all others. With `ensure: absent` it is removed from all.",
    ),
];

/// Names of an address, or addresses of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostEntry {
    file: Edited,
    entry: Entry,
    ensure: Ensure,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Names { address: IpAddr, names: Vec<String> },
    Addresses { name: String, addresses: Vec<IpAddr> },
}

impl HostEntry {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        let entry = match name.parse() {
            Ok(address) => Entry::Names { address, names: names(fields)? },
            Err(_) if is_host_name(name) => {
                Entry::Addresses { name: name.to_owned(), addresses: addresses(fields)? }
            }
            Err(_) => return Err(fields.invalid_name(name, "must be an IP address or a host name")),
        };
        let file = Edited { path: "/etc/hosts".to_owned(), create: true, sensitive: fields.sensitive };
        Ok(Self { file, entry, ensure: fields.ensure })
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
        let reason = match (&self.entry, self.ensure) {
            (entry, Ensure::Present) => {
                entry.write(&mut lines);
                entry.reason()
            }
            (entry, Ensure::Absent) => {
                entry.remove(&mut lines);
                "is absent"
            }
        };
        Ok(self.file.change(present, lines.into_text(), context).into_verdict(reason))
    }
}

impl Entry {
    fn reason(&self) -> &'static str {
        match self {
            Self::Names { .. } => "has these names",
            Self::Addresses { .. } => "has these addresses",
        }
    }

    fn write(&self, lines: &mut Lines) {
        match self {
            Self::Names { address, names } => {
                let is_v4 = address.is_ipv4();
                remove(lines, |other, name| {
                    other != *address && other.is_ipv4() == is_v4 && has(names, name)
                });
                add(lines, *address, names);
            }
            Self::Addresses { name, addresses } => {
                remove(lines, |address, other| {
                    !addresses.contains(&address) && other.eq_ignore_ascii_case(name)
                });
                for address in addresses {
                    add_line(lines, *address, std::slice::from_ref(name));
                }
            }
        }
    }

    fn remove(&self, lines: &mut Lines) {
        match self {
            Self::Names { address, names } => {
                remove(lines, |other, name| other == *address && (names.is_empty() || has(names, name)));
            }
            Self::Addresses { name, .. } => remove(lines, |_, other| other.eq_ignore_ascii_case(name)),
        }
    }
}

fn has(names: &[String], name: &str) -> bool {
    names.iter().any(|ours| ours.eq_ignore_ascii_case(name))
}

fn names(fields: &FieldValues) -> Result<Vec<String>, FieldError> {
    let names = fields.list("names");
    if names.is_empty() && fields.ensure == Ensure::Present {
        return Err(fields.invalid("names", "must not be empty"));
    }
    if let Some(bad) = names.iter().find(|name| !is_host_name(name)) {
        return Err(fields.invalid("names", format!("invalid host name {bad:?}")));
    }
    match fields.list("addresses").is_empty() {
        true => Ok(names),
        false => Err(fields.invalid("addresses", "an address has names")),
    }
}

fn addresses(fields: &FieldValues) -> Result<Vec<IpAddr>, FieldError> {
    let addresses: Result<Vec<IpAddr>, FieldError> = fields
        .list("addresses")
        .iter()
        .map(|address| {
            address
                .parse()
                .map_err(|_| fields.invalid("addresses", format!("{address:?} is not an IP address")))
        })
        .collect();
    let addresses = addresses?;
    if addresses.is_empty() && fields.ensure == Ensure::Present {
        return Err(fields.invalid("addresses", "must not be empty"));
    }
    match fields.list("names").is_empty() {
        true => Ok(addresses),
        false => Err(fields.invalid("names", "a name has addresses")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(address: &str, names: &[&str]) -> Entry {
        Entry::Names {
            address: address.parse().unwrap(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
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
            names_of("10.0.0.1", &["a", "b"]).write(&mut lines);
            assert_eq!(lines.into_text(), after, "{before:?}");
        }
    }

    #[test]
    fn addresses_are_compared_by_value() {
        let mut lines = Lines::of("0:0:0:0:0:0:0:1 localhost\n");
        names_of("::1", &["ip6-localhost"]).write(&mut lines);
        assert_eq!(lines.into_text(), "0:0:0:0:0:0:0:1 localhost ip6-localhost\n");
    }

    #[test]
    fn a_name_has_its_addresses_and_no_others() {
        let cases = [
            ("", "10.0.0.1\tm\n10.0.0.2\tm\n"),
            ("10.0.0.2 m\n10.0.0.1 x M\n", "10.0.0.2 m\n10.0.0.1 x M\n"),
            (
                "10.0.0.3 m y\n::1 m # gone\n10.0.0.2 z\n",
                "10.0.0.3\ty\n# gone\n10.0.0.2 z\n10.0.0.1\tm\n10.0.0.2\tm\n",
            ),
        ];
        let addresses = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap()).into();
        let entry = Entry::Addresses { name: "m".to_owned(), addresses };
        for (before, after) in cases {
            let mut lines = Lines::of(before);
            entry.write(&mut lines);
            assert_eq!(lines.into_text(), after, "{before:?}");
        }
        let mut lines = Lines::of("10.0.0.1 m x\n10.0.0.9 m\n");
        entry.remove(&mut lines);
        assert_eq!(lines.into_text(), "10.0.0.1\tx\n");
    }
}
