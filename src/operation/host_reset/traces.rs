//! What metalform leaves on a host, by name.

use std::collections::BTreeSet;

use super::section::Section;
use crate::resource::contract::kind::Kind;
use crate::state::Compiled;

/// Directories that are wholly metalform's and its components'. The first are data of the node.
pub const DATA: [&str; 6] = [
    "/var/lib/etcd",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/log/pods",
    "/var/log/containers",
    "/var/log/kubernetes",
];

/// The other ones.
pub const DIRECTORIES: [&str; 11] = [
    "/etc/kubernetes",
    "/etc/metalform",
    "/etc/cni",
    "/etc/containerd",
    "/etc/haproxy",
    "/etc/bird",
    "/opt/cni",
    "/opt/containerd",
    "/usr/libexec/kubernetes",
    "/var/lib/cni",
    "/var/lib/haproxy",
];

/// Users and groups that packages of the states create, and keep when they are removed.
pub const PACKAGE_USERS: [&str; 2] = ["haproxy", "bird"];

/// What kube-proxy and the kubelet set, beside the states.
const RUNTIME_SYSCTLS: [&str; 4] = [
    "net.netfilter.nf_conntrack_max",
    "net.netfilter.nf_conntrack_tcp_timeout_established",
    "net.netfilter.nf_conntrack_tcp_timeout_close_wait",
    "net.ipv4.conf.all.route_localnet",
];

/// Names of what the states of every role have on a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traces {
    /// Packages.
    pub packages: BTreeSet<String>,
    /// Units, with their suffix.
    pub units: BTreeSet<String>,
    /// Files and links.
    pub files: BTreeSet<String>,
    /// Kernel parameters.
    pub sysctls: BTreeSet<String>,
    /// The pod network and that of services.
    pub networks: BTreeSet<String>,
    /// Whether the data of the node stays.
    pub keep_data: bool,
}

impl Traces {
    /// Of the compiled states of every role.
    pub fn of(compiled: &[Compiled], networks: BTreeSet<String>, keep_data: bool) -> Self {
        let mut traces = Self {
            sysctls: RUNTIME_SYSCTLS.iter().map(|&key| key.to_owned()).collect(),
            networks,
            keep_data,
            ..Self::default()
        };
        for one in compiled {
            let name = one.id.name.clone();
            let field = |field: &str| one.fields.get(field)?.as_str().map(str::to_owned);
            match one.id.kind {
                Kind::Package => traces.packages.extend([name]),
                Kind::Service if name.contains('.') => traces.units.extend([name]),
                Kind::Service => traces.units.extend([format!("{name}.service")]),
                Kind::Unit => {
                    traces.files.insert(format!("/etc/systemd/system/{name}"));
                    traces.units.insert(name);
                }
                Kind::Sysctl => {
                    let paths =
                        ["90", "zz"].map(|order| format!("/etc/sysctl.d/{order}-metalform-{name}.conf"));
                    traces.files.extend(paths);
                    traces.sysctls.insert(name);
                }
                Kind::StaticPod => traces.files.extend([format!("/etc/kubernetes/manifests/{name}.yaml")]),
                Kind::Certificate | Kind::Kubeconfig => {
                    traces.files.extend(["certificate", "key"].into_iter().filter_map(field));
                    traces.files.insert(name);
                }
                Kind::Archive | Kind::Binary | Kind::File | Kind::Symlink | Kind::Template => {
                    traces.files.insert(name);
                }
                Kind::AuthorizedKey
                | Kind::Command
                | Kind::Directory
                | Kind::Group
                | Kind::HostEntry
                | Kind::Image
                | Kind::Kmod
                | Kind::Line
                | Kind::Mount
                | Kind::PackageRepository
                | Kind::Reboot
                | Kind::Route
                | Kind::Swap
                | Kind::User
                | Kind::Wait => {}
            }
        }
        traces
    }

    /// The directories that are emptied.
    pub fn directories(&self) -> impl Iterator<Item = &'static str> {
        let data = DATA.into_iter().filter(|_| !self.keep_data);
        data.chain(DIRECTORIES)
    }

    /// Whether this is metalform's, as far as its name shows.
    pub fn owns(&self, section: Section, name: &str) -> bool {
        let below = |place: &str| {
            name.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match section {
            Section::Package => self.packages.contains(name),
            Section::Unit => self.units.contains(name),
            Section::User | Section::Group => PACKAGE_USERS.contains(&name),
            Section::Sysctl => self.sysctls.contains(name),
            Section::Mount => self.directories().any(|place| below(place) && name != place),
            Section::Link => name == "cni0" || name.starts_with("veth"),
            Section::Route => self.networks.iter().any(|network| name.contains(network.as_str())),
            Section::Nftables => name.contains("kube-proxy") || name.contains("metalform"),
            Section::Path | Section::File => {
                self.files.contains(name)
                    || name.contains(".metalform-disabled")
                    || self.directories().any(below)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_that_stays_is_not_counted_as_left() {
        let (all, kept) = (Traces::default(), Traces { keep_data: true, ..Traces::default() });
        let cases = [
            (Section::Path, "/var/lib/etcd/removed-1", true, false),
            (Section::Path, "/var/lib/etcd-of-another", false, false),
            (Section::Path, "/etc/kubernetes/pki/ca.crt", true, true),
            (Section::Mount, "/var/lib/kubelet", false, false),
            (Section::Mount, "/var/lib/kubelet/pods/x/volumes", true, false),
            (Section::Link, "veth1a2b3c4d", true, true),
            (Section::Link, "eth0", false, false),
            (Section::Nftables, "ip kube-proxy", true, true),
            (Section::Nftables, "inet filter", false, false),
        ];
        for (section, name, reset, with_data) in cases {
            assert_eq!((all.owns(section, name), kept.owns(section, name)), (reset, with_data), "{name}");
        }
    }
}
