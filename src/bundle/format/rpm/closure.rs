//! Whether packages can be installed from an index alone. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::repodata::{RelationEntry, RepositoryIndexes};
use super::requirement::Requirement;
use super::version_range::VersionRange;
use crate::bundle::format::Unmet;

/// Follows the requirements of `roots` through a repository, and returns the unmet ones. What packages conflict with or
/// replace is left to dnf. The condition of `(a if b)` is taken as true when the repository has it.
pub(super) fn unmet(indexes: &RepositoryIndexes, roots: &BTreeSet<String>) -> BTreeSet<Unmet> {
    let index = Index::new(indexes);
    let mut found = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut queue: Vec<(Option<&str>, String)> = roots.iter().map(|root| (None, root.clone())).collect();
    while let Some((package, needs)) = queue.pop() {
        let requirement = Requirement::parse(&needs);
        let Some(met) = requirement.and_then(|requirement| index.meets(&requirement)) else {
            found.insert(Unmet { package: package.map(str::to_owned), needs });
            continue;
        };
        for at in met.into_iter().filter(|at| seen.insert(*at)) {
            let dependent = &indexes.packages[at];
            let requires = dependent.format.requires.entry.iter().map(written);
            queue.extend(requires.map(|needs| (Some(dependent.name.as_str()), needs)));
        }
    }
    found
}

/// As in a package's own description: `runc >= 1.2`.
fn written(relation: &RelationEntry) -> String {
    let operator = match relation.flags.as_deref() {
        Some("EQ") => "=",
        Some("LT") => "<",
        Some("LE") => "<=",
        Some("GE") => ">=",
        Some("GT") => ">",
        _ => return relation.name.clone(),
    };
    let epoch = relation.epoch.as_deref().filter(|epoch| *epoch != "0");
    let epoch = epoch.map(|epoch| format!("{epoch}:")).unwrap_or_default();
    let release = relation.release.as_deref().map(|release| format!("-{release}")).unwrap_or_default();
    let version = relation.version.as_deref().unwrap_or_default();
    format!("{} {operator} {epoch}{version}{release}", relation.name)
}

struct Index<'a> {
    /// Capability or file → the packages with it, by their place, and the versions (none: every version).
    holders: BTreeMap<&'a str, Vec<(usize, Option<VersionRange>)>>,
}

impl<'a> Index<'a> {
    fn new(indexes: &'a RepositoryIndexes) -> Self {
        let mut holders: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for (at, package) in indexes.packages.iter().enumerate() {
            for provided in &package.format.provides.entry {
                holders.entry(&provided.name).or_default().push((at, range(provided)));
            }
        }
        // Both documents have the packages in one order.
        for (at, package) in indexes.files.iter().enumerate().take(indexes.packages.len()) {
            for file in &package.file {
                holders.entry(&file.path).or_default().push((at, None));
            }
        }
        Self { holders }
    }

    /// Packages that together meet a requirement; `None` when there are none.
    fn meets(&self, requirement: &Requirement) -> Option<BTreeSet<usize>> {
        match requirement {
            Requirement::One(name, wanted) => self.one(name, wanted.as_ref()).map(|at| BTreeSet::from([at])),
            Requirement::All(terms) => {
                let met = terms.iter().map(|term| self.meets(term)).collect::<Option<Vec<_>>>()?;
                Some(met.into_iter().flatten().collect())
            }
            Requirement::Any(terms) => terms.iter().find_map(|term| self.meets(term)),
            Requirement::If(pair, otherwise) => {
                let [needed, condition] = pair.as_ref();
                match (self.meets(condition), otherwise) {
                    (Some(_), _) => self.meets(needed),
                    (None, Some(otherwise)) => self.meets(otherwise),
                    (None, None) => Some(BTreeSet::new()),
                }
            }
            Requirement::Unless(pair) => {
                let [needed, condition] = pair.as_ref();
                self.meets(needed).or_else(|| self.meets(condition).map(|_| BTreeSet::new()))
            }
        }
    }

    fn one(&self, name: &str, wanted: Option<&VersionRange>) -> Option<usize> {
        let fits = |provided: &Option<VersionRange>| match (wanted, provided) {
            (Some(wanted), Some(provided)) => wanted.overlaps(provided),
            // rpm(8): what has no version meets every one.
            _ => true,
        };
        self.holders.get(name)?.iter().find(|(_, provided)| fits(provided)).map(|(at, _)| *at)
    }
}

fn range(relation: &RelationEntry) -> Option<VersionRange> {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    let (epoch, version, release) = (part(&relation.epoch), part(&relation.version), part(&relation.release));
    VersionRange::new(relation.flags.as_deref()?, (&epoch, &version, &release))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packages, each with its version, requirements, capabilities besides its name, and files.
    type Given<'a> = (&'a str, &'a str, &'a [&'a str], &'a [&'a str], &'a [&'a str]);

    const GIVEN: [Given<'_>; 5] = [
        (
            "kubelet",
            "1.35.4-1",
            &["iptables >= 1.8", "conntrack-tools", "(mta or exim)", "/usr/bin/sh", "(x if y)"],
            &[],
            &[],
        ),
        ("iptables-nft", "1.8.10-2.el9", &["glibc >= 2.34"], &["iptables = 1.8.10-2.el9"], &[]),
        ("conntrack-tools", "1.4.7-2.el9", &["glibc < 2.35", "libc.so.6(GLIBC_2.34)(64bit)"], &[], &[]),
        ("postfix", "2:3.5-1", &[], &["mta"], &[]),
        ("glibc", "2.34-60.el9", &[], &["libc.so.6(GLIBC_2.34)(64bit)"], &["/usr/bin/sh"]),
    ];

    fn repository(given: &[Given<'_>]) -> RepositoryIndexes {
        let directory = tempfile::tempdir().unwrap();
        let relation = |text: &str| match *text.split(' ').collect::<Vec<_>>() {
            [name, "=", version] => rpm::Dependency::eq(name, version),
            [name, ">=", version] => rpm::Dependency::greater_eq(name, version),
            [name, "<", version] => rpm::Dependency::less(name, version),
            _ => rpm::Dependency::any(text),
        };
        let mut entries = Vec::new();
        for (name, evr, requires, provides, files) in given {
            let (epoch, version, release) = rpm_version::Evr::parse_values(evr);
            let mut builder = rpm::PackageBuilder::new(name, version, "MIT", "x86_64", name);
            builder.release(release);
            if let Ok(epoch) = epoch.parse() {
                builder.epoch(epoch);
            }
            for text in *requires {
                builder.requires(relation(text));
            }
            for text in *provides {
                builder.provides(relation(text));
            }
            for file in *files {
                builder.with_file_contents("", rpm::FileOptions::new(*file)).unwrap();
            }
            let path = directory.path().join(format!("{name}.rpm"));
            builder.using_config(rpm::BuildConfig::v4().compression(rpm::CompressionType::None));
            builder.build().unwrap().write_file(path).unwrap();
            let (_, entry) =
                super::super::repodata::describe(directory.path(), &format!("{name}.rpm")).unwrap();
            entries.push(entry);
        }
        let date = jiff::Timestamp::UNIX_EPOCH;
        super::super::repodata::write(&directory.path().join("repository"), &entries, date).unwrap();
        super::super::repodata::read(&directory.path().join("repository")).unwrap()
    }

    fn lines(given: &[Given<'_>], roots: &[&str]) -> Vec<String> {
        let roots = roots.iter().map(|&root| root.to_owned()).collect();
        unmet(&repository(given), &roots).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_unmet_dependency_is_reported() {
        assert_eq!(lines(&GIVEN, &["kubelet"]), [""; 0]);
        assert_eq!(lines(&GIVEN, &["kubectl"]), ["package kubectl is missing"]);
        let mut older = GIVEN;
        older[4] = ("glibc", "2.28-1", &[], &[], &[]);
        older[3].3 = &[];
        assert_eq!(
            lines(&older, &["kubelet"]),
            [
                "package conntrack-tools depends on libc.so.6(GLIBC_2.34)(64bit), which is missing",
                "package iptables-nft depends on glibc >= 2.34, which is missing",
                "package kubelet depends on (mta or exim), which is missing",
                "package kubelet depends on /usr/bin/sh, which is missing",
            ]
        );
        let mut conditional = GIVEN;
        conditional[3].3 = &["mta", "y"];
        assert_eq!(
            lines(&conditional, &["kubelet"]),
            ["package kubelet depends on (x if y), which is missing"]
        );
        let mut epoch = GIVEN;
        epoch[1].2 = &["postfix < 2:3.5"];
        assert_eq!(
            lines(&epoch, &["iptables"]),
            ["package iptables-nft depends on postfix < 2:3.5, which is missing"]
        );
    }
}
