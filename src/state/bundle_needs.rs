//! What a tree asks of a bundle: the images and the packages that its states and templates name. Nothing is rendered, so
//! that this holds for each role, operating system and architecture.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::library::Library;
use super::location::Position;
use super::tree::Tree;
use crate::model::platform::PackageFormat;
use crate::resource::contract::kind::Kind;

/// Something that a bundle must have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BundleNeed {
    /// `cluster.images.NAME`.
    Image(String),
    /// `cluster.packages.NAME`, or a resource of the kind `package`.
    Package {
        /// In the repository.
        name: String,
        /// Of the hosts that ask for it; `None` is all of them.
        format: Option<PackageFormat>,
    },
}

/// A constant name: a computed one cannot be known here, and `the_shipped_tree_names_what_it_asks_for` finds it.
static ASKED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"cluster\.(images|packages)(?:\.([A-Za-z_][A-Za-z0-9_]*)|\[\s*["']([^"']+)["']\s*\])"#)
        .expect("the pattern is a regular expression")
});

/// The family of operating systems, as the whole condition of a resource.
static FAMILY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"^\s*facts\.os\.family\s*==\s*["'](debian|redhat)["']\s*$"#)
        .expect("the pattern is a regular expression")
});

/// What the tree asks for, each with the first place that does: `states/etcd.yaml:15`. A package whose resource has
/// another condition than the family of operating systems is not asked of every bundle, and is left out.
pub fn bundle_needs(tree: &Tree, library: &Library) -> BTreeMap<BundleNeed, String> {
    let mut needs = BTreeMap::new();
    let states = tree.states().map(|(path, text)| (format!("states/{path}"), text));
    let templates = tree.templates().map(|(path, text)| (format!("templates/{path}"), text));
    for (path, text) in states.chain(templates) {
        for (offset, need) in asked(text) {
            let line = Position::of_offset(text, offset).line;
            needs.entry(need).or_insert_with(|| format!("{path}:{line}"));
        }
    }
    for file in library.files.values() {
        let packages = file.resources.iter().filter(|resource| resource.kind.value == Ok(Kind::Package));
        for resource in packages.filter(|resource| resource.each.is_none()) {
            let Some(format) = format(resource.when.as_ref().map(|when| when.value.as_str())) else {
                continue;
            };
            let place = || format!("states/{}.yaml:{}", file.name, resource.name.at.line);
            let name = resource.name.value.clone();
            needs.entry(BundleNeed::Package { name, format }).or_insert_with(place);
        }
    }
    needs
}

/// Of the hosts that a condition selects; `None` where that is not known here.
fn format(when: Option<&str>) -> Option<Option<PackageFormat>> {
    let Some(when) = when else { return Some(None) };
    let family = FAMILY.captures(when)?;
    Some(PackageFormat::of_family(family.get(1)?.as_str()))
}

fn asked(text: &str) -> impl Iterator<Item = (usize, BundleNeed)> {
    ASKED.captures_iter(text).filter_map(|found| {
        let (whole, kind) = (found.get(0)?, found.get(1)?);
        let name = found.get(2).or_else(|| found.get(3))?.as_str().to_owned();
        let need = match kind.as_str() {
            "images" => BundleNeed::Image(name),
            _ => BundleNeed::Package { name, format: None },
        };
        Some((whole.start(), need))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, format: Option<PackageFormat>) -> BundleNeed {
        BundleNeed::Package { name: name.to_owned(), format }
    }

    #[test]
    fn a_condition_is_the_family_or_not_known() {
        let cases = [
            (None, Some(None)),
            (Some("facts.os.family == \"debian\""), Some(Some(PackageFormat::Deb))),
            (Some("facts.os.family=='redhat'"), Some(Some(PackageFormat::Rpm))),
            (Some("facts.os.family == \"redhat\" and not facts.container"), None),
            (Some("not facts.container"), None),
        ];
        for (when, expected) in cases {
            assert_eq!(format(when), expected, "{when:?}");
        }
    }

    #[test]
    fn names_are_found_in_each_form() {
        let text = "a: {{ cluster.images.etcd }}\nb: {{ cluster.packages['kube-proxy'] }} {{ cluster.images[ \"a-b\" ] }}";
        let found: Vec<_> = asked(text).map(|(_, need)| need).collect();
        let image = |name: &str| BundleNeed::Image(name.to_owned());
        assert_eq!(found, [image("etcd"), package("kube-proxy", None), image("a-b")]);
    }

    #[test]
    fn the_shipped_tree_names_what_it_asks_for() {
        let tree = Tree::embedded();
        let needs = bundle_needs(&tree, &Library::read(&tree).unwrap());
        assert!(needs[&package("haproxy", None)].starts_with("states/node-packages.yaml:"), "{needs:?}");
        let bird = [("bird2", PackageFormat::Deb), ("bird", PackageFormat::Rpm)];
        assert!(bird.iter().all(|(name, of)| needs.contains_key(&package(name, Some(*of)))), "{needs:?}");
        assert!(needs.contains_key(&BundleNeed::Image("kube-apiserver".to_owned())), "{needs:?}");
        for (path, text) in tree.states().chain(tree.templates()) {
            let mentioned = text.matches("cluster.images").count() + text.matches("cluster.packages").count();
            assert_eq!(mentioned, asked(text).count(), "a computed name in {path}");
        }
    }
}
