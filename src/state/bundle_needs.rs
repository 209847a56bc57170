//! What a tree asks of a bundle: the images and the packages that its states and templates name. Nothing is rendered, so
//! that this holds for each role, operating system and architecture.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::library::Library;
use super::location::Position;
use super::tree::Tree;
use crate::resource::contract::kind::Kind;

/// Something that a bundle must have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum BundleNeed {
    /// `cluster.images.NAME`.
    Image(String),
    /// `cluster.packages.NAME`, or a resource of the kind `package`.
    Package(String),
}

/// A constant name: a computed one cannot be known here, and `the_shipped_tree_names_what_it_asks_for` finds it.
static ASKED: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"cluster\.(images|packages)(?:\.([A-Za-z_][A-Za-z0-9_]*)|\[\s*["']([^"']+)["']\s*\])"#)
        .expect("the pattern is a regular expression")
});

/// What the tree asks for, each with the first place that does: `states/etcd.yaml:15`. A package whose resource has a
/// condition is not asked of every bundle, and is left out.
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
        for resource in packages.filter(|resource| resource.when.is_none() && resource.each.is_none()) {
            let place = || format!("states/{}.yaml:{}", file.name, resource.name.at.line);
            needs.entry(BundleNeed::Package(resource.name.value.clone())).or_insert_with(place);
        }
    }
    needs
}

fn asked(text: &str) -> impl Iterator<Item = (usize, BundleNeed)> {
    ASKED.captures_iter(text).filter_map(|found| {
        let (whole, kind) = (found.get(0)?, found.get(1)?);
        let name = found.get(2).or_else(|| found.get(3))?.as_str().to_owned();
        let need =
            if kind.as_str() == "images" { BundleNeed::Image(name) } else { BundleNeed::Package(name) };
        Some((whole.start(), need))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_each_form() {
        let text = "a: {{ cluster.images.etcd }}\nb: {{ cluster.packages['kube-proxy'] }} {{ cluster.images[ \"a-b\" ] }}";
        let found: Vec<_> = asked(text).map(|(_, need)| need).collect();
        let image = |name: &str| BundleNeed::Image(name.to_owned());
        assert_eq!(found, [image("etcd"), BundleNeed::Package("kube-proxy".to_owned()), image("a-b")]);
    }

    #[test]
    fn the_shipped_tree_names_what_it_asks_for() {
        let tree = Tree::embedded();
        let needs = bundle_needs(&tree, &Library::read(&tree).unwrap());
        assert_eq!(needs[&BundleNeed::Package("haproxy".to_owned())], "states/node-packages.yaml:23");
        assert!(needs.contains_key(&BundleNeed::Image("kube-apiserver".to_owned())), "{needs:?}");
        for (path, text) in tree.states().chain(tree.templates()) {
            let mentioned = text.matches("cluster.images").count() + text.matches("cluster.packages").count();
            assert_eq!(mentioned, asked(text).count(), "a computed name in {path}");
        }
    }
}
