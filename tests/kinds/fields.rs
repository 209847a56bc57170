//! The tables of fields say what `parse` takes, neither more nor less.

use std::collections::BTreeMap;

use metalform::model::near::Near;
use metalform::resource::KindSpec;
use metalform::resource::Resource;
use metalform::resource::contract::change::Verdict;
use metalform::resource::contract::context::Context;
use metalform::resource::contract::ensure::Ensure;
use metalform::resource::contract::pending::Pending;
use metalform::resource::contract::probe::Observed;
use metalform::resource::fields;
use metalform::resource::fields::field::{FieldSort, FieldSpec};
use metalform::resource::fields::given::FieldError;
use metalform::resource::kinds;
use serde_json::{Map, Value, json};

use super::case::NOW;

/// The name and all fields of a resource of each kind.
fn whole(kind: &str) -> (&'static str, Value) {
    let access = json!({"mode": "0600", "owner": "etcd", "group": "etcd"});
    let mut fields = match kind {
        "archive" => {
            json!({"url": "https://a.example/a.tar.gz", "sha256": "0".repeat(64), "ca": "/ca", "strip": 1})
        }
        "binary" => json!({"url": "https://a.example/a", "sha256": "0".repeat(64), "ca": "/ca"}),
        "certificate" => json!({
            "key": "/k", "authority": "a", "common_name": "n", "organizations": ["o"], "names": ["x", "::1"],
            "usages": ["server"], "days": 30, "renew_before": 10,
        }),
        "command" => json!({
            "run": "true", "creates": "/a", "unless": "false", "only_if": "true", "only_if_changed": ["file:/a"],
        }),
        "directory" => json!({"recursive": true}),
        "file" | "template" => json!({"content": "text", "replace": false}),
        "authorized_key" => json!({
            "user": "deploy",
            "key": "no-pty ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f a key",
        }),
        "group" => json!({"gid": 1005, "system": true}),
        "mount" => json!({
            "device": "UUID=1f", "type": "ext4", "options": ["noatime"], "dump": 0, "pass": 2, "mounted": true,
        }),
        "user" => json!({
            "uid": 1005, "group": "users", "groups": ["adm"], "exact_groups": true, "home": "/srv/it's a home",
            "create_home": true, "shell": "/bin/bash", "comment": "Deploys -things \"äll day\"", "system": false,
            "password_hash": "$6$salt$hash", "locked": false, "remove_home": false,
        }),
        "host_entry" => json!({"names": ["node-1.example", "node-1"]}),
        "image" | "swap" => json!({}),
        "kmod" => json!({"file": "/etc/modules-load.d/kubernetes.conf"}),
        "kubeconfig" => json!({
            "server": "https://127.0.0.1:7443", "ca": "/ca.crt", "cluster": "c", "certificate": "/c", "key": "/k",
            "authority": "a", "common_name": "n", "organizations": ["o"], "days": 30, "renew_before": 10,
        }),
        "line" => json!({
            "path": "/it's a \"file\"", "text": "-a 'b' = $c", "match": "-a.*", "below": "#.*", "create": true,
        }),
        "package" => json!({"version": "1.7.24~ds1-6+b4", "hold": true}),
        "package_repository" => json!({
            "format": "deb", "uri": "https://repository.example:8443/debian", "suite": "trixie", "components": ["main"],
            "key": "-----BEGIN PGP PUBLIC KEY BLOCK-----", "ca": "/etc/ca.crt", "exclusive": true,
        }),
        "reboot" => json!({"when_file": "/run/x", "deadline": 5}),
        "route" => json!({"via": "10.0.0.1", "device": "eth0"}),
        "service" => json!({
            "enabled": true, "running": true, "masked": false, "restart_when_changed": ["file:/a"], "reload_when_changed": ["file:/b"],
        }),
        "static_pod" => json!({"content": "text"}),
        "unit" => json!({"content": "text", "verify": false}),
        "wait" => json!({"http": "https://a.example/", "status": 200, "ca": "/ca", "deadline": 5}),
        "symlink" => json!({"target": "b"}),
        "sysctl" => json!({"value": 1, "file": "/etc/sysctl.d/90-kubernetes.conf"}),
        other => panic!("the kind {other} has no example"),
    };
    if matches!(kind, "archive" | "binary" | "certificate" | "directory" | "file" | "kubeconfig" | "template")
    {
        fields.as_object_mut().unwrap().extend(access.as_object().unwrap().clone());
    }
    let name = match kind {
        "authorized_key" | "command" | "line" => "Say \"hello\" to the world's end",
        "group" | "user" => "deploy",
        "host_entry" => "10.0.0.1",
        "reboot" | "wait" => "the API server to be ready",
        "image" => "registry.k8s.io/pause:3.10",
        "kmod" => "br_netfilter",
        "package" | "package_repository" => "containerd",
        "route" => "10.96.0.0/12",
        "service" | "unit" => "kubelet.service",
        "static_pod" => "etcd",
        "swap" => "off",
        "sysctl" => "net.ipv4.ip_forward",
        _ => "/with space/it's\nünï-code",
    };
    (name, fields)
}

/// Fields that cannot stand beside those of [`whole`].
fn alternatives(kind: &str) -> Vec<Value> {
    match kind {
        "package_repository" => vec![json!({
            "format": "rpm", "uri": "https://a.example/", "key": "-----BEGIN PGP PUBLIC KEY BLOCK-----",
            "signed_index": false,
        })],
        "reboot" => vec![json!({"only_if_changed": ["file:/a"]})],
        "wait" => vec![json!({"port": "a:1"}), json!({"file": "/a"})],
        _ => Vec::new(),
    }
}

/// What happens, and cannot be taken back.
const UNREMOVABLE: [&str; 3] = ["command", "reboot", "wait"];

fn parse(kind: &str, name: &str, fields: &Value) -> Result<Resource, FieldError> {
    Resource::parse(kind, name, fields.as_object().unwrap().clone(), Ensure::Present, false)
}

fn each_field() -> impl Iterator<Item = (&'static str, &'static FieldSpec)> {
    kinds().iter().flat_map(|kind| kind.fields.iter().map(|field| (kind.name, field)))
}

#[test]
fn each_declared_field_is_accepted_and_no_other() {
    for kind in kinds() {
        let (name, mut given) = whole(kind.name);
        let declared: Vec<_> = fields(kind.name).unwrap().iter().map(|field| field.name).collect();
        let others = alternatives(kind.name);
        for field in &declared {
            let has = |fields: &Value| fields.get(*field).is_some();
            assert!(has(&given) || others.iter().any(has), "no example of {} has {field}", kind.name);
        }
        assert!(given.as_object().unwrap().len() <= declared.len(), "{}", kind.name);
        for other in &others {
            assert!(parse(kind.name, name, other).is_ok(), "{:?}", parse(kind.name, name, other));
        }
        assert!(parse(kind.name, name, &given).is_ok(), "{:?}", parse(kind.name, name, &given));

        given.as_object_mut().unwrap().insert("surplus".into(), json!(""));
        let error =
            FieldError::UnknownField { kind: kind.name, field: "surplus".into(), near: Near::default() };
        assert_eq!(parse(kind.name, name, &given), Err(error));
    }
}

#[test]
fn only_required_fields_are_missed_and_only_in_what_should_be_there() {
    for (kind, field) in each_field() {
        let (name, mut given) = whole(kind);
        given.as_object_mut().unwrap().remove(field.name);
        let missing = matches!(parse(kind, name, &given), Err(FieldError::Missing { field: missed, .. }) if missed == field.name);
        assert_eq!(missing, field.required, "{kind} without {}", field.name);
    }
    // Where the name is a sentence, fields say where it lies.
    let sentences = ["authorized_key", "line"];
    let named = |kind: &&KindSpec| !sentences.contains(&kind.name) && !UNREMOVABLE.contains(&kind.name);
    for kind in kinds().iter().filter(named) {
        let absent = Resource::parse(kind.name, whole(kind.name).0, Map::new(), Ensure::Absent, false);
        assert!(absent.is_ok(), "{absent:?}");
    }
}

#[test]
fn a_value_of_another_sort_is_refused_and_so_is_nul() {
    for (kind, field) in each_field() {
        let wrong: &[Value] = match field.sort {
            FieldSort::Text => &[json!(1), json!(true), json!(null), json!(["a"]), json!("a\0b")],
            FieldSort::Mode => &[json!(420), json!("999"), json!("rw"), json!("0o644")],
            FieldSort::Integer => &[json!("1"), json!(1.5), json!(true)],
            FieldSort::Boolean => &[json!("true"), json!(1)],
            FieldSort::TextList => &[json!("a"), json!([1]), json!(["a\0b"])],
            FieldSort::TextMap => &[json!("a"), json!({"a": 1})],
            FieldSort::Any => &[json!("a\0b")],
        };
        for value in wrong {
            let (name, mut given) = whole(kind);
            given.as_object_mut().unwrap().insert(field.name.into(), value.clone());
            assert!(parse(kind, name, &given).is_err(), "{kind} with {}: {value}", field.name);
        }
    }
    for kind in kinds() {
        assert!(parse(kind.name, "a\0b", &whole(kind.name).1).is_err(), "{}", kind.name);
        assert!(parse(kind.name, "", &whole(kind.name).1).is_err(), "{}", kind.name);
    }
}

#[test]
fn what_was_not_observed_is_refused() {
    let (now, authorities) = (NOW.parse().unwrap(), BTreeMap::from([("a".to_owned(), String::new())]));
    let context = Context { now, authorities: &authorities, own_boot_id: None, pending: &Pending::default() };
    for kind in kinds() {
        let (name, given) = whole(kind.name);
        let verdict = parse(kind.name, name, &given).unwrap().diff(&Observed::default(), &context);
        let Verdict::Refuse { reason } = verdict else { panic!("{}: {verdict:?}", kind.name) };
        assert!(reason.ends_with(" was not observed"), "{}: {reason}", kind.name);
    }
}

#[test]
fn what_is_misspelt_gets_a_suggestion() {
    let error = parse("package", "a", &json!({"verison": "1"})).unwrap_err();
    assert_eq!(error.to_string(), "unknown field \"verison\" of package; did you mean \"version\"?");
    let error = parse("pakage", "a", &json!({})).unwrap_err();
    assert_eq!(error.to_string(), "unknown kind \"pakage\"; did you mean \"package\"?");
}
