//! Whether packages can be installed from an index alone. Pure.

use std::collections::{BTreeMap, BTreeSet};

use debversion::Version;

use super::stanza::{self, Stanza};
use crate::bundle::format::Unmet;

/// Follows `Pre-Depends` and `Depends` from `roots` through a `Packages` index, and returns the unmet relations
/// (Debian Policy, chapter 7). Conflicts are left to apt.
pub fn unmet(packages: &str, roots: &BTreeSet<String>) -> BTreeSet<Unmet> {
    let stanzas = stanza::parse(packages);
    let index = Index::new(&stanzas);
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut queue: Vec<(Option<&str>, String)> = roots.iter().map(|root| (None, root.clone())).collect();
    while let Some((package, needs)) = queue.pop() {
        let Some(stanza) = needs.split('|').find_map(|alternative| index.meets(alternative)) else {
            found.insert(Unmet { package: package.map(str::to_owned), needs });
            continue;
        };
        let name = stanza.get("Package").map_or("", String::as_str);
        if seen.insert(name) {
            let fields = ["Pre-Depends", "Depends"].into_iter().filter_map(|field| stanza.get(field));
            let relations = fields.flat_map(|relations| relations.split(','));
            queue.extend(relations.map(|relation| (Some(name), relation.trim().to_owned())));
        }
    }
    found
}

struct Index<'a> {
    /// Real or virtual name → the packages with it, and the version (an unversioned `Provides` has none).
    names: BTreeMap<&'a str, Vec<(&'a Stanza, Option<Version>)>>,
}

impl<'a> Index<'a> {
    fn new(stanzas: &'a [Stanza]) -> Self {
        let mut names: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for stanza in stanzas {
            if let Some(name) = stanza.get("Package") {
                let version = stanza.get("Version").and_then(|version| version.parse().ok());
                names.entry(name).or_default().push((stanza, version));
            }
            for provided in stanza.get("Provides").into_iter().flat_map(|provides| provides.split(',')) {
                let (name, constraint) = relation(provided);
                let version = constraint.and_then(|(_, version)| version.parse().ok());
                names.entry(name).or_default().push((stanza, version));
            }
        }
        Self { names }
    }

    fn meets(&self, alternative: &str) -> Option<&'a Stanza> {
        let (name, constraint) = relation(alternative);
        let fits = |version: &Option<Version>| match (constraint, version) {
            (None, _) => true,
            (Some((operator, wanted)), Some(version)) => {
                wanted.parse().is_ok_and(|wanted: Version| compare(version, operator, &wanted))
            }
            (Some(_), None) => false,
        };
        let holders = self.names.get(name)?;
        holders.iter().find(|(_, version)| fits(version)).map(|(stanza, _)| *stanza)
    }
}

/// `name:any (>= 1)` → the name, and the operator with the version.
fn relation(text: &str) -> (&str, Option<(&str, &str)>) {
    let (name, constraint) = match text.split_once('(') {
        Some((name, rest)) => (name, Some(rest.trim_end().trim_end_matches(')'))),
        None => (text, None),
    };
    let name = name.trim();
    let name = name.split_once(':').map_or(name, |(name, _)| name);
    let split = |text: &str| text.find(|c: char| !"<>=".contains(c)).unwrap_or(text.len());
    (
        name,
        constraint
            .map(|text| text.split_at(split(text)))
            .map(|(operator, version)| (operator, version.trim())),
    )
}

fn compare(version: &Version, operator: &str, wanted: &Version) -> bool {
    match operator {
        "<<" => version < wanted,
        "<=" => version <= wanted,
        "=" => version == wanted,
        ">=" => version >= wanted,
        ">>" => version > wanted,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INDEX: &str = "\
Package: kubelet
Version: 1.35.4
Depends: iptables (>= 1.8), conntrack:any, mta | exim

Package: iptables
Version: 1.8.9-2
Pre-Depends: libc6 (>= 2.36)
Provides: firewall

Package: conntrack
Version: 1:1.4.7-1
Depends: libc6 (<< 2.37~), firewall

Package: postfix
Version: 3
Provides: mta (= 3)

Package: libc6
Version: 2.36-9+deb12u10
";

    #[test]
    fn every_unmet_dependency_is_reported() {
        let roots = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
        let lines = |index: &str, names: &[&str]| {
            unmet(index, &roots(names)).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(lines(INDEX, &["kubelet"]), [""; 0]);
        assert_eq!(lines(INDEX, &["kubectl"]), ["package kubectl is missing"]);
        let older = INDEX.replace("2.36-9", "2.31-1").replace("Provides: mta (= 3)\n", "");
        assert_eq!(
            lines(&older, &["kubelet"]),
            [
                "package iptables depends on libc6 (>= 2.36), which is missing",
                "package kubelet depends on mta | exim, which is missing",
            ]
        );
        let versioned = INDEX.replace(", firewall", ", firewall (>= 1)");
        assert_eq!(
            lines(&versioned, &["conntrack"]),
            ["package conntrack depends on firewall (>= 1), which is missing"]
        );
    }
}
