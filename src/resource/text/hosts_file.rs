//! `/etc/hosts` (hosts(5)): addresses and their names, a line each. Comments stay, and so do names that are not named here.

use std::net::IpAddr;

use super::lines::{Edit, Lines};

/// Gives the address these names: on its first line, or on a new one behind the others.
pub fn add(lines: &mut Lines, address: IpAddr, names: &[String]) {
    let words = missing(lines, address, names);
    if words.is_empty() {
        return;
    }
    let mut appended = false;
    lines.edit(|body| {
        let entry = Entry::with(body, address).filter(|_| !std::mem::replace(&mut appended, true))?;
        let (before, after) = body.split_at(entry.end);
        Some(Edit::Replace(format!("{before}{words}{after}")))
    });
    if !appended {
        add_line(lines, address, names);
    }
}

/// The same, always on a line of their own: where that is removed, the others are as they were.
pub fn add_line(lines: &mut Lines, address: IpAddr, names: &[String]) {
    let words = missing(lines, address, names);
    if !words.is_empty() {
        lines.insert(usize::MAX, &format!("{address}\t{}", words.trim_start()));
    }
}

/// Those of the names that no line gives the address, each behind a space.
fn missing(lines: &Lines, address: IpAddr, names: &[String]) -> String {
    let here: Vec<Entry<'_>> = lines.bodies().filter_map(|body| Entry::with(body, address)).collect();
    let missing = names.iter().filter(|name| !here.iter().any(|entry| entry.has(name)));
    missing.map(|name| format!(" {name}")).collect()
}

/// Removes the names that `removed` accepts, of an address each. A line without names goes too.
pub fn remove(lines: &mut Lines, removed: impl Fn(IpAddr, &str) -> bool) {
    lines.edit(|body| {
        let entry = Entry::of(body)?;
        entry.without(|name| removed(entry.address, name))
    });
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

    /// The line as an entry of this address.
    fn with(body: &'a str, address: IpAddr) -> Option<Self> {
        Self::of(body).filter(|entry| entry.address == address)
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
pub fn is_host_name(name: &str) -> bool {
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
