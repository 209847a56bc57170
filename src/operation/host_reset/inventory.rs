//! What there is on a host: recorded before metalform first changes it, and compared once it was reset.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::section::Section;
use super::traces::Traces;

/// What there is, by section and name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostInventory(BTreeMap<(Section, String), String>);

/// One thing that is not as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostDifference {
    /// What it is.
    pub section: Section,
    /// Which one.
    pub name: String,
    /// As it was recorded; `None` where there was none, or nothing was recorded.
    pub before: Option<String>,
    /// As it is; `None` where there is none any more.
    pub now: Option<String>,
    /// Whether metalform made the difference, as far as the name shows.
    pub ours: bool,
}

impl fmt::Display for HostDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.section, self.name)?;
        match (self.before.as_deref(), self.now.as_deref()) {
            (None, Some("")) => f.write_str(": is there"),
            (None, Some(now)) => write!(f, ": is there ({now})"),
            (Some(_), None) => f.write_str(": is gone"),
            (Some(before), Some(now)) => write!(f, ": was {before}, is {now}"),
            (None, None) => Ok(()),
        }
    }
}

impl HostInventory {
    /// Of the lines that `cluster_site/inventory.sh` prints. Others are left out, and packages of which dpkg has only the
    /// configuration files: they are not installed.
    pub fn parse(text: &str) -> Self {
        let entry = |line: &str| {
            let mut parts = line.splitn(3, '\t');
            let section = parts.next()?.parse().ok()?;
            let name = parts.next()?.to_owned();
            let value = parts.next().unwrap_or_default().trim_end();
            let installed = section != Section::Package
                || ![" config-files", " not-installed"].iter().any(|state| value.ends_with(state));
            installed.then(|| ((section, name), value.to_owned()))
        };
        Self(text.lines().filter_map(entry).collect())
    }

    /// Its value.
    pub fn get(&self, section: Section, name: &str) -> Option<&str> {
        self.0.get(&(section, name.to_owned())).map(String::as_str)
    }
}

/// Every difference, in the order of sections and names. Without a record, whatever is metalform's is one. Pure.
///
/// Kernel parameters change by themselves: only those that metalform sets are compared, where they were there before. One
/// that came with a module stays until the module goes, at the next boot.
pub fn differences(
    before: Option<&HostInventory>,
    now: &HostInventory,
    traces: &Traces,
) -> Vec<HostDifference> {
    let none = HostInventory::default();
    let recorded = before.unwrap_or(&none);
    let keys: BTreeSet<&(Section, String)> = recorded.0.keys().chain(now.0.keys()).collect();
    let difference = |key: &(Section, String)| {
        let (before, now) = (recorded.0.get(key), now.0.get(key));
        let (section, name) = key;
        let ours = traces.owns(*section, name) && (now.is_some() || comes_back(*section, name));
        (before != now && (ours || !is_volatile(*section, name))).then(|| HostDifference {
            section: *section,
            name: name.clone(),
            before: before.cloned(),
            now: now.cloned(),
            ours,
        })
    };
    let mut found: Vec<HostDifference> = keys.into_iter().filter_map(difference).collect();
    found.retain(|one| match one.section {
        Section::Sysctl => one.ours && one.before.is_some() && one.now.is_some(),
        _ => one.ours || before.is_some(),
    });
    if before.is_none() {
        // It is not known whether a directory is a mount point of the host's own.
        found.retain(|one| !traces.directories().any(|place| place == one.name));
    }
    found
}

/// Whether a reset can put back what was there: no link or mount, and no directory of an earlier node's pods.
fn comes_back(section: Section, name: &str) -> bool {
    match section {
        Section::Link | Section::Mount | Section::Route | Section::Nftables => false,
        Section::Path => name.starts_with("/etc/"),
        _ => true,
    }
}

/// What programs of the distribution write by themselves.
fn is_volatile(section: Section, name: &str) -> bool {
    const FILES: [&str; 16] = [
        "/etc/.pwd.lock",
        "/etc/adjtime",
        "/etc/group",
        "/etc/group-",
        "/etc/gshadow",
        "/etc/gshadow-",
        "/etc/ld.so.cache",
        "/etc/mtab",
        "/etc/passwd",
        "/etc/passwd-",
        "/etc/resolv.conf",
        "/etc/shadow",
        "/etc/shadow-",
        "/etc/subgid-",
        "/etc/subuid-",
        "/etc/machine-id",
    ];
    const BELOW: [&str; 7] = [
        "/var/lib/apt",
        "/var/lib/dnf",
        "/var/lib/dpkg",
        "/var/lib/rpm",
        "/var/lib/systemd",
        "/var/lib/ucf",
        "/var/log",
    ];
    match section {
        Section::File => FILES.contains(&name),
        Section::Path => {
            let below = |place: &&str| {
                name.strip_prefix(*place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            FILES.contains(&name) || BELOW.iter().any(below)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traces() -> Traces {
        Traces {
            packages: ["kubelet".to_owned()].into(),
            units: ["kubelet.service".to_owned()].into(),
            files: ["/etc/default/kubelet".to_owned()].into(),
            sysctls: ["kernel.panic", "net.bridge.bridge-nf-call-iptables", "net.netfilter.nf_conntrack_max"]
                .map(str::to_owned)
                .into(),
            ..Traces::default()
        }
    }

    #[test]
    fn what_metalform_left_is_told_from_what_an_administrator_changed() {
        let before = "package\thtop\tinstall installed\nsysctl\tkernel.panic\t0\nsysctl\tfs.file-nr\t1\n\
                      sysctl\tnet.netfilter.nf_conntrack_max\t1\n\
                      path\t/var/lib/etcd\td 755 root:root \nfile\t/etc/hosts\taa\n";
        // A module was loaded since, and another one is gone.
        let now = "package\tkubelet\thold installed\nsysctl\tkernel.panic\t10\nsysctl\tfs.file-nr\t2\n\
                   sysctl\tnet.bridge.bridge-nf-call-iptables\t1\n\
                   path\t/var/lib/etcd\td 700 root:root \nfile\t/etc/hosts\tbb\nlink\tcni0\t\nlink\teth7\t\n\
                   file\t/etc/passwd-\tcc\nnot a line\n";
        let [before, now] = [before, now].map(HostInventory::parse);
        let lines = |found: Vec<HostDifference>| -> Vec<String> {
            found.iter().map(|one| format!("{}{one}", if one.ours { "ours: " } else { "" })).collect()
        };
        assert_eq!(
            lines(differences(Some(&before), &now, &traces())),
            [
                "package htop: is gone",
                "ours: package kubelet: is there (hold installed)",
                "ours: sysctl kernel.panic: was 0, is 10",
                "ours: link cni0: is there",
                "link eth7: is there",
                "ours: path /var/lib/etcd: was d 755 root:root, is d 700 root:root",
                "file /etc/hosts: was aa, is bb",
            ]
        );
        assert_eq!(
            lines(differences(None, &now, &traces())),
            ["ours: package kubelet: is there (hold installed)", "ours: link cni0: is there",]
        );
        assert_eq!(differences(Some(&now), &now, &traces()), []);
    }

    #[test]
    fn what_an_earlier_node_had_left_is_not_left_behind() {
        let before = "package\tkubelet\tdeinstall config-files\nlink\tcni0\t\nmount\t/var/lib/kubelet/pods/1/tmp\ttmpfs\n\
                      path\t/var/lib/cni/networks\td 755 0:0 \npath\t/var/log/pods/1\td 755 0:0 \n\
                      path\t/etc/default/kubelet\tf 644 0:0 \n";
        let found = differences(
            Some(&HostInventory::parse(before)),
            &HostInventory::parse("package\tkubelet\tdeinstall config-files\n"),
            &traces(),
        );
        let ours: Vec<String> = found.iter().filter(|one| one.ours).map(ToString::to_string).collect();
        assert_eq!(ours, ["path /etc/default/kubelet: is gone"]);
        let others: Vec<&str> = found.iter().filter(|one| !one.ours).map(|one| one.name.as_str()).collect();
        assert_eq!(others, ["/var/lib/kubelet/pods/1/tmp", "cni0", "/var/lib/cni/networks"]);
    }
}
