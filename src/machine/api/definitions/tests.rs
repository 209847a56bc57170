use std::path::Path;

use kube::Resource;

use super::*;
use crate::model::api_contract::{API_VERSION, MACHINE_API_VERSION};

const TEMPLATE: &str = "templates/cluster/machines.yaml.j2";
const HEADER: &str = "# The definitions of MachineDeployment, MachineSet, Machine and Host. Generated from the types in src/machine/api/ by\n\
    # UPDATE_EXPECTED=1 cargo test --lib machine::api::definitions\n";

/// The template that `bootstrap` applies is the definitions of this source: a change of a schema is a change of it.
#[test]
fn the_template_contains_the_definitions() {
    let mut text = HEADER.to_owned();
    for definition in definitions() {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(&definition).unwrap());
    }
    assert!(!["{{", "{%", "{#"].iter().any(|mark| text.contains(mark)), "it would not render as it is");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(TEMPLATE);
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap();
    assert!(found == text, "{TEMPLATE} is not the definitions: UPDATE_EXPECTED=1 rewrites it");
}

#[test]
fn the_kinds_have_the_versions_of_the_contract() {
    assert_eq!(MachineDeployment::api_version(&()), MACHINE_API_VERSION);
    assert_eq!(MachineSet::api_version(&()), MACHINE_API_VERSION);
    assert_eq!(Machine::api_version(&()), MACHINE_API_VERSION);
    assert_eq!(HostObject::api_version(&()), API_VERSION);
}

#[test]
fn the_kinds_have_short_names_and_subresources() {
    let found = definitions().into_iter().map(|definition| {
        let names = definition.spec.names;
        let version = definition.spec.versions[0].clone();
        let scale = version.subresources.and_then(|subresources| subresources.scale);
        let selector = scale.and_then(|scale| scale.label_selector_path).unwrap_or_default();
        let columns =
            version.additional_printer_columns.unwrap_or_default().into_iter().map(|column| column.name);
        let columns = columns.collect::<Vec<_>>().join(" ");
        let short = names.short_names.unwrap_or_default().join(" ");
        let words = [short.as_str(), "|", &selector, "|", &columns];
        let words = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        format!("{} {}: {words}", definition.spec.scope, names.kind)
    });
    insta::assert_snapshot!(found.collect::<Vec<_>>().join("\n"), @r"
    Namespaced MachineDeployment: md | .status.labelSelector | Desired Current Ready Available Up-to-date Paused Age Version
    Namespaced MachineSet: ms | .status.labelSelector | Desired Current Ready Available Age Version
    Namespaced Machine: ma | | Node Host Ready Phase Age Version ProviderID Internal-IP
    Cluster Host: | | Address State Machine OS Failure-Domain Age
    ");
}
