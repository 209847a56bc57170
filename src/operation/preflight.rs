//! Whether a host is fit to be a node: every reason against it, at once.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::goal::{AddressError, NodeGoal, peer_url};
use super::minor_change::MinorChange;
use super::observed::node::{NodeView, Peer};
use super::present_networks::ChangedNetwork;
use super::survey::{CloudConfig, Survey};
use crate::model::api_contract::{CONTROL_PLANE_IP, SSH_HOST};
use crate::model::cluster::{MACHINE_METRICS_PORT, PUSH_PORT, SERVE_PORT};
use crate::model::facts::Facts;
use crate::model::platform::{PackageFormat, Platform};
use crate::model::role::Role;

/// systemd takes the ID of D-Bus where it has none, and programs that run keep the one that they have read.
const CLONE_HINT: &str = "it is that node, or a clone of it: rm -f /etc/machine-id /var/lib/dbus/machine-id && systemd-machine-id-setup && reboot";
/// Free space below /var that images, pods and logs need at least, bytes.
const DISK: u64 = 4 << 30;
/// The same of a host that is part of the cluster already: its images are there, and the kubelet collects the others.
const DISK_TO_CHANGE: u64 = 256 << 20;
/// Memory that a node needs at least, bytes. Kubernetes' own minimum is 2 GB; a little goes to the kernel.
const MEMORY: u64 = 1_700 << 20;
/// How far clocks may differ, seconds: certificates are backdated by minutes, etcd's leases are not.
const SKEW: i64 = 30;
/// How one of several addresses on the control plane is chosen for the first node.
const FIRST_ADDRESS: &str = "remove the others (ip address del) until this node is deployed, which records the one that is left; \
    or leave them out of networks.controlPlane in /etc/metalform/bootstrap.yaml";

/// One reason against a host, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreflightFailure {
    /// What is wrong.
    pub what: String,
    /// What to do; may be a command.
    pub hint: String,
}

fn failure(what: impl Into<String>, hint: impl Into<String>) -> PreflightFailure {
    PreflightFailure { what: what.into(), hint: hint.into() }
}

/// Every reason against this host. Pure; the order is that of this function. `received` is this machine's clock when it
/// received the facts, `node` its Node, and `recorded` the address on the control plane that it records.
pub fn failures<'a>(
    goal: &NodeGoal,
    (facts, received): (&Facts, i64),
    survey: &Survey,
    (node, recorded): (Option<&NodeView>, Option<IpAddr>),
    peers: impl Iterator<Item = (&'a String, &'a Peer)> + Clone,
) -> Vec<PreflightFailure> {
    let mut found = cloned(facts, node, peers.clone());
    found.extend(node.and_then(|node| another_machine(goal, facts, survey, node)));
    found.extend(identity(goal, facts, node, peers));
    found.extend(system(goal, (facts, received), survey));
    found.extend(program(goal, facts, survey));
    found.extend(networks(goal, facts, survey, recorded));
    found.extend(changed_networks(goal, survey, node));
    found.extend(occupants(goal, facts, survey));
    found.extend(other_minors(goal, survey));
    found
}

/// Of what the static pods of the host run.
fn other_minors(goal: &NodeGoal, survey: &Survey) -> Vec<PreflightFailure> {
    let change = |(component, present): (&String, &String)| {
        let change = MinorChange::of(component, present, goal.versions.get(component)?)?;
        Some(failure(change.to_string(), change.hint()))
    };
    survey.versions.iter().filter_map(change).collect()
}

/// What is on a host that belongs to another cluster or conflicts with a node. Pure.
pub fn occupants(goal: &NodeGoal, facts: &Facts, survey: &Survey) -> Vec<PreflightFailure> {
    membership(goal, survey).into_iter().chain(conflicts(goal, facts, survey)).collect()
}

/// The Node is of another machine: deploying this one would give it the name, and the etcd member, of a machine that may
/// still run.
fn another_machine(
    goal: &NodeGoal,
    facts: &Facts,
    survey: &Survey,
    node: &NodeView,
) -> Option<PreflightFailure> {
    if node.machine_id.is_empty() || node.machine_id == facts.machine_id {
        return None;
    }
    let mut differs = format!("the machine id is {}, that of the Node {}", facts.machine_id, node.machine_id);
    if goal.has(Role::Etcd) && !survey.etcd_data {
        differs.push_str("; the host has no data of its etcd member");
    }
    let name = &goal.name;
    match (node.ready, goal.replace_machine) {
        (true, _) => Some(failure(
            format!("{differs}; the Node is Ready: the other machine runs, or this one has a new id"),
            "turn the other machine off, and wait until its Node is not Ready; or, where this one has a new id: systemctl restart kubelet",
        )),
        (false, false) => Some(failure(
            differs,
            format!(
                "`metalform deploy-node {name} --replace` gives this machine the place of the other, which must not come back"
            ),
        )),
        (false, true) => None,
    }
}

/// What shows that a host is another machine than that of the Node, which is `node` where there is one. Pure.
pub fn identity<'a>(
    goal: &NodeGoal,
    facts: &Facts,
    node: Option<&NodeView>,
    peers: impl Iterator<Item = (&'a String, &'a Peer)> + Clone,
) -> Vec<PreflightFailure> {
    let is_own = node.is_some_and(|node| node.is_of(facts));
    let mut found = Vec::new();
    if facts.hostname != goal.name.as_str() {
        found.push(failure(
            format!("the hostname is {}, not {}", facts.hostname, goal.name),
            format!("hostnamectl set-hostname {}, or correct {SSH_HOST} of the Node", goal.name),
        ));
    }
    for (name, peer) in peers {
        if !is_own && peer.claims(facts) {
            found.push(failure(format!("the host has the machine id of node {name}"), CLONE_HINT));
        }
        // Of two nodes that record the same address, neither gets a serving certificate for its kubelet. Both planes may
        // have the same networks.
        let recorded: BTreeSet<IpAddr> =
            [peer.control_plane_ip, peer.workload_plane_ip].into_iter().flatten().collect();
        for address in recorded.into_iter().filter(|address| has_address(facts, *address)) {
            found.push(failure(
                format!("the host has the address {address} of node {name}"),
                "give it an address of its own, or remove that node first",
            ));
        }
    }
    found
}

/// A host that this command has connected to under another name before. What a kubelet has reported is compared by
/// [`identity`]; and a node that is of this machine already stays so.
fn cloned<'a>(
    facts: &Facts,
    node: Option<&NodeView>,
    peers: impl Iterator<Item = (&'a String, &'a Peer)>,
) -> Vec<PreflightFailure> {
    if node.is_some_and(|node| node.is_of(facts)) {
        return Vec::new();
    }
    let same = peers.filter(|(_, peer)| peer.same_machine && peer.machine_id != facts.machine_id);
    same.map(|(name, _)| failure(format!("the host has the machine id of node {name}"), CLONE_HINT)).collect()
}

fn has_address(facts: &Facts, address: IpAddr) -> bool {
    facts.addresses.values().flatten().any(|cidr| cidr.address == address)
}

fn system(goal: &NodeGoal, (facts, received): (&Facts, i64), survey: &Survey) -> Vec<PreflightFailure> {
    let mut found = Vec::new();
    for unavailable in Platform::unavailable(facts, &goal.platforms) {
        let available = format!("the bundle has: {}", join(&goal.platforms));
        found.push(failure(format!("{unavailable} is not in the bundle"), available));
    }
    if !survey.openssl {
        found.push(failure(
            "openssl is not installed",
            format!("{} (keys are generated on the host)", package_format(facts).install_command("openssl")),
        ));
    }
    for module in &survey.missing_modules {
        found.push(failure(
            format!("the kernel has no module {module}"),
            "install the kernel that the distribution ships",
        ));
    }
    let ours = is_ours(goal, survey);
    if !ours && facts.memory < MEMORY {
        found.push(failure(
            format!("the host has {} MiB of memory", facts.memory >> 20),
            format!("a node needs {} MiB", MEMORY >> 20),
        ));
    }
    let (disk, purpose) = if ours { (DISK_TO_CHANGE, " to be changed") } else { (DISK, "") };
    if facts.disk_free < disk {
        found.push(failure(
            format!("/var has {} MiB free", facts.disk_free >> 20),
            format!("a node needs {} MiB{purpose}", disk >> 20),
        ));
    }
    let skew = facts.clock - received;
    if skew.abs() > SKEW {
        found.push(failure(
            format!(
                "the clock is {} s {} that of this machine",
                skew.abs(),
                if skew > 0 { "ahead of" } else { "behind" }
            ),
            "synchronise both (chrony, or `timedatectl set-ntp true` for systemd-timesyncd)",
        ));
    }
    // A host that is ours already runs; its next deployment adds the mirrors' name again.
    found.extend(survey.hosts_rewritten.filter(|_| survey.authority.is_none()).map(hosts_rewritten));
    found
}

/// Masters and mirrors run copies of the bootstrap node's program.
fn program(goal: &NodeGoal, facts: &Facts, survey: &Survey) -> Option<PreflightFailure> {
    if !goal.stands_by() && !goal.has(Role::Mirror) {
        return None;
    }
    let architecture = goal.program.architecture;
    if facts.arch != architecture {
        return Some(failure(
            format!(
                "the architecture is {}, but the program of the bootstrap node is for {architecture}",
                facts.arch
            ),
            format!(
                "use a host for {architecture}: masters and mirrors run the program of the bootstrap node"
            ),
        ));
    }
    let present = survey.c_library.as_deref()?;
    let needed = goal.program.later_c_library(present)?;
    Some(failure(
        format!("the C library is {present}, but the program of the bootstrap node needs {needed}"),
        "build the program on the oldest release of your masters and mirrors, install it on the bootstrap node, then run \
         `metalform bootstrap`",
    ))
}

/// The mirrors' name would be gone after a boot.
fn hosts_rewritten(by: CloudConfig) -> PreflightFailure {
    let (place, hint) = match by {
        CloudConfig::Files => {
            ("/etc/cloud", "echo 'manage_etc_hosts: false' >/etc/cloud/cloud.cfg.d/zz-hosts.cfg")
        }
        CloudConfig::Instance => {
            ("/var/lib/cloud/instance, which overrides /etc/cloud", "touch /etc/cloud/cloud-init.disabled")
        }
    };
    failure(format!("cloud-init replaces /etc/hosts at every boot (manage_etc_hosts in {place})"), hint)
}

/// Why the host's address on the control plane is not known, and what to do about it.
pub fn address_failure(goal: &NodeGoal, error: &AddressError) -> PreflightFailure {
    match error {
        AddressError::Missing => no_address("control", &goal.networks.control_plane),
        AddressError::Several { addresses } => failure(
            format!("the host has several addresses on the control plane: {}", join(addresses)),
            if goal.first && goal.recorded_address.is_none() {
                // There may be no Node to annotate yet, and no API.
                FIRST_ADDRESS.to_owned()
            } else {
                format!("kubectl annotate node {} {CONTROL_PLANE_IP}=ADDRESS chooses one", goal.name)
            },
        ),
    }
}

fn no_address(plane: &str, networks: &[ipnet::IpNet]) -> PreflightFailure {
    failure(
        format!("the host has no address on the {plane} plane ({})", join(networks)),
        "give it one, or correct networks in /etc/metalform/bootstrap.yaml",
    )
}

fn networks(
    goal: &NodeGoal,
    facts: &Facts,
    survey: &Survey,
    recorded: Option<IpAddr>,
) -> Vec<PreflightFailure> {
    let mut found = Vec::new();
    match goal.address(facts, recorded) {
        Ok(address) => found.extend(moved_member(goal, survey, address, recorded)),
        Err(error) => found.push(address_failure(goal, &error)),
    }
    if goal.workload_address(facts).is_none() {
        found.push(no_address("workload", &goal.networks.workload_plane.cidrs));
    }
    for (interface, address) in
        facts.addresses.iter().flat_map(|(i, all)| all.iter().map(move |a| (i, a.address)))
    {
        for (what, network) in [("pods", goal.networks.pods), ("services", goal.networks.services)] {
            // The bridge of the pod network has an address of it, rightly.
            if interface != "cni0" && network.contains(&address) {
                found.push(failure(
                    format!("address {address} ({interface}) is in the network of {what}, {network}"),
                    "choose another network in /etc/metalform/bootstrap.yaml before the cluster exists",
                ));
            }
        }
    }
    found
}

/// etcd has the address of a member in its list: with certificates and flags for another one, the member is lost to the
/// others. A static pod may be what a removed member has left: that of a later node counts only while its Node records
/// the address.
fn moved_member(
    goal: &NodeGoal,
    survey: &Survey,
    address: IpAddr,
    recorded: Option<IpAddr>,
) -> Option<PreflightFailure> {
    let replaces = goal.replace_member || goal.replace_machine;
    if !goal.has(Role::Etcd) || replaces || !is_ours(goal, survey) {
        return None;
    }
    let there = survey.member_url(goal.name.as_str())?;
    let is_member = goal.first || recorded.is_some_and(|recorded| peer_url(recorded) == there);
    (is_member && peer_url(address) != there).then(|| {
        failure(
            format!("etcd member {} is at {there}, but the host's address is {address}", goal.name),
            "give the host that address again, or restore networks.controlPlane.cidr in /etc/metalform/bootstrap.yaml",
        )
    })
}

/// By the static pods of this machine and of the host; a worker has none, and the pod network of its Node.
fn changed_networks(goal: &NodeGoal, survey: &Survey, node: Option<&NodeView>) -> Vec<PreflightFailure> {
    let mut changed = goal.present_networks.changes(&goal.networks);
    if changed.is_empty() && is_ours(goal, survey) {
        changed = survey.networks.changes(&goal.networks);
    }
    if changed.is_empty() {
        let pod_cidr = node.and_then(|node| node.pod_cidr.as_deref());
        changed.extend(pod_cidr.and_then(|pod_cidr| ChangedNetwork::of_node(&goal.networks, pod_cidr)));
    }
    changed.iter().map(|change| failure(change.to_string(), change.hint())).collect()
}

/// Whether the host is part of this cluster already.
fn is_ours(goal: &NodeGoal, survey: &Survey) -> bool {
    let both = survey.authority.as_ref().zip(goal.authority.as_ref());
    both.is_some_and(|(theirs, ours)| theirs.trim() == ours.trim())
}

fn membership(goal: &NodeGoal, survey: &Survey) -> Vec<PreflightFailure> {
    match &survey.authority {
        Some(_) if is_ours(goal, survey) => Vec::new(),
        Some(_) => vec![failure(
            "the host belongs to another cluster: /etc/kubernetes/pki/ca.crt is not the CA of this one",
            "use another host; or reinstall this one, if that cluster no longer exists",
        )],
        None if survey.etcd_data => vec![failure(
            "/var/lib/etcd/member has data of an etcd member, but the host has no cluster CA",
            "back up /var/lib/etcd/member and move it away",
        )],
        None => Vec::new(),
    }
}

fn conflicts(goal: &NodeGoal, facts: &Facts, survey: &Survey) -> Vec<PreflightFailure> {
    let mut found = Vec::new();
    for package in &survey.packages {
        let remedy = package_format(facts).remove_command(package);
        found.push(failure(format!("package {package} is installed"), remedy));
    }
    for service in &survey.services {
        found.push(failure(
            format!("{service} is running or enabled"),
            format!("systemctl disable --now {service}"),
        ));
    }
    // A host that is ours already listens on ports of ours.
    if survey.authority.is_none() {
        for port in ports(goal) {
            if survey.busy_ports.contains(&port) {
                found.push(failure(
                    format!("port {port} is in use"),
                    format!("ss -ltnp 'sport = :{port}' shows the process"),
                ));
            }
        }
    }
    found
}

fn package_format(facts: &Facts) -> PackageFormat {
    PackageFormat::of(&facts.os).unwrap_or(PackageFormat::Deb)
}

/// Ports that this node's roles need.
fn ports(goal: &NodeGoal) -> Vec<u16> {
    use crate::model::role::Role;
    let mut ports = vec![7443, 10249, 10250, 10256];
    if goal.has(Role::Bootstrap) {
        ports.extend([5000, SERVE_PORT, MACHINE_METRICS_PORT, PUSH_PORT]);
    }
    if goal.has(Role::Mirror) {
        ports.extend([5000, SERVE_PORT]);
    }
    if goal.has(Role::Etcd) {
        ports.extend([2379, 2380, 2381]);
    }
    if goal.has(Role::Master) {
        ports.extend([6443, 10257, 10259]);
    }
    if goal.stands_by() {
        ports.push(MACHINE_METRICS_PORT);
    }
    ports.sort_unstable();
    ports
}

fn join<T: ToString>(all: impl IntoIterator<Item = T>) -> String {
    all.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join(", ")
}
