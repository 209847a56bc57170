//! What a host is, as opposed to what it should be.

use std::collections::BTreeMap;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Observed on the host in one round trip; the `facts` of templates and state files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// `hostname` as the kernel has it.
    pub hostname: String,
    /// `/etc/machine-id`.
    pub machine_id: String,
    /// `/proc/sys/kernel/random/boot_id`.
    pub boot_id: String,
    /// The operating system, from os-release(5).
    pub os: Os,
    /// In Go's spelling, as packages and images have it: `amd64`, `arm64`; other machines as `uname -m` says.
    pub arch: String,
    /// `uname -r`.
    pub kernel: String,
    /// Logical processors.
    pub cpus: u32,
    /// MemTotal, bytes.
    pub memory: u64,
    /// 2 when `/sys/fs/cgroup` is a cgroup2 file system, else 1.
    pub cgroup: u8,
    /// Whether the host is a container (systemd-detect-virt --container), where an operator's machine is not.
    pub container: bool,
    /// The highest `oom_score_adj` decrease permitted: false where CAP_SYS_RESOURCE is missing.
    pub may_lower_oom_score: bool,
    /// Addresses by network interface, loopback left out; in the kernel's order.
    pub addresses: BTreeMap<String, Vec<Cidr>>,
    /// Whether a default route exists (IPv4).
    pub default_route: bool,
    /// Nameservers in `/etc/resolv.conf`; empty when the file is missing or names none.
    pub nameservers: Vec<IpAddr>,
    /// Whether any swap is in use.
    pub swap: bool,
    /// Seconds since the epoch on the host's clock when it was asked.
    pub clock: i64,
    /// Bytes free below `/var`.
    pub disk_free: u64,
    /// Whether `/etc/resolv.conf` exists.
    pub resolv_conf: bool,
}

impl Facts {
    /// Of an ordinary machine with Debian, or of one with Rocky Linux: what states are held against when no host is
    /// present.
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
            // RFC 5737: no host has it.
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
            resolv_conf: true,
        })
    }
}

/// From os-release(5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Os {
    /// `ID`: `debian`, `ubuntu`, `rocky`.
    pub id: String,
    /// `debian` or `redhat`, whichever the ID or `ID_LIKE` belongs to; else the ID.
    pub family: String,
    /// `VERSION_ID`: `13`; empty where the system is a rolling one.
    pub version: String,
    /// `VERSION_CODENAME`: `trixie`; empty where there is none.
    pub codename: String,
}

/// An address and its network's prefix length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Cidr {
    /// The host's address.
    pub address: IpAddr,
    /// 0 to 32 for IPv4, 0 to 128 for IPv6.
    pub prefix: u8,
}
