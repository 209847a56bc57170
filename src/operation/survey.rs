//! What is on a host that conflicts with a node, or is part of one already: observed in one round trip.

use std::collections::{BTreeMap, BTreeSet};

use super::present_networks::PresentNetworks;
use super::static_pod::{flags, image_version};
use crate::resource::contract::probe::{Answer, Observed, PathState, Probe};

/// Packages of another container runtime or another distribution of Kubernetes.
const CONFLICTING_PACKAGES: &[&str] =
    &["docker.io", "docker-ce", "containerd.io", "kubeadm", "cri-o", "k3s", "podman-docker"];
/// The package of the GNU C library: in Debian and its derivatives, and in Enterprise Linux.
const C_LIBRARY: [&str; 2] = ["libc6", "glibc"];
/// Services that rewrite the firewall rules of kube-proxy, are another kubelet, or turn swap on without swap.target.
const CONFLICTING_SERVICES: &[&str] = &[
    "firewalld.service",
    "ufw.service",
    "k3s.service",
    "rke2-server.service",
    "zramswap.service",
    "zram-config.service",
    "dphys-swapfile.service",
];

const AUTHORITY: &str = "/etc/kubernetes/pki/ca.crt";
const KUBELET_CERTIFICATE: &str = "/var/lib/kubelet/pki/kubelet-client-current.pem";
pub(super) const APISERVER_MANIFEST: &str = "/etc/kubernetes/manifests/kube-apiserver.yaml";
const CONTROLLER_MANAGER_MANIFEST: &str = "/etc/kubernetes/manifests/kube-controller-manager.yaml";
const SCHEDULER_MANIFEST: &str = "/etc/kubernetes/manifests/kube-scheduler.yaml";
/// There from when `stop_control_plane.sh` removes these manifests until their processes have ended.
pub(super) const CONTROL_PLANE_ENDS: &str = "/run/metalform/control-plane-ends";
const MASTER_KEY: &str = "/etc/kubernetes/pki/sa.key";
const MEMBER_KEY: &str = "/etc/kubernetes/pki/etcd/peer.key";
const MIRROR_UNIT: &str = "/etc/systemd/system/metalform-mirror.service";
const ETCD_MANIFEST: &str = "/etc/kubernetes/manifests/etcd.yaml";
/// What metalform has on every host that it has changed: a record of what was there before, or, from versions that
/// recorded nothing, its package source; and the mark of a reset that was interrupted.
const MARKS: [&str; 4] = [
    "/var/lib/metalform/before",
    "/var/lib/metalform/resetting",
    "/etc/apt/sources.list.d/metalform.sources",
    "/etc/yum.repos.d/metalform.repo",
];

/// What was observed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Conflicting packages that are installed.
    pub packages: BTreeSet<String>,
    /// The version of the GNU C library's package; `None` where there is none.
    pub c_library: Option<String>,
    /// Conflicting services that run or are enabled.
    pub services: BTreeSet<String>,
    /// TCP ports that a node listens on, and that are in use.
    pub busy_ports: BTreeSet<u16>,
    /// The CA certificate of the cluster that the host belongs to, PEM.
    pub authority: Option<String>,
    /// Whether the kubelet has a certificate of that CA which has not expired.
    pub joined: bool,
    /// The etcd member's flags by name, when its static pod is on the host.
    pub etcd_flags: Option<BTreeMap<String, String>>,
    /// The version of etcd and of Kubernetes in the static pods of the member and of the API server that are on the host.
    pub versions: BTreeMap<String, String>,
    /// The networks of the cluster, by the static pods that are on the host.
    pub networks: PresentNetworks,
    /// Whether there is data of an etcd member that has started: its write-ahead log.
    pub etcd_data: bool,
    /// Whether the static pod of an API server, a controller manager or a scheduler is on the host, or has not ended.
    pub control_plane: bool,
    /// Whether the keys of an API server are on the host.
    pub master_files: bool,
    /// Whether the keys of an etcd member are on the host.
    pub member_files: bool,
    /// Whether the server of a mirror is on the host.
    pub mirror_files: bool,
    /// Whether metalform has changed nothing on the host, or has reset it since.
    pub untouched: bool,
    /// Whether openssl(1) is installed.
    pub openssl: bool,
    /// Modules that are neither loaded nor loadable.
    pub missing_modules: BTreeSet<String>,
    /// What makes cloud-init write `/etc/hosts` at every boot.
    pub hosts_rewritten: Option<CloudConfig>,
}

/// Where cloud-init has its configuration from (cloud-init's "configuration priority").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloudConfig {
    /// The files in `/etc/cloud`; of two of them, the last wins.
    Files,
    /// What the platform or its user gave for this instance; it overrides the files.
    Instance,
}

impl Survey {
    /// Whether an etcd member is, or was, on the host.
    pub fn has_member(&self) -> bool {
        self.etcd_data || self.etcd_flags.is_some()
    }

    /// The peer URL with which the member of this name began, by its static pod. No later change of the pod changes it.
    pub fn member_url(&self, name: &str) -> Option<&str> {
        let members = self.etcd_flags.as_ref()?.get("initial-cluster")?;
        members.split(',').find_map(|member| member.strip_prefix(name)?.strip_prefix('='))
    }
}

/// Ports that a node listens on, for all its roles.
pub const PORTS: &[u16] =
    &[2379, 2380, 2381, 5000, 6443, 7443, 8443, 8444, 8445, 10249, 10250, 10256, 10257, 10259];

/// What a survey observes.
pub fn probes() -> BTreeSet<Probe> {
    let mut probes = BTreeSet::from([
        Probe::Content { path: AUTHORITY.to_owned() },
        Probe::Content { path: ETCD_MANIFEST.to_owned() },
        Probe::Content { path: APISERVER_MANIFEST.to_owned() },
        Probe::Content { path: CONTROLLER_MANAGER_MANIFEST.to_owned() },
        guard_joined(),
        guard_etcd_data(),
        guard_openssl(),
        guard_cloud_init(),
    ]);
    probes.extend([SCHEDULER_MANIFEST, CONTROL_PLANE_ENDS, MASTER_KEY, MEMBER_KEY, MIRROR_UNIT].map(path));
    probes.extend(MARKS.map(path));
    probes.extend(CONFLICTING_PACKAGES.iter().chain(&C_LIBRARY).map(|name| package(name)));
    probes.extend(CONFLICTING_SERVICES.iter().map(|name| Probe::Unit { name: (*name).to_owned() }));
    probes.extend(PORTS.iter().map(|port| Probe::Listener { port: *port }));
    probes.extend(MODULES.iter().map(|name| guard_module(name)));
    probes
}

/// Modules that the pod network and the runtime need.
const MODULES: &[&str] = &["overlay", "br_netfilter", "nf_tables"];

fn path(path: &str) -> Probe {
    Probe::Path { path: path.to_owned(), unless_sha256: None }
}

fn package(name: &str) -> Probe {
    Probe::Package { name: name.to_owned() }
}

fn guard(script: String) -> Probe {
    Probe::Guard { script }
}

fn guard_joined() -> Probe {
    guard(format!(
        "openssl verify -CAfile {AUTHORITY} {KUBELET_CERTIFICATE} >/dev/null 2>&1 && openssl x509 -checkend 60 -noout -in {KUBELET_CERTIFICATE} >/dev/null"
    ))
}

fn guard_etcd_data() -> Probe {
    guard("test -d /var/lib/etcd/member/wal".to_owned())
}

fn guard_openssl() -> Probe {
    guard("command -v openssl >/dev/null".to_owned())
}

/// 0 where cloud-init replaces `/etc/hosts` at boot by its files, 3 where by the instance's configuration.
fn guard_cloud_init() -> Probe {
    guard(include_str!("rewrites_hosts.sh").to_owned())
}

/// Loaded, built in, or loadable. The directories and files are those that each is known by when it is built in.
fn guard_module(name: &str) -> Probe {
    let known_by = match name {
        "overlay" => "grep -qw overlay /proc/filesystems",
        "br_netfilter" => "test -e /proc/sys/net/bridge",
        _ => "test -e /proc/net/netfilter || test -e /sys/module/nf_tables",
    };
    guard(format!("test -e /sys/module/{name} || {known_by} || modprobe -n {name} 2>/dev/null"))
}

/// Interprets the answers. A probe that failed counts as negative: preflight names what is missing.
pub fn read(observed: &Observed) -> Survey {
    let exists = |path: &str| matches!(observed.get(&self::path(path)), Some(Answer::Path(state)) if *state != PathState::Absent);
    let absent =
        |path: &str| matches!(observed.get(&self::path(path)), Some(Answer::Path(PathState::Absent)));
    let held = |probe: Probe| matches!(observed.get(&probe), Some(Answer::Guard(0)));
    let listens = |port: u16| matches!(observed.get(&Probe::Listener { port }), Some(Answer::Listener(true)));
    let content = |path: &str| match observed.get(&Probe::Content { path: path.to_owned() }) {
        Some(Answer::Content(Some(bytes))) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    };
    let version = |name: &str| match observed.get(&package(name)) {
        Some(Answer::Package(Some(package))) => Some(package.version.clone()),
        _ => None,
    };
    let (etcd, apiserver) = (content(ETCD_MANIFEST), content(APISERVER_MANIFEST));
    let controller_manager = content(CONTROLLER_MANAGER_MANIFEST);
    let versions = [("etcd", &etcd), ("kubernetes", &apiserver)];
    let versions = versions
        .into_iter()
        .filter_map(|(component, manifest)| Some((component.to_owned(), image_version(manifest.as_ref()?)?)));
    Survey {
        packages: named(CONFLICTING_PACKAGES, |name| version(name).is_some()),
        c_library: C_LIBRARY.into_iter().find_map(version),
        services: named(CONFLICTING_SERVICES, |name| {
            matches!(observed.get(&Probe::Unit { name: name.to_owned() }),
                Some(Answer::Unit(unit)) if unit.active == "active" || unit.unit_file == "enabled")
        }),
        busy_ports: PORTS.iter().copied().filter(|port| listens(*port)).collect(),
        authority: content(AUTHORITY),
        joined: held(guard_joined()),
        etcd_flags: etcd.as_deref().map(flags),
        versions: versions.collect(),
        networks: PresentNetworks::of(apiserver.as_deref(), controller_manager.as_deref()),
        etcd_data: held(guard_etcd_data()),
        control_plane: apiserver.is_some()
            || controller_manager.is_some()
            || exists(SCHEDULER_MANIFEST)
            || exists(CONTROL_PLANE_ENDS),
        master_files: exists(MASTER_KEY),
        member_files: exists(MEMBER_KEY),
        mirror_files: exists(MIRROR_UNIT),
        untouched: MARKS.into_iter().all(absent),
        openssl: held(guard_openssl()),
        missing_modules: named(MODULES, |name| !held(guard_module(name))),
        hosts_rewritten: match observed.get(&guard_cloud_init()) {
            Some(Answer::Guard(0)) => Some(CloudConfig::Files),
            Some(Answer::Guard(3)) => Some(CloudConfig::Instance),
            _ => None,
        },
    }
}

fn named(names: &[&str], is: impl Fn(&str) -> bool) -> BTreeSet<String> {
    names.iter().filter(|name| is(name)).map(|&name| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::engine::shells::{run, shells};
    use crate::resource::contract::probe::{InstalledPackage, UnitState};
    use crate::transport::Program;

    #[test]
    fn the_networks_are_those_of_the_static_pods() {
        let content = |path: &str, text: &str| {
            (Probe::Content { path: path.to_owned() }, Answer::Content(Some(text.as_bytes().to_vec())))
        };
        let survey = read(&Observed(BTreeMap::from([
            content(APISERVER_MANIFEST, "- --service-cluster-ip-range=10.96.0.0/12\n"),
            content(CONTROLLER_MANAGER_MANIFEST, "- --cluster-cidr=10.233.0.0/16\n"),
        ])));
        let network = |text: &str| -> BTreeSet<ipnet::IpNet> { BTreeSet::from([text.parse().unwrap()]) };
        assert_eq!(survey.networks.pods, network("10.233.0.0/16"));
        assert_eq!(survey.networks.services, network("10.96.0.0/12"));
        assert!(survey.control_plane);
    }

    #[test]
    fn a_control_plane_that_has_not_ended_is_there_without_its_manifests() {
        let ends = path(CONTROL_PLANE_ENDS);
        assert!(probes().contains(&ends));
        for (state, there) in [(PathState::Other, true), (PathState::Absent, false)] {
            let survey = read(&Observed([(ends.clone(), Answer::Path(state))].into()));
            assert_eq!(survey.control_plane, there);
        }
    }

    #[test]
    fn nothing_observed_is_a_host_with_nothing_on_it() {
        let survey = read(&Observed::default());
        assert!(!survey.joined && survey.packages.is_empty() && survey.authority.is_none());
    }

    #[test]
    fn cloud_init_replaces_hosts_where_its_last_configuration_is_true() {
        const FILE: &str = "etc/cloud/cloud.cfg.d/01_debian_cloud.cfg";
        const GIVEN: &str = "var/lib/cloud/instance/cloud-config.txt";
        let on = "apt: {}\nmanage_etc_hosts: true\n";
        let cases: [(&[(&str, &str)], i32); 12] = [
            (&[], 1),
            (&[(FILE, on)], 0),
            (&[(FILE, "manage_etc_hosts: 'Template' # of the image\n")], 0),
            (&[(FILE, "manage_etc_hosts: localhost\n")], 1),
            (&[(FILE, "# manage_etc_hosts: true\n")], 1),
            (&[("etc/cloud/cloud.cfg", on), (FILE, "manage_etc_hosts: false\n")], 1),
            (&[(FILE, on), ("etc/cloud/cloud.cfg.d/zz-hosts.cfg", "manage_etc_hosts: false")], 1),
            (&[(FILE, on), ("etc/cloud/cloud-init.disabled", "")], 1),
            (&[(FILE, on), ("run/cloud-init/disabled", "")], 1),
            (&[(FILE, "manage_etc_hosts: false\n"), (GIVEN, on)], 3),
            (&[(FILE, on), (GIVEN, "manage_etc_hosts: false\n")], 1),
            (&[("var/lib/cloud/instance/vendor-cloud-config.txt", on), (GIVEN, "ssh: {}\n")], 3),
        ];
        for (files, expected) in cases {
            let host = tempfile::tempdir().unwrap();
            let write = |path: &str, text: &str| {
                let path = host.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, text).unwrap();
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            };
            write("bin/cloud-init", "#!/bin/sh\n");
            files.iter().for_each(|(path, text)| write(path, text));
            let Probe::Guard { script } = guard_cloud_init() else { panic!("it is a guard") };
            let root = host.path().display();
            let mut script = format!("PATH={root}/bin:$PATH\n{script}");
            for place in ["/etc/cloud", "/run/cloud-init", "/var/lib/cloud"] {
                script = script.replace(place, &format!("{root}{place}"));
            }
            for shell in shells() {
                let program = Program { script: script.clone(), payload: Vec::new() };
                assert_eq!(run(shell, &program).status, expected, "{shell}: {files:?}");
            }
        }
    }

    #[test]
    fn the_c_library_is_the_package_of_either_family() {
        assert_eq!(read(&Observed::default()).c_library, None);
        for (name, version) in [("libc6", "2.36-9+deb12u10"), ("glibc", "2.34-100.el9")] {
            let installed = InstalledPackage { version: version.to_owned(), held: false, configured: true };
            assert!(probes().contains(&package(name)), "{name}");
            let survey = read(&Observed([(package(name), Answer::Package(Some(installed)))].into()));
            assert_eq!(survey.c_library.as_deref(), Some(version));
            assert!(survey.packages.is_empty());
        }
    }

    /// Of Debian (zram-tools, dphys-swapfile) and Ubuntu: swap.target, which is masked, is none of their dependencies.
    #[test]
    fn services_that_turn_swap_on_conflict() {
        for name in ["zramswap.service", "zram-config.service", "dphys-swapfile.service"] {
            let unit = UnitState {
                load: "loaded".to_owned(),
                active: "active".to_owned(),
                sub: "exited".to_owned(),
                unit_file: "enabled".to_owned(),
                needs_daemon_reload: false,
                started: None,
                changed: None,
            };
            let probe = Probe::Unit { name: name.to_owned() };
            assert!(probes().contains(&probe), "{name}");
            let survey = read(&Observed([(probe, Answer::Unit(unit))].into()));
            assert_eq!(survey.services, BTreeSet::from([name.to_owned()]));
        }
    }

    #[test]
    fn a_host_without_any_mark_is_untouched() {
        let marked = |mark: &str| {
            let state = |path: &str| match path == mark {
                true => PathState::Other,
                false => PathState::Absent,
            };
            read(&Observed(
                MARKS.into_iter().map(|path| (self::path(path), Answer::Path(state(path)))).collect(),
            ))
        };
        assert!(marked("").untouched);
        assert!(MARKS.iter().all(|mark| !marked(mark).untouched));
        assert!(!read(&Observed::default()).untouched, "nothing is known of it");
        let recording = include_str!("cluster_site/record_host.sh");
        assert!(MARKS.iter().all(|mark| recording.contains(mark)), "a host that has one is recorded no more");
    }
}
