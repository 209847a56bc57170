//! Facts about a host, in one round trip and half a dozen processes.

mod addresses;
mod os_release;
mod resolver;

use std::collections::BTreeMap;

use super::frame::{self, FrameError, Section, Sections};
use super::head_v;
use super::nonce::Nonce;
use crate::model::facts::Facts;
use crate::model::platform::architecture_of;
use crate::transport::{Output, Program};

/// Files that are read. `/proc/self` is that of the program, which has the capabilities of its user.
const FILES: [&str; 12] = [
    "/etc/os-release",
    "/usr/lib/os-release",
    "/etc/machine-id",
    resolver::HOST,
    resolver::RESOLVED,
    "/proc/sys/kernel/hostname",
    "/proc/sys/kernel/random/boot_id",
    "/proc/meminfo",
    "/proc/swaps",
    "/proc/self/status",
    "/proc/net/route",
    "/proc/sys/kernel/osrelease",
];

/// Number of CAP_SYS_RESOURCE (capabilities(7)).
const CAP_SYS_RESOURCE: u32 = 24;

/// Why there are no facts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FactsError {
    /// The output is not that of the program.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A fact that every supported host has is missing.
    #[error("the host does not report its {0}")]
    Unknown(&'static str),
    /// iproute2 is not installed, or refuses.
    #[error("the host does not list its addresses: {message}")]
    NoAddresses {
        /// From `ip` or the shell.
        message: String,
    },
}

/// The program that collects facts. Its payload is empty.
pub fn program(nonce: &Nonce) -> Program {
    Program { script: frame::script(nonce, &ask()), payload: Vec::new() }
}

/// The sections that print them.
pub(super) fn ask() -> Vec<Section> {
    vec![
        ("files", head_v::head(FILES)),
        ("machine", "uname -m\nnproc\ndate +%s\n".to_owned()),
        ("file-systems", "stat -f -c '%T %a %S' /sys/fs/cgroup /var\n".to_owned()),
        ("container", "systemd-detect-virt --container --quiet && echo yes\n".to_owned()),
        ("addresses", "ip -o addr show 2>&1 || echo failed\n".to_owned()),
    ]
}

/// The facts in the output of the program.
///
/// # Errors
/// When the output is not that of the program, or the host lacks what every Linux host has.
pub fn parse(nonce: &Nonce, output: &Output) -> Result<Facts, FactsError> {
    answer(&Sections::parse(nonce, output.status, &output.stdout)?)
}

/// The facts in these sections.
pub(super) fn answer(sections: &Sections) -> Result<Facts, FactsError> {
    let text = sections.text("files")?;
    let files = head_v::split(&text, FILES);
    let machine = sections.text("machine")?;
    let [arch, cpus, clock] = machine.lines().collect::<Vec<_>>()[..] else {
        return Err(FactsError::Unknown("machine"));
    };
    let file_systems = sections.text("file-systems")?;
    let addresses = sections.text("addresses")?;
    if let Some(message) = addresses.trim_end().strip_suffix("failed") {
        return Err(FactsError::NoAddresses { message: message.trim().to_owned() });
    }
    let line = |path: &'static str, what| {
        let line = files.get(path).map(|text| text.trim()).filter(|line| !line.is_empty());
        line.map(str::to_owned).ok_or(FactsError::Unknown(what))
    };
    let lines = |path: &'static str| files.get(path).map(String::as_str).unwrap_or_default().lines();
    let os = ["/etc/os-release", "/usr/lib/os-release"]
        .iter()
        .find_map(|path| os_release::parse(files.get(path)?))
        .ok_or(FactsError::Unknown("operating system"))?;
    let resolver = resolver::Resolver::of(&files);
    Ok(Facts {
        hostname: line("/proc/sys/kernel/hostname", "host name")?,
        machine_id: line("/etc/machine-id", "machine id")?,
        boot_id: line("/proc/sys/kernel/random/boot_id", "boot id")?,
        os,
        arch: architecture_of(arch).to_owned(),
        kernel: line("/proc/sys/kernel/osrelease", "kernel release")?,
        cpus: cpus.parse().map_err(|_| FactsError::Unknown("number of processors"))?,
        memory: memory(&files).ok_or(FactsError::Unknown("memory"))?,
        cgroup: if file_systems.starts_with("cgroup2fs ") { 2 } else { 1 },
        container: sections.text("container")?.trim() == "yes",
        may_lower_oom_score: capable(&files).ok_or(FactsError::Unknown("capabilities"))?,
        addresses: addresses::parse(&addresses),
        default_route: lines("/proc/net/route").any(is_default_route),
        nameservers: resolver.nameservers,
        swap: lines("/proc/swaps").filter(|line| !line.is_empty()).count() > 1,
        clock: clock.parse().map_err(|_| FactsError::Unknown("clock"))?,
        disk_free: disk_free(&file_systems).ok_or(FactsError::Unknown("free space below /var"))?,
        resolv_conf: resolver.file.to_owned(),
    })
}

fn memory(files: &BTreeMap<&str, String>) -> Option<u64> {
    let line = files.get("/proc/meminfo")?.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

fn capable(files: &BTreeMap<&str, String>) -> Option<bool> {
    let line = files.get("/proc/self/status")?.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let effective = u64::from_str_radix(line.trim(), 16).ok()?;
    Some(effective & (1 << CAP_SYS_RESOURCE) != 0)
}

/// Columns of /proc/net/route: interface, destination, gateway, flags, references, use, metric, mask.
fn is_default_route(line: &str) -> bool {
    let columns: Vec<&str> = line.split_whitespace().collect();
    columns.get(1) == Some(&"00000000") && columns.get(7) == Some(&"00000000")
}

/// Line of /var: file system, free blocks, bytes a block.
fn disk_free(file_systems: &str) -> Option<u64> {
    let mut words = file_systems.lines().last()?.split_whitespace().skip(1);
    let (blocks, size): (u64, u64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    blocks.checked_mul(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::shells::run;

    #[test]
    fn this_machine_has_facts() {
        let nonce = Nonce::new(1);
        let facts = parse(&nonce, &run("sh", &program(&nonce))).unwrap();
        assert_eq!(facts.kernel, std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim());
        assert!(
            facts.memory > 1 << 20 && facts.cpus > 0 && facts.disk_free > 0 && facts.clock > 1_700_000_000
        );
        assert!(!facts.addresses.contains_key("lo"));
    }

    #[test]
    fn lines_of_the_kernel_are_understood() {
        assert!(is_default_route("eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0"));
        assert!(!is_default_route("eth0\t00000000\t0100000A\t0003\t0\t0\t0\t000000FF\t0\t0\t0"));
        assert_eq!(disk_free("cgroup2fs 0 4096\next2/ext3 10 4096\n"), Some(40960));
    }
}
