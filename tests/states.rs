//! The resources of nodes: every relevant combination of roles on every type of host. The snapshots contain the
//! resources, in order, and every rendered text.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of it is test code; clippy knows only test functions"
)]

#[path = "support/values.rs"]
mod cluster_values;
#[path = "support/given.rs"]
mod given;
#[path = "states/node.rs"]
mod node;
#[path = "states/pod_bridge.rs"]
mod pod_bridge;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use k8s_openapi::api::core::v1::Pod;
use metalform::model::cluster::Cluster;
use metalform::model::role::Role;
use metalform::operation::cluster_site::OBJECTS;
use metalform::operation::layer::Layer;
use metalform::render::values_of;
use metalform::resource::contract::kind::Kind;
use metalform::state::{Compiled, Library, Tree};
use serde_json::Value as Json;

use node::{Node, layers};

fn library() -> Library {
    Library::read(&Tree::embedded()).unwrap()
}

fn assert_snapshot(name: &str, text: &str) {
    insta::with_settings!({ snapshot_path => "states/snapshots", prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

/// The content of a resource that is rendered from a template.
fn rendered(compiled: &Compiled) -> Option<&str> {
    let from_template = matches!(compiled.id.kind, Kind::StaticPod | Kind::Template | Kind::Unit);
    compiled.fields.get("content").filter(|_| from_template)?.as_str()
}

/// Every rendered text: the id of its resource → the text → the nodes with it.
fn texts() -> BTreeMap<String, BTreeMap<String, BTreeMap<&'static str, BTreeSet<&'static str>>>> {
    let library = library();
    let digest = regex::Regex::new("sha256:[0-9a-f]{64}").unwrap();
    let mut texts: BTreeMap<String, BTreeMap<String, BTreeMap<_, BTreeSet<_>>>> = BTreeMap::new();
    for node in Node::all() {
        for (_, compiled) in node.compiled(&library) {
            for one in &compiled {
                let Some(text) = rendered(one) else { continue };
                // Else each change of a file would be one of the snapshots of the pods that read it too.
                let text = digest.replace_all(text, "sha256:DIGEST").into_owned();
                let nodes = texts.entry(one.id.to_string()).or_default().entry(text).or_default();
                nodes.entry(node.flavour).or_default().insert(node.title);
            }
        }
        // It has no values: `machine::api::definitions` compares it with its types.
        for name in OBJECTS.into_iter().filter(|name| *name != "cluster/machines.yaml.j2") {
            let text = library.template(name, &node.values(&Layer::Base, true)).unwrap();
            let nodes = texts.entry(name.to_owned()).or_default().entry(text).or_default();
            nodes.entry(node.flavour).or_default().insert(node.title);
        }
    }
    texts
}

#[test]
fn each_node_has_its_resources_in_order() {
    let library = library();
    let mut by_title: BTreeMap<&str, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for node in Node::all() {
        let mut text = String::new();
        for (layer, compiled) in node.compiled(&library) {
            text.push_str(&format!("{layer}\n"));
            compiled.iter().for_each(|one| text.push_str(&format!("  {}\n", one.id)));
        }
        by_title.entry(node.title).or_default().entry(text).or_default().push(node.flavour);
    }
    for (title, texts) in by_title {
        let texts = texts.iter().map(|(text, flavours)| format!("# {}\n{text}", flavours.join(", ")));
        assert_snapshot(&format!("resources-of-{title}"), &texts.collect::<Vec<_>>().join("\n"));
    }
}

#[test]
fn every_text_is_rendered_as_in_its_snapshot() {
    for (id, texts) in texts() {
        let mut shown: Vec<String> = texts
            .iter()
            .map(|(text, nodes)| {
                let on = nodes.iter().map(|(flavour, titles)| {
                    format!("##### {flavour}: {}\n", titles.iter().copied().collect::<Vec<_>>().join(", "))
                });
                format!("{}{text}", on.collect::<String>())
            })
            .collect();
        shown.sort();
        assert_snapshot(&id.replace(":/", "-").replace(['/', ':', '_'], "-"), &shown.join("\n"));
    }
}

#[test]
fn yaml_and_json_files_parse() {
    let mut yaml = 0;
    for (id, texts) in texts() {
        for text in texts.keys() {
            if id.ends_with(".conflist") {
                serde_json::from_str::<Json>(text).unwrap_or_else(|error| panic!("{id}: {error}\n{text}"));
            } else if id.starts_with("static_pod:") || id.contains(".yaml") || text.starts_with("apiVersion:")
            {
                yaml += 1;
                let documents: Vec<Json> =
                    serde_saphyr::from_multiple(text).unwrap_or_else(|error| panic!("{id}: {error}\n{text}"));
                assert!(documents.iter().all(Json::is_object), "{id}: not an object\n{text}");
            }
        }
    }
    assert!(yaml > 15, "the texts were not found");
}

/// A misspelt field would be ignored.
#[test]
fn a_static_pod_is_a_pod_and_every_field_of_it_is_known() {
    let mut pods = 0;
    for (id, texts) in texts() {
        for text in texts.keys().filter(|_| id.starts_with("static_pod:")) {
            pods += 1;
            let written: Json = serde_saphyr::from_str(text).unwrap();
            let pod: Pod =
                serde_json::from_value(written.clone()).unwrap_or_else(|error| panic!("{id}: {error}"));
            let known = serde_json::to_value(&pod).unwrap();
            assert_eq!(lost(&written, &known, ""), Vec::<String>::new(), "{id}");
        }
    }
    assert!(pods >= 4);
}

/// Paths that are in one and not in the other.
fn lost(written: &Json, known: &Json, path: &str) -> Vec<String> {
    match (written, known) {
        (Json::Object(written), Json::Object(known)) => written
            .iter()
            .flat_map(|(key, value)| {
                let path = format!("{path}.{key}");
                known.get(key).map_or_else(|| vec![path.clone()], |known| lost(value, known, &path))
            })
            .collect(),
        (Json::Array(written), Json::Array(known)) => written
            .iter()
            .zip(known)
            .flat_map(|(one, other)| lost(one, other, &format!("{path}[]")))
            .collect(),
        (one, other) if one == other => Vec::new(),
        _ => vec![path.to_owned()],
    }
}

#[test]
fn a_unit_names_its_sections_and_no_field_twice() {
    for (id, texts) in texts() {
        for text in texts.keys().filter(|_| id.starts_with("unit:")) {
            let sections: Vec<&str> = text.lines().filter(|line| line.starts_with('[')).collect();
            // What a timer starts is not enabled itself.
            let expected: &[&str] = match id.as_str() {
                "unit:metalform-etcd-snapshot.service" | "unit:metalform-mirror-sync.service" => {
                    &["[Unit]", "[Service]"]
                }
                id if id.ends_with(".timer") => &["[Unit]", "[Timer]", "[Install]"],
                _ => &["[Unit]", "[Service]", "[Install]"],
            };
            assert_eq!(sections, expected, "{id}");
            let fields = text.lines().filter(|line| !line.starts_with(['[', '#']) && !line.is_empty());
            assert!(fields.clone().all(|line| line.contains('=')), "{id}\n{text}");
        }
    }
}

/// A tag can be given to another image, in the registry and on a host.
#[test]
fn every_image_is_named_by_its_digest() {
    let library = library();
    let mut images = BTreeSet::new();
    for node in Node::all() {
        for (_, compiled) in node.compiled(&library) {
            let of_images = compiled.iter().filter(|one| one.id.kind == Kind::Image);
            images.extend(of_images.map(|one| one.id.name.clone()));
        }
    }
    for (id, texts) in texts() {
        let lines =
            texts.keys().flat_map(|text| text.lines()).filter(|line| line.contains("registry.k8s.io/"));
        images.extend(lines.map(|line| format!("{id}: {line}")));
    }
    assert!(images.len() >= 12, "{images:#?}");
    let by_tag: Vec<_> = images.iter().filter(|image| !image.contains("@sha256:")).collect();
    assert!(by_tag.is_empty(), "{by_tag:#?}");
}

/// `systemd-analyze security`: 0.0 is everything forbidden, 10.0 nothing.
#[test]
fn the_services_of_metalform_are_sandboxed() {
    const UNITS: [&str; 8] = [
        "metalform.service",
        "metalform-signer.service",
        "metalform-machine-controller.service",
        "metalform-etcd-snapshot.service",
        "metalform-registry.service",
        "metalform-registry-writer.service",
        "metalform-mirror.service",
        "metalform-mirror-sync.service",
    ];
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return;
    }
    let texts = texts();
    let directory = tempfile::tempdir().unwrap();
    for unit in UNITS {
        for text in texts[&format!("unit:{unit}")].keys() {
            let path = directory.path().join(unit);
            std::fs::write(&path, text).unwrap();
            let arguments = ["security", "--offline=true", "--threshold=30", "--no-pager"];
            let judged = Command::new("systemd-analyze").args(arguments).arg(&path).output().unwrap();
            let table = String::from_utf8_lossy(&judged.stdout);
            assert!(judged.status.success(), "{table}{}", String::from_utf8_lossy(&judged.stderr));
            let verdict = table.lines().find(|line| line.contains("Overall exposure level"));
            assert!(verdict.is_some_and(|line| line.contains(unit)), "{table}");
        }
    }
}

/// What a service reads only when it starts restarts it as a part of its unit.
#[test]
fn a_service_of_the_bootstrap_node_restarts_with_what_it_reads_only_when_it_starts() {
    let library = library();
    let of = |title: &str| Node::all().into_iter().find(|node| node.title == title).unwrap();
    let (bootstrap, master) = (of("bootstrap"), of("master-alone"));
    let program: fn(&mut Cluster) = |cluster| cluster.mirrors.metalform_sha256 = "1".repeat(64);
    let mtu: fn(&mut Cluster) = |cluster| cluster.networks.workload_plane.mtu = 1400;
    let directory: fn(&mut Cluster) = |cluster| cluster.bundles[0].directory = "/srv/bundle".to_owned();
    let controller = "serve/metalform-machine-controller.service.j2";
    for (template, change) in [
        ("serve/metalform.service.j2", program),
        ("serve/metalform-signer.service.j2", program),
        ("serve/metalform-signer.service.j2", mtu),
        ("registry/metalform-push.service.j2", program),
        (controller, program),
        (controller, mtu),
        (controller, directory),
    ] {
        let restarts = |node: &Node| {
            let text = |change: fn(&mut Cluster)| {
                library.template(template, &node.values_after(change, &Layer::Base, true)).unwrap()
            };
            text(|_| {}) != text(change)
        };
        assert!(restarts(&bootstrap), "{template}");
        // There its program and its record are resources, which restart it.
        assert!(template != controller || !restarts(&master), "{template}");
    }
}

/// systemd refuses some steps that look right.
#[test]
fn the_snapshot_timer_elapses_at_every_interval_that_a_configuration_may_have() {
    let library = library();
    for hours in [1, 2, 3, 4, 6, 8, 12, 24] {
        let values =
            values_of(&serde_json::json!({ "cluster": { "etcd_snapshots": { "interval_hours": hours } } }));
        let text = library.template("serve/metalform-etcd-snapshot.timer.j2", &values).unwrap();
        let event = text.lines().find_map(|line| line.strip_prefix("OnCalendar=")).unwrap();
        let step = if hours == 24 { "00".to_owned() } else { format!("00/{hours}") };
        assert_eq!(event, format!("*-*-* {step}:00:00 UTC"));
        let Ok(parsed) = Command::new("systemd-analyze").args(["calendar", event]).output() else { continue };
        assert!(parsed.status.success(), "{}", String::from_utf8_lossy(&parsed.stderr));
    }
}

/// The file server can read no key but its own, and cannot write to the registry.
#[test]
fn the_file_server_is_a_user_without_keys() {
    let texts = texts();
    for unit in ["metalform.service", "metalform-registry.service", "metalform-mirror.service"] {
        for text in texts[&format!("unit:{unit}")].keys() {
            assert!(text.contains("\nUser=metalform-serve\n"), "{text}");
            assert!(text.contains("\nInaccessiblePaths=-/etc/kubernetes/pki"), "{text}");
            assert!(!text.contains("ReadWritePaths") && !text.contains(" sign\n"), "{text}");
        }
    }
}

#[test]
fn no_state_is_unreachable_from_the_roles() {
    let roles: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
    let reached: BTreeSet<String> =
        library().states_of(&roles).unwrap().iter().map(|state| format!("{state}.yaml")).collect();
    let tree = Tree::embedded();
    let there: BTreeSet<String> =
        tree.states().map(|(path, _)| path.to_owned()).filter(|path| path != "top.yaml").collect();
    assert_eq!(reached, there);
}

#[test]
fn every_state_of_a_node_is_in_a_layer() {
    let library = library();
    for node in Node::all() {
        let roles: Vec<&str> = node.roles.iter().map(|role| role.as_str()).collect();
        let staged = library.staged(&roles).unwrap();
        let all: BTreeSet<String> = staged.iter().map(|(_, state)| state.to_string()).collect();
        let layers = layers(node.roles.contains(&Role::Bootstrap));
        let states = layers.iter().flat_map(|(layer, _)| layer.states(&staged));
        let layered: BTreeSet<String> = states.map(|state| state.to_string()).collect();
        assert_eq!(all.difference(&layered).collect::<Vec<_>>(), Vec::<&String>::new(), "{}", node.title);
    }
}

/// Else each phase would restart what the one before it has started.
#[test]
fn a_static_pod_reads_the_same_files_in_every_layer() {
    let library = library();
    for node in Node::all() {
        let mut pods: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (_, compiled) in node.compiled(&library) {
            for one in compiled.iter().filter(|one| one.id.kind == Kind::StaticPod) {
                let content = one.fields["content"].as_str().unwrap();
                assert!(content.contains("metalform.dev/config-digest: \"sha256:"), "{content}");
                let mut seen = one.fields["restart_when_changed"].to_string();
                // The flags of the first member are others in later layers.
                if one.id.name != "etcd" {
                    seen.push_str(content);
                }
                pods.entry(one.id.to_string()).or_default().insert(seen);
            }
        }
        for (id, seen) in pods {
            assert_eq!(seen.len(), 1, "{} of {} {}: {seen:#?}", id, node.flavour, node.title);
        }
    }
}

#[test]
fn no_template_is_unused() {
    let tree = Tree::embedded();
    let states: String = tree.states().map(|(_, text)| text).collect();
    let unused: Vec<&str> = tree
        .templates()
        .map(|(path, _)| path)
        .filter(|path| !path.starts_with("cluster/") && !states.contains(&format!("source: {path}")))
        .collect();
    assert_eq!(unused, Vec::<&str>::new());
}

#[test]
fn a_state_is_short_and_has_no_logic_in_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("states");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.contains("{%"), "{}: {{% belongs in templates/", path.display());
        assert!(text.lines().count() <= 120, "{} is too long to be read", path.display());
    }
}

/// Secrets are marked, so that no difference shows them.
#[test]
fn whatever_contains_a_secret_is_sensitive() {
    let library = library();
    let secrets = ["SECRET.TOKEN", "SECRET KEY", "U0VDUkVU", "5ec4e7"];
    for node in Node::all() {
        for (_, compiled) in node.compiled(&library) {
            for one in compiled {
                let text = serde_json::to_string(&one.fields).unwrap();
                let secret = secrets.iter().any(|secret| text.contains(secret));
                assert!(!secret || one.sensitive, "{} shows a secret", one.id);
            }
        }
    }
}

/// Of another node, an expansion changes what it knows of this one, and nothing else.
#[test]
fn of_another_node_the_mirrors_and_the_proxy_are_touched() {
    let library = library();
    for node in Node::all() {
        let compiled = node.compiled(&library);
        let (_, proxy) = compiled.iter().find(|(layer, _)| *layer == Layer::Proxy.title()).unwrap();
        let ids: Vec<String> = proxy.iter().map(|one| one.id.to_string()).collect();
        let expected =
            ["host_entry:mirror.metalform.internal", "template:/etc/haproxy/haproxy.cfg", "service:haproxy"];
        assert_eq!(ids, expected, "{}", node.title);
    }
}

/// No message without the cluster's key, and no part of another node's network.
#[test]
fn routes_are_authenticated_and_taken_as_whole_networks_of_other_nodes() {
    let texts = texts();
    let places = ["template:/etc/bird/bird.conf", "template:/etc/bird.conf"];
    for text in places.iter().flat_map(|place| texts[*place].keys()) {
        for line in [
            "authentication mac;",
            "password \"5ec4e7\" { algorithm hmac sha256; };",
            "import where net ~ [ 10.233.0.0/16{24,24} ] && net != 10.233.1.0/24;",
            "export where source = RTS_STATIC;",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}

/// A service that has run once does not notice that its rules and routes are lost: each has a guard of its own.
#[test]
fn what_the_pod_network_adds_to_the_kernel_is_looked_for_there() {
    let library = library();
    for node in Node::all() {
        let compiled = node.compiled(&library);
        let all = || compiled.iter().flat_map(|(_, resources)| resources);
        let unit = all().find(|one| one.id.to_string() == "unit:metalform-pod-network.service").unwrap();
        let unit = rendered(unit).unwrap();
        let guards: Vec<&str> = all()
            .filter(|one| one.fields.get("run").is_some_and(|run| run.to_string().contains("pod-network")))
            .map(|one| one.fields["unless"].as_str().unwrap())
            .collect();
        let looked_for = |what: &str| guards.iter().any(|guard| guard.contains(what));
        assert!(looked_for("nft list table ip metalform"), "{}: {guards:#?}", node.title);
        for route in
            unit.lines().filter_map(|line| line.strip_prefix("ExecStart=/usr/sbin/ip route replace "))
        {
            let network = route.trim_start_matches("unreachable ").split(' ').next().unwrap();
            assert!(looked_for(&format!("exact {network} ")), "{}: {route}: {guards:#?}", node.title);
        }
        // Flushed tables are added again by a reload.
        let of = |verb: &str| unit.lines().filter_map(|line| line.strip_prefix(verb)).collect::<Vec<_>>();
        assert_eq!(of("ExecStart="), of("ExecReload="), "{}", node.title);
    }
}

/// What a kubelet with 110 pods needs of the kernel, and what it reserves, on hosts of every flavour.
#[test]
fn limits_of_the_kernel_and_reservations_are_those_of_a_node() {
    let library = library();
    for node in Node::all() {
        let compiled = node.compiled(&library);
        let all = || compiled.iter().flat_map(|(_, resources)| resources);
        for key in [
            "fs.inotify.max_user_instances",
            "fs.inotify.max_user_watches",
            "kernel.panic",
            "kernel.keys.maxkeys",
        ] {
            assert!(all().any(|one| one.id.to_string() == format!("sysctl:{key}")), "{}: {key}", node.title);
        }
        let facts = given::facts(node.flavour);
        let kube = format!(
            "kubeReserved: {{ cpu: {}m, memory: {}Mi }}",
            facts.cpus * 10,
            facts.memory / 20 / (1 << 20)
        );
        let kubelet =
            all().find(|one| one.id.to_string() == "template:/var/lib/kubelet/config.yaml").unwrap();
        assert!(rendered(kubelet).unwrap().contains(&kube), "{kube}");
    }
}
