//! The states of a node, as things that shall not be there.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::inventory::HostInventory;
use super::section::Section;
use crate::resource::contract::kind::Kind;
use crate::resource::contract::resource_id::ResourceId;
use crate::state::{Compiled, Ensure};

/// What the states of every role have, to be absent, in the reverse of their order, and the packages that were brought by
/// theirs. A package that was installed before stays, held as it was. Pure.
pub fn removal(
    compiled: Vec<Compiled>,
    before: Option<&HostInventory>,
    brought: &[ResourceId],
) -> Vec<Compiled> {
    let undone = compiled.into_iter().rev().filter(|one| is_undone(one.id.kind));
    let mut removed: Vec<Compiled> = undone
        .map(|one| {
            let was = before.and_then(|before| before.get(Section::Package, &one.id.name));
            let mut one = Compiled { only_if_changed: Vec::new(), after: Vec::new(), ..one };
            for field in ["restart_when_changed", "reload_when_changed"] {
                one.fields.remove(field);
            }
            match was.filter(|_| one.id.kind == Kind::Package) {
                Some(was) => {
                    one.fields.remove("version");
                    one.fields.insert("hold".to_owned(), Value::Bool(was.starts_with("hold")));
                }
                None => one.ensure = Ensure::Absent,
            }
            one
        })
        .collect();
    if let Some(by) = removed.iter().rfind(|one| one.id.kind == Kind::Package).cloned() {
        let absent = |id: &ResourceId| Compiled {
            id: id.clone(),
            fields: Map::new(),
            ensure: Ensure::Absent,
            ..by.clone()
        };
        let known: BTreeSet<ResourceId> = removed.iter().map(|one| one.id.clone()).collect();
        removed.extend(brought.iter().filter(|id| !known.contains(id)).map(absent));
    }
    // In one transaction; what stops the services that they bring comes before.
    removed.sort_by_key(|one| match one.id.kind {
        Kind::Service => 0,
        Kind::Unit => 1,
        Kind::Package => 2,
        _ => 3,
    });
    removed
}

/// Whether it is undone by making it absent. Directories are emptied with all that is in them, also by others
/// ([`super::traces::DIRECTORIES`]); images are in one of them.
fn is_undone(kind: Kind) -> bool {
    match kind {
        Kind::Command | Kind::Directory | Kind::Image | Kind::Reboot | Kind::Wait => false,
        Kind::Archive
        | Kind::AuthorizedKey
        | Kind::Binary
        | Kind::Certificate
        | Kind::File
        | Kind::Group
        | Kind::HostEntry
        | Kind::Kmod
        | Kind::Kubeconfig
        | Kind::Line
        | Kind::Mount
        | Kind::Package
        | Kind::PackageRepository
        | Kind::Route
        | Kind::Service
        | Kind::StaticPod
        | Kind::Swap
        | Kind::Symlink
        | Kind::Sysctl
        | Kind::Template
        | Kind::Unit
        | Kind::User => true,
    }
}

/// Packages that go with those of the states: each is printed as `Brought NAME`, by `plan_removal.sh`.
pub fn brought(printed: &str) -> Vec<ResourceId> {
    let names = printed.lines().filter_map(|line| line.strip_prefix("Brought "));
    names.map(|name| ResourceId { kind: Kind::Package, name: name.to_owned() }).collect()
}

/// Packages that would be removed with these because they need them: each is printed as `Purg NAME` or `Remv NAME`, by
/// `apt-get --simulate purge` with what more it says, and for rpm by `installed_packages.sh`.
pub fn dependents(simulated: &str, ours: impl Fn(&str) -> bool) -> Vec<&str> {
    let removed = simulated.lines().filter_map(|line| {
        let rest = line.strip_prefix("Purg ").or_else(|| line.strip_prefix("Remv "))?;
        rest.split_whitespace().next()?.split(':').next()
    });
    removed.filter(|name| !ours(name)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Map, json};

    use super::*;
    use crate::state::{Location, Position};

    fn compiled(id: &str, fields: Value) -> Compiled {
        let Value::Object(fields) = fields else { panic!("{fields}") };
        Compiled {
            id: id.parse().unwrap(),
            fields: Map::from_iter(fields),
            ensure: Ensure::Present,
            sensitive: false,
            only_if_changed: Vec::new(),
            after: Vec::new(),
            source: Location::new("states/one.yaml", Position { line: 1, column: 1 }),
            places: BTreeMap::new(),
            state: "one".parse().unwrap(),
        }
    }

    #[test]
    fn services_stop_before_their_packages_go_and_what_was_there_stays() {
        let states = || {
            vec![
                compiled("file:/etc/one.conf", json!({ "content": "" })),
                compiled("package:runc", json!({})),
                compiled("package:kubelet", json!({ "version": "1.36", "hold": true })),
                compiled("directory:/var/lib/etcd", json!({})),
                compiled("service:kubelet", json!({ "restart_when_changed": ["package:kubelet"] })),
            ]
        };
        let ids = |all: &[Compiled]| -> Vec<String> {
            all.iter().map(|one| format!("{} {:?}", one.id, one.ensure)).collect()
        };
        let all = removal(states(), None, &[]);
        assert_eq!(
            ids(&all),
            [
                "service:kubelet Absent",
                "package:kubelet Absent",
                "package:runc Absent",
                "file:/etc/one.conf Absent"
            ]
        );
        assert!(all[0].fields.is_empty());
        let before = HostInventory::parse("package\tkubelet\tinstall installed\n");
        let kept = removal(states(), Some(&before), &[]);
        assert_eq!(ids(&kept)[1], "package:kubelet Present");
        assert_eq!(Value::Object(kept[1].fields.clone()), json!({ "hold": false }));
    }

    #[test]
    fn what_packages_have_brought_goes_with_them() {
        let states = vec![
            compiled("package:runc", json!({ "version": "1.1", "hold": true })),
            compiled("service:runc", json!({})),
        ];
        let printed = "package\trunc\tinstall installed\nBrought libseccomp2\nBrought runc\n";
        let found = removal(states, None, &brought(printed));
        let all: Vec<String> = found.iter().map(|one| format!("{} {:?}", one.id, one.ensure)).collect();
        assert_eq!(all, ["service:runc Absent", "package:runc Absent", "package:libseccomp2 Absent"]);
        assert!(found[2].fields.is_empty());
        assert!(removal(Vec::new(), None, &brought(printed)).is_empty());
    }

    #[test]
    fn a_package_of_others_that_needs_one_of_ours_is_found() {
        let simulated =
            "Reading package lists...\nPurg nfs-tool [1.0]\nPurg runc [1.1]\nRemv conntrack:amd64 [1]\n";
        assert_eq!(dependents(simulated, |name| name != "nfs-tool"), ["nfs-tool"]);
    }
}
