//! The root `facts`: observed properties of a host, as opposed to its desired state.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Observed on the host in one round trip.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// The kernel's host name.
    pub hostname: String,
    /// `/etc/machine-id`.
    pub machine_id: String,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// The operating system, from os-release(5).
    pub os: Os,
    /// `amd64`, `arm64`; otherwise as printed by `uname -m`.
    pub arch: String,
    /// `uname -r`.
    pub kernel: String,
    /// Number of logical processors.
    pub cpus: u32,
    /// MemTotal, in bytes.
    pub memory: u64,
    /// 2 when `/sys/fs/cgroup` is a cgroup2 file system, else 1.
    pub cgroup: u8,
    /// Whether the host is a container (`systemd-detect-virt --container`).
    pub container: bool,
    /// Whether `oom_score_adj` may be decreased: false without CAP_SYS_RESOURCE.
    pub may_lower_oom_score: bool,
    /// Network interface to addresses in the kernel's order, without the loopback interface.
    pub addresses: BTreeMap<String, Vec<Cidr>>,
    /// Whether a default route exists (IPv4).
    pub default_route: bool,
    /// Nameservers in `resolv_conf`; empty without the file, and when one of them is a loopback address, which in a
    /// pod is the pod itself.
    pub nameservers: Vec<IpAddr>,
    /// Whether any swap is in use.
    pub swap: bool,
    /// The host's clock when it was observed, in seconds since the epoch.
    pub clock: i64,
    /// Free space below `/var`, in bytes.
    pub disk_free: u64,
    /// The file of nameservers for pods that use the host's: `/etc/resolv.conf`, or, where that has the local one of
    /// systemd-resolved, `/run/systemd/resolve/resolv.conf`; empty without the file.
    pub resolv_conf: String,
}

impl Facts {
    /// Whether they are those of the machine with this ID. A host without one is none.
    pub fn are_of(&self, machine_id: &str) -> bool {
        !machine_id.is_empty() && self.machine_id == machine_id
    }

    /// Facts of two ordinary machines, with Debian and with Rocky Linux (which has no codename): states are checked
    /// with them when no host is present.
    pub fn examples() -> [Self; 2] {
        let debian = Os {
            id: "debian".to_owned(),
            family: "debian".to_owned(),
            version: "13".to_owned(),
            codename: "trixie".to_owned(),
        };
        let rocky = Os {
            id: "rocky".to_owned(),
            family: "redhat".to_owned(),
            version: "9.6".to_owned(),
            codename: String::new(),
        };
        [debian, rocky].map(|os| Self {
            hostname: "host".to_owned(),
            machine_id: "0123456789abcdef0123456789abcdef".to_owned(),
            boot_id: "01234567-89ab-cdef-0123-456789abcdef".to_owned(),
            os,
            arch: "amd64".to_owned(),
            kernel: "6.12.0".to_owned(),
            cpus: 4,
            memory: 8 << 30,
            cgroup: 2,
            container: false,
            may_lower_oom_score: true,
            // An address for documentation (RFC 5737).
            addresses: [(
                "eth0".to_owned(),
                vec![Cidr { address: IpAddr::from([192, 0, 2, 1]), prefix: 24 }],
            )]
            .into(),
            default_route: true,
            nameservers: vec![IpAddr::from([192, 0, 2, 53])],
            swap: false,
            clock: 0,
            disk_free: 64 << 30,
            resolv_conf: "/etc/resolv.conf".to_owned(),
        })
    }

    /// The interface and address of the host in one of these networks: the first, in the order of interface names.
    pub fn address_in(&self, networks: &[IpNet]) -> Option<(&str, IpAddr)> {
        self.addresses.iter().find_map(|(interface, addresses)| {
            let contains = |cidr: &&Cidr| networks.iter().any(|network| network.contains(&cidr.address));
            addresses.iter().find(contains).map(|cidr| (interface.as_str(), cidr.address))
        })
    }
}

/// From os-release(5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Os {
    /// `ID`: `debian`, `ubuntu`, `rocky`.
    pub id: String,
    /// `debian` or `redhat`, by `ID` and `ID_LIKE`; otherwise the ID.
    pub family: String,
    /// `VERSION_ID`: `13`; empty on a rolling distribution.
    pub version: String,
    /// `VERSION_CODENAME`: `trixie`; empty on RPM distributions. Nothing depends on it.
    pub codename: String,
}

/// An interface address with the prefix length of its network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Cidr {
    /// Not the network's address.
    pub address: IpAddr,
    /// 0 to 32 for IPv4, 0 to 128 for IPv6.
    pub prefix: u8,
}
