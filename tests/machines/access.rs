//! Who may write Machines and Hosts: the controllers, by least privilege, and no node.

use serde_json::Value;

use crate::sources::read;

fn documents(template: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(&read(template)).unwrap()
}

const ACCESS: &str = "templates/cluster/machines-access.yaml.j2";

fn strings<'a>(value: &'a Value, key: &str) -> Vec<&'a str> {
    value[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn the_controllers_have_no_wildcard_and_change_no_access() {
    let documents = documents(ACCESS);
    let rules = documents.iter().filter_map(|document| document["rules"].as_array()).flatten();
    let mut seen = 0;
    for rule in rules {
        seen += 1;
        for key in ["apiGroups", "resources", "verbs"] {
            assert!(!strings(rule, key).contains(&"*"), "{rule}");
        }
        for group in ["rbac.authorization.k8s.io", "admissionregistration.k8s.io", "apiextensions.k8s.io"] {
            assert!(!strings(rule, "apiGroups").contains(&group), "{rule}");
        }
        for verb in ["impersonate", "escalate", "bind", "deletecollection"] {
            assert!(!strings(rule, "verbs").contains(&verb), "{rule}");
        }
    }
    assert!(seen > 10, "{seen}");
    let subjects: Vec<&Value> =
        documents.iter().filter_map(|document| document["subjects"].as_array()).flatten().collect();
    assert_eq!(subjects.len(), 2);
    for subject in subjects {
        assert_eq!(
            (&subject["kind"], &subject["name"]),
            (&"User".into(), &"metalform:machine-controller".into())
        );
    }
}

#[test]
fn every_kind_of_ours_is_refused_to_the_same_identities_as_keys_of_nodes() {
    let policy = |template: &str| {
        let documents = documents(template);
        documents.into_iter().find(|document| document["kind"] == "ValidatingAdmissionPolicy").unwrap()
    };
    let (nodes, machines) = (policy("templates/cluster/node-policy.yaml.j2"), policy(ACCESS));
    assert_eq!(machines["spec"]["matchConditions"], nodes["spec"]["matchConditions"]);
    let rule = &machines["spec"]["matchConstraints"]["resourceRules"][0];
    let groups = strings(rule, "apiGroups");
    for definition in metalform::machine::api::definitions() {
        assert!(groups.contains(&definition.spec.group.as_str()), "{}", definition.spec.names.kind);
    }
    assert_eq!(strings(rule, "resources"), ["*/*"], "subresources too");
    assert_eq!(strings(rule, "operations"), ["CREATE", "UPDATE", "DELETE"]);
}
