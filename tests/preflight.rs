//! Reasons against a host: `preflight/<case>.yaml` says in which ways it differs from a fit one, and expects all that
//! is said about it, with what to do.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "all of it is test code; clippy knows only test functions"
)]

#[path = "support/given.rs"]
mod given;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use metalform::bundle::program_needs::ProgramNeeds;
use metalform::model::facts::Facts;
use metalform::model::role::Role;
use metalform::operation::goal::NodeGoal;
use metalform::operation::observed::node::{NodeView, Peer};
use metalform::operation::preflight::failures;
use metalform::operation::present_networks::PresentNetworks;
use metalform::operation::survey::{CloudConfig, Survey};
use serde::Deserialize;

/// This machine's clock.
const NOW: i64 = 1_767_225_600;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    #[serde(default = "node")]
    roles: Vec<Role>,
    /// Fields that differ from those of `states/facts/debian-13-machine.json`.
    #[serde(default)]
    facts: BTreeMap<String, serde_json::Value>,
    #[serde(default)]
    survey: Found,
    /// As the static pods of this machine have them.
    #[serde(default)]
    networks: Present,
    #[serde(default)]
    peers: BTreeMap<String, Other>,
    /// The address on the control plane that the Node records.
    #[serde(default)]
    recorded: Option<IpAddr>,
    /// What the Node shows of the machine that it is of.
    #[serde(default)]
    node: Option<Recorded>,
    #[serde(default)]
    replace: bool,
    /// Of the bootstrap node's program, which is for amd64.
    #[serde(default)]
    needed_c_library: Option<String>,
    /// `what` to `hint`, in order.
    expect: Vec<(String, String)>,
}

fn node() -> Vec<Role> {
    vec![Role::Node]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    #[serde(default)]
    machine_id: String,
    #[serde(default)]
    ready: bool,
    #[serde(default)]
    pod_cidr: Option<String>,
}

#[derive(Deserialize, Default, Clone)]
#[serde(deny_unknown_fields, default)]
struct Present {
    pods: BTreeSet<IpNet>,
    services: BTreeSet<IpNet>,
}

impl From<Present> for PresentNetworks {
    fn from(Present { pods, services }: Present) -> Self {
        Self { pods, services }
    }
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Found {
    packages: BTreeSet<String>,
    c_library: Option<String>,
    services: BTreeSet<String>,
    busy_ports: BTreeSet<u16>,
    /// `ours`, or any other text.
    authority: Option<String>,
    etcd_data: bool,
    /// A flag of the static pod of etcd.
    initial_cluster: Option<String>,
    versions: BTreeMap<String, String>,
    networks: Present,
    no_openssl: bool,
    missing_modules: BTreeSet<String>,
    /// `files` or `instance`.
    hosts_rewritten: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Other {
    machine_id: String,
    /// Its host was connected to before, and is this machine.
    #[serde(default)]
    same_machine: bool,
    control_plane_ip: Option<IpAddr>,
    workload_plane_ip: Option<IpAddr>,
}

impl Case {
    fn facts(&self) -> Facts {
        let mut fit = serde_json::to_value(given::facts("debian-13-machine")).unwrap();
        for (name, value) in &self.facts {
            assert!(fit.get(name).is_some(), "facts have no {name}");
            fit[name] = value.clone();
        }
        serde_json::from_value(fit).unwrap()
    }

    fn survey(&self) -> Survey {
        let found = &self.survey;
        Survey {
            packages: found.packages.clone(),
            c_library: found.c_library.clone(),
            services: found.services.clone(),
            busy_ports: found.busy_ports.clone(),
            authority: found.authority.as_ref().map(|authority| {
                if authority == "ours" { given::AUTHORITY.to_owned() } else { authority.clone() }
            }),
            etcd_data: found.etcd_data,
            etcd_flags: found
                .initial_cluster
                .as_ref()
                .map(|members| BTreeMap::from([("initial-cluster".to_owned(), members.clone())])),
            versions: found.versions.clone(),
            networks: found.networks.clone().into(),
            openssl: !found.no_openssl,
            missing_modules: found.missing_modules.clone(),
            hosts_rewritten: found.hosts_rewritten.as_ref().map(|by| match by.as_str() {
                "files" => CloudConfig::Files,
                "instance" => CloudConfig::Instance,
                other => panic!("{other}"),
            }),
            ..Survey::default()
        }
    }

    fn said(&self) -> Vec<(String, String)> {
        let goal = NodeGoal {
            replace_machine: self.replace,
            program: ProgramNeeds { architecture: "amd64", c_library: self.needed_c_library.clone() },
            present_networks: self.networks.clone().into(),
            ..given::goal("node", &self.roles.iter().copied().collect())
        };
        let node = self.node.as_ref().map(|node| NodeView {
            machine_id: node.machine_id.clone(),
            ready: node.ready,
            pod_cidr: node.pod_cidr.clone(),
            ..NodeView::default()
        });
        let peers: BTreeMap<String, Peer> = self
            .peers
            .iter()
            .map(|(name, other)| {
                let peer = Peer {
                    machine_id: other.machine_id.clone(),
                    same_machine: other.same_machine,
                    control_plane_ip: other.control_plane_ip,
                    workload_plane_ip: other.workload_plane_ip,
                    ..Peer::default()
                };
                (name.clone(), peer)
            })
            .collect();
        let found = failures(
            &goal,
            (&self.facts(), NOW),
            &self.survey(),
            (node.as_ref(), self.recorded),
            peers.iter(),
        );
        found.into_iter().map(|failure| (failure.what, failure.hint)).collect()
    }
}

fn cases() -> BTreeMap<PathBuf, Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/preflight");
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            let case =
                serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            (path, case)
        })
        .collect()
}

#[test]
fn everything_that_speaks_against_a_host_is_said_and_nothing_else() {
    let differing: Vec<String> = cases()
        .iter()
        .filter(|(_, case)| case.said() != case.expect)
        .map(|(path, case)| {
            format!("{}\nsaid: {:#?}\nexpected: {:#?}", path.display(), case.said(), case.expect)
        })
        .collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// Otherwise a failure could lose its case without anybody seeing it.
#[test]
fn the_case_with_all_failures_says_what_all_other_cases_say() {
    let cases = cases();
    let (all, alone): (Vec<_>, Vec<_>) =
        cases.iter().partition(|(path, _)| path.file_stem().is_some_and(|stem| stem == "all_together"));
    let said = |cases: Vec<(&PathBuf, &Case)>| -> BTreeSet<String> {
        cases.iter().flat_map(|(_, case)| case.expect.iter().map(|(what, _)| what.clone())).collect()
    };
    let (all, alone) = (said(all), said(alone));
    let excluded: Vec<&str> = alone.difference(&all).map(String::as_str).collect();
    assert_eq!(
        excluded,
        [
            "/var has 100 MiB free",
            "cloud-init replaces /etc/hosts at every boot (manage_etc_hosts in /var/lib/cloud/instance, which overrides /etc/cloud)",
            "etcd 3.4.9-0 is on the host, and the bundle has 3.6.16, more than one minor version later",
            "etcd member node is at https://192.0.2.10:2380, but the host's address is 192.0.2.11",
            "kubernetes 1.9.4 is on the host, and the bundle has 1.35.4, a later minor version",
            "networks.pods is 10.233.0.0/16, but the Node has the pod network 10.240.1.0/24, which cannot be changed",
            "the C library is 2.36-9+deb12u10, but the program of the bootstrap node needs 2.39",
            "the architecture is arm64, but the program of the bootstrap node is for amd64",
            "the clock is 31 s behind that of this machine",
            "the host belongs to another cluster: /etc/kubernetes/pki/ca.crt is not the CA of this one",
            "the host has several addresses on the control plane: 192.0.2.11, 192.0.2.12",
            "the host has the address 192.0.2.11 of node node-2",
            "the host has the address 198.51.100.11 of node node-2",
            "the machine id is 0123456789abcdef0123456789abcdef, that of the Node fedcba9876543210fedcba9876543210; the Node is Ready: the other machine runs, or this one has a new id",
            "the machine id is 0123456789abcdef0123456789abcdef, that of the Node fedcba9876543210fedcba9876543210; the host has no data of its etcd member",
        ],
        "a host has one disk, one clock, one configuration of cloud-init and one version of each component, no or several addresses, data of no cluster, of another or of this one, \
         and is one machine; the bootstrap node runs its own program; a Node counts where no static pod shows the networks"
    );
}
