//! The tables of fields list exactly what `parse` accepts.

use std::collections::BTreeMap;

use metalform::model::near::Near;
use metalform::resource::KindSpec;
use metalform::resource::Resource;
use metalform::resource::contract::change::Verdict;
use metalform::resource::contract::context::Context;
use metalform::resource::contract::ensure::Ensure;
use metalform::resource::contract::kind::Kind;
use metalform::resource::contract::pending::Pending;
use metalform::resource::contract::probe::Observed;
use metalform::resource::fields;
use metalform::resource::fields::field_error::FieldError;
use metalform::resource::fields::field_spec::{FieldSpec, FieldType};
use metalform::resource::kinds;
use serde_json::{Map, Value, json};

use super::case::NOW;

/// The name and all fields of a resource of each kind.
fn whole(kind: Kind) -> (&'static str, Value) {
    let access = json!({"mode": "0600", "owner": "etcd", "group": "etcd"});
    let mut fields = match kind {
        Kind::Archive => {
            json!({"url": "https://a.example/a.tar.gz", "sha256": "0".repeat(64), "ca": "/ca", "strip": 1})
        }
        Kind::Binary => json!({"url": "https://a.example/a", "sha256": "0".repeat(64), "ca": "/ca"}),
        Kind::Certificate => json!({
            "key": "/k", "authority": "a", "common_name": "n", "organizations": ["o"], "names": ["x", "::1"],
            "usages": ["server"], "days": 30, "renew_before": 10,
        }),
        Kind::Command => json!({
            "run": "true", "creates": "/a", "unless": "false", "only_if": "true", "only_if_changed": ["file:/a"],
        }),
        Kind::Directory => json!({"recursive": true}),
        Kind::File | Kind::Template => json!({"content": "text", "replace": false}),
        Kind::AuthorizedKey => json!({
            "user": "deploy",
            "key": "no-pty ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f a key",
        }),
        Kind::Group => json!({"gid": 1005, "system": true}),
        Kind::Mount => json!({
            "device": "UUID=1f", "type": "ext4", "options": ["noatime"], "dump": 0, "pass": 2, "mounted": true,
        }),
        Kind::User => json!({
            "uid": 1005, "group": "users", "groups": ["adm"], "exact_groups": true, "home": "/srv/it's a home",
            "create_home": true, "shell": "/bin/bash", "comment": "Deploys -things \"äll day\"", "system": false,
            "password_hash": "$6$salt$hash", "locked": false, "remove_home": false,
        }),
        Kind::HostEntry => json!({"names": ["node-1.example", "node-1"]}),
        Kind::Image | Kind::Swap => json!({}),
        Kind::Kmod => json!({"file": "/etc/modules-load.d/kubernetes.conf"}),
        Kind::Kubeconfig => json!({
            "server": "https://127.0.0.1:7443", "ca": "/ca.crt", "cluster": "c", "certificate": "/c", "key": "/k",
            "authority": "a", "common_name": "n", "organizations": ["o"], "days": 30, "renew_before": 10,
        }),
        Kind::Line => json!({
            "path": "/it's a \"file\"", "text": "-a 'b' = $c", "match": "-a.*", "below": "#.*", "create": true,
        }),
        Kind::Package => json!({"version": "1.7.24~ds1-6+b4", "hold": true}),
        Kind::PackageRepository => json!({
            "format": "deb", "uri": "https://repository.example:8443/debian", "suite": "trixie", "components": ["main"],
            "key": "-----BEGIN PGP PUBLIC KEY BLOCK-----", "ca": "/etc/ca.crt", "exclusive": true,
        }),
        Kind::Reboot => json!({"when_file": "/run/x", "deadline": 5}),
        Kind::Route => json!({"via": "10.0.0.1", "device": "eth0"}),
        Kind::Service => json!({
            "enabled": true, "running": true, "masked": false, "restart_when_changed": ["file:/a"], "reload_when_changed": ["file:/b"],
        }),
        Kind::StaticPod => json!({"content": "<config-digest>", "restart_when_changed": ["file:/a"]}),
        Kind::Unit => json!({"content": "text", "verify": false}),
        Kind::Wait => json!({"http": "https://a.example/", "status": 200, "ca": "/ca", "deadline": 5}),
        Kind::Symlink => json!({"target": "b", "replace": false}),
        Kind::Sysctl => json!({"value": 1, "file": "/etc/sysctl.d/90-kubernetes.conf"}),
    };
    if matches!(
        kind,
        Kind::Archive
            | Kind::Binary
            | Kind::Certificate
            | Kind::Directory
            | Kind::File
            | Kind::Kubeconfig
            | Kind::Template
    ) {
        fields.as_object_mut().unwrap().extend(access.as_object().unwrap().clone());
    }
    let name = match kind {
        Kind::AuthorizedKey | Kind::Command | Kind::Line => "Say \"hello\" to the world's end",
        Kind::Group | Kind::User => "deploy",
        Kind::HostEntry => "10.0.0.1",
        Kind::Reboot | Kind::Wait => "the API server to be ready",
        Kind::Image => "registry.k8s.io/pause:3.10",
        Kind::Kmod => "br_netfilter",
        Kind::Package | Kind::PackageRepository => "containerd",
        Kind::Route => "10.96.0.0/12",
        Kind::Service | Kind::Unit => "kubelet.service",
        Kind::StaticPod => "etcd",
        Kind::Swap => "off",
        Kind::Sysctl => "net.ipv4.ip_forward",
        _ => "/with space/it's\nünï-code",
    };
    (name, fields)
}

/// Fields that exclude some of [`whole`], each with the name of a resource that has them.
fn alternatives(kind: Kind) -> Vec<(&'static str, Value)> {
    let (name, _) = whole(kind);
    let fields = match kind {
        Kind::HostEntry => return vec![("mirror.example", json!({"addresses": ["10.0.0.1"]}))],
        Kind::PackageRepository => ["signed_index", "signed_packages"]
            .map(|unsigned| {
                json!({
                    "format": "rpm", "uri": "https://a.example/", "key": "-----BEGIN PGP PUBLIC KEY BLOCK-----",
                    unsigned: false,
                })
            })
            .into(),
        Kind::Reboot => vec![json!({"only_if_changed": ["file:/a"]})],
        Kind::Wait => vec![json!({"port": "a:1"}), json!({"file": "/a"})],
        _ => Vec::new(),
    };
    fields.into_iter().map(|fields| (name, fields)).collect()
}

/// Kinds with nothing to remove.
const UNREMOVABLE: [Kind; 3] = [Kind::Command, Kind::Reboot, Kind::Wait];

fn parse(kind: Kind, name: &str, fields: &Value) -> Result<Resource, FieldError> {
    Resource::parse(kind, name, fields.as_object().unwrap().clone(), Ensure::Present, false)
}

fn each_field() -> impl Iterator<Item = (Kind, &'static FieldSpec)> {
    kinds().iter().flat_map(|kind| kind.fields.iter().map(|field| (kind.kind, field)))
}

#[test]
fn each_declared_field_is_accepted_and_no_other() {
    for kind in kinds() {
        let (name, mut given) = whole(kind.kind);
        let declared: Vec<_> = fields(kind.kind).iter().map(|field| field.name).collect();
        let others = alternatives(kind.kind);
        for field in &declared {
            let has = |fields: &Value| fields.get(*field).is_some();
            assert!(
                has(&given) || others.iter().any(|(_, other)| has(other)),
                "no example of {} has {field}",
                kind.kind
            );
        }
        assert!(given.as_object().unwrap().len() <= declared.len(), "{}", kind.kind);
        for (name, other) in &others {
            assert!(parse(kind.kind, name, other).is_ok(), "{:?}", parse(kind.kind, name, other));
        }
        assert!(parse(kind.kind, name, &given).is_ok(), "{:?}", parse(kind.kind, name, &given));

        given.as_object_mut().unwrap().insert("surplus".into(), json!(""));
        let error = FieldError::Unknown { kind: kind.kind, field: "surplus".into(), near: Near::default() };
        assert_eq!(parse(kind.kind, name, &given), Err(error));
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
    // Where the name is a sentence, fields locate the resource.
    let sentences = [Kind::AuthorizedKey, Kind::Line];
    let named = |kind: &&KindSpec| !sentences.contains(&kind.kind) && !UNREMOVABLE.contains(&kind.kind);
    for kind in kinds().iter().filter(named) {
        let absent = Resource::parse(kind.kind, whole(kind.kind).0, Map::new(), Ensure::Absent, false);
        assert!(absent.is_ok(), "{absent:?}");
    }
}

#[test]
fn a_value_of_another_type_is_refused_and_so_is_nul() {
    for (kind, field) in each_field() {
        let wrong: &[Value] = match field.takes {
            FieldType::String => &[json!(1), json!(true), json!(null), json!(["a"]), json!("a\0b")],
            FieldType::Mode => &[json!(420), json!("999"), json!("rw"), json!("0o644")],
            FieldType::Integer => &[json!("1"), json!(1.5), json!(true)],
            FieldType::Boolean => &[json!("true"), json!(1)],
            FieldType::StringList => &[json!("a"), json!([1]), json!(["a\0b"])],
            FieldType::StringMap => &[json!("a"), json!({"a": 1})],
            FieldType::Any => &[json!("a\0b")],
        };
        for value in wrong {
            let (name, mut given) = whole(kind);
            given.as_object_mut().unwrap().insert(field.name.into(), value.clone());
            assert!(parse(kind, name, &given).is_err(), "{kind} with {}: {value}", field.name);
        }
    }
    for kind in kinds() {
        assert!(parse(kind.kind, "a\0b", &whole(kind.kind).1).is_err(), "{}", kind.kind);
        assert!(parse(kind.kind, "", &whole(kind.kind).1).is_err(), "{}", kind.kind);
    }
}

#[test]
fn what_was_not_observed_is_refused() {
    let (now, authorities) = (NOW.parse().unwrap(), BTreeMap::from([("a".to_owned(), String::new())]));
    let context = Context { now, authorities: &authorities, own_boot_id: None, pending: &Pending::default() };
    for kind in kinds() {
        let (name, given) = whole(kind.kind);
        let verdict = parse(kind.kind, name, &given).unwrap().diff(&Observed::default(), &context);
        let Verdict::Refuse { reason } = verdict else { panic!("{}: {verdict:?}", kind.kind) };
        assert!(reason.ends_with(" was not observed"), "{}: {reason}", kind.kind);
    }
}

#[test]
fn a_misspelt_field_has_a_suggestion() {
    let error = parse(Kind::Package, "a", &json!({"verison": "1"})).unwrap_err();
    assert_eq!(error.to_string(), "unknown field \"verison\" of package; did you mean \"version\"?");
}
