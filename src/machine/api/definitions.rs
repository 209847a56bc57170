//! The CustomResourceDefinitions of the API of Machines.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

use super::host::HostObject;
use super::machine::Machine;
use super::machine_deployment::MachineDeployment;
use super::machine_set::MachineSet;
use crate::kube_api::FIELD_MANAGER;
use crate::model::api_contract::{API_APPROVED, API_UNAPPROVED, MANAGED_BY};

/// The definitions of every kind, in the order in which they are applied.
/// `templates/cluster/machines.yaml.j2` contains them for `bootstrap`, which recognises its own by their label.
pub fn definitions() -> Vec<CustomResourceDefinition> {
    let mut definitions = vec![MachineDeployment::crd(), MachineSet::crd(), Machine::crd()];
    for definition in &mut definitions {
        let approval = BTreeMap::from([(API_APPROVED.to_owned(), API_UNAPPROVED.to_owned())]);
        definition.metadata.annotations = Some(approval);
    }
    definitions.push(HostObject::crd());
    for definition in &mut definitions {
        let owner = BTreeMap::from([(MANAGED_BY.to_owned(), FIELD_MANAGER.to_owned())]);
        definition.metadata.labels = Some(owner);
    }
    for version in definitions.iter_mut().flat_map(|definition| &mut definition.spec.versions) {
        if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            // The name of the Rust type.
            schema.title = None;
            describe(schema);
        }
    }
    definitions
}

/// Makes each paragraph of a doc comment one line, for `kubectl explain`.
fn describe(schema: &mut JSONSchemaProps) {
    if let Some(description) = &mut schema.description {
        let paragraphs = description.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
        *description = paragraphs.collect::<Vec<_>>().join("\n\n");
    }
    for property in schema.properties.iter_mut().flat_map(BTreeMap::values_mut) {
        describe(property);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        describe(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        describe(values);
    }
}

#[cfg(test)]
mod tests;
