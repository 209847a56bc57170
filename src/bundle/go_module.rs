//! The files of a wrapper module. Pure.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::component::{Component, GoSource};
use crate::model::platform::Architecture;

/// Path in the module's directory → content.
pub(super) type Files = BTreeMap<String, String>;

/// The files of the module that builds a component. `staging` is the go.mod of the required module when its staging
/// modules must be replaced.
pub(super) fn files(
    component: &Component,
    source: &GoSource,
    architecture: Architecture,
    staging: Option<&str>,
) -> Files {
    let mut module = format!("module metalform.dev/bundle/{}\n\ngo 1.25.0\n", component.name);
    for (path, version) in required(component, source, architecture) {
        let _ = writeln!(module, "\nrequire {path} {version}");
    }
    for (path, version) in staging.map(|text| replacements(text, &component.version)).unwrap_or_default() {
        let _ = writeln!(module, "\nreplace {path} => {path} {version}");
    }
    let mut files = Files::from([("go.mod".to_owned(), module)]);
    if !source.packages.is_empty() {
        let mut imports = "//go:build tools\n\npackage tools\n\nimport (\n".to_owned();
        for path in source.packages.values() {
            let _ = writeln!(imports, "\t_ \"{path}\"");
        }
        imports.push_str(")\n");
        files.insert("tools.go".to_owned(), imports);
    }
    for (binary, main) in &source.mains {
        files.insert(format!("cmd/{binary}/main.go"), main.clone());
    }
    files
}

/// Required modules and versions, with placeholders replaced.
pub(super) fn required(
    component: &Component,
    source: &GoSource,
    architecture: Architecture,
) -> BTreeMap<String, String> {
    let expand = |text: &String| component.expand(text, architecture);
    source.requires.iter().map(|(path, version)| (path.clone(), expand(version))).collect()
}

/// Every `k8s.io/NAME v0.0.0` of Kubernetes' go.mod at its published version: v1.X.Y of Kubernetes is v0.X.Y of its
/// staging modules (kubernetes/publishing-bot).
fn replacements(go_mod: &str, version: &str) -> BTreeMap<String, String> {
    let published = format!("v0.{}", version.split_once('.').map_or(version, |(_, rest)| rest));
    let staged = go_mod.lines().filter_map(|line| {
        let mut words = line.trim().trim_start_matches("require ").split_whitespace();
        let path = words.next().filter(|path| path.starts_with("k8s.io/"))?;
        (words.next() == Some("v0.0.0")).then(|| (path.to_owned(), published.clone()))
    });
    staged.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::component_list;

    #[test]
    fn only_staging_modules_are_replaced() {
        let list = component_list::parse("shipped", component_list::SHIPPED).unwrap();
        let kubernetes = &list.components[0];
        let go_mod = "module k8s.io/kubernetes\nrequire (\n\tk8s.io/api v0.0.0\n\tk8s.io/klog/v2 v2.130.1\n\
                      \tgithub.com/a/b v0.0.0\n\tk8s.io/kms v0.0.0 // indirect\n)\nreplace k8s.io/api => ./staging\n";
        let files =
            files(kubernetes, kubernetes.sources.go.as_ref().unwrap(), Architecture::Amd64, Some(go_mod));
        insta::assert_snapshot!(files["go.mod"], @r"
        module metalform.dev/bundle/kubernetes

        go 1.25.0

        require k8s.io/kubernetes v1.35.4

        replace k8s.io/api => k8s.io/api v0.35.4

        replace k8s.io/kms => k8s.io/kms v0.35.4
        ");
        assert_eq!(files.keys().collect::<Vec<_>>(), ["go.mod", "tools.go"]);
    }
}
