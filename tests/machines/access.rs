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
fn the_metrics_are_a_right_of_their_own_without_a_binding() {
    let documents = documents(ACCESS);
    let role = documents
        .iter()
        .find(|document| document["metadata"]["name"] == "metalform:machine-metrics")
        .unwrap();
    assert_eq!(role["kind"], "ClusterRole");
    assert_eq!(role["rules"], serde_json::json!([{ "nonResourceURLs": ["/metrics"], "verbs": ["get"] }]));
    let bound = |document: &&Value| document["roleRef"]["name"] == role["metadata"]["name"];
    assert_eq!(documents.iter().filter(bound).count(), 0);
    let reviews = |resource: &str| {
        let rules = documents.iter().filter_map(|document| document["rules"].as_array()).flatten();
        let rules = rules.filter(|rule| strings(rule, "resources").contains(&resource));
        rules.flat_map(|rule| strings(rule, "verbs")).map(str::to_owned).collect::<Vec<_>>()
    };
    // The API server decides who may read them; a review shows of a token whose it is, and changes nothing.
    assert_eq!(
        (reviews("tokenreviews"), reviews("subjectaccessreviews")),
        (vec!["create".into()], vec!["create".into()])
    );
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
