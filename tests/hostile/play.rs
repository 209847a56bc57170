//! A test host: real shells and coreutils, a root directory of its own, and commands that only record their arguments.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use metalform::transport::{Output, Program};

use crate::child::feed;

/// Part of every hostile string: a file or argument with it must contain the whole string.
pub const MARK: &str = "mark";

/// POSIX shells of supported hosts.
pub const SHELLS: [&str; 3] = ["dash", "bash --posix", "busybox sh"];

/// Commands that would change the machine, and `canary`, which is never called.
const PLAYED: &[&str] = &[
    "apt-get",
    "authconfig",
    "canary",
    "chgrp",
    "chown",
    "chpasswd",
    "ctr",
    "curl",
    "dnf",
    "dpkg",
    "dpkg-query",
    "findmnt",
    "groupadd",
    "groupdel",
    "groupmod",
    "ip",
    "journalctl",
    "modprobe",
    "mount",
    "passwd",
    "reboot",
    "rpm",
    "shutdown",
    "sleep",
    "swapoff",
    "sync",
    "systemctl",
    "systemd-analyze",
    "systemd-run",
    "umount",
    "useradd",
    "userdel",
    "usermod",
    "wget",
];

/// systemctl prints a block for each unit; all others print nothing and succeed.
const PLAY: &str = r#"#!/bin/sh
printf '%s\0' "$#" "${0##*/}" "$@" >>"$RECORD"
[ "${0##*/} $1" = "systemctl show" ] || exit 0
while [ $# -gt 0 ] && [ "$1" != -- ]; do shift; done
while [ $# -gt 1 ]; do
    printf 'Id=%s\nLoadState=loaded\nActiveState=inactive\nSubState=dead\nUnitFileState=disabled\nNeedDaemonReload=no\n\n' x
    shift
done
"#;

/// Directories of the machine, which are moved below the root of the host.
const PLACES: [&str; 10] =
    ["/etc/", "/var/", "/usr/", "/proc/", "/sys/", "/run/", "/lib/", "/home/", "/root/", "/boot/"];

/// The user `nobody`, so that a faulty program cannot change the machine.
const NOBODY: u32 = 65534;

pub struct Host {
    directory: tempfile::TempDir,
}

/// The output of a program.
pub struct Left(pub Output);

impl Left {
    /// Whether the apply program ran to its end.
    pub fn ended(&self) -> bool {
        String::from_utf8_lossy(&self.0.stdout)
            .lines()
            .any(|line| line == format!("metalform-{:032x} end", 7))
    }

    /// The number of the task that failed.
    pub fn failed(&self) -> Option<usize> {
        let mark = format!("metalform-{:032x} fail ", 7);
        let out = String::from_utf8_lossy(&self.0.stdout).into_owned();
        out.lines().find_map(|line| line.strip_prefix(&mark)?.split(' ').next()?.parse().ok())
    }

    pub fn said(&self) -> String {
        use base64::Engine as _;
        let out = String::from_utf8_lossy(&self.0.stdout).into_owned();
        let last = out.split_whitespace().next_back().unwrap_or_default();
        let decoded = base64::prelude::BASE64_STANDARD.decode(last).unwrap_or_default();
        format!("{out}\n{}\n{}", String::from_utf8_lossy(&decoded), String::from_utf8_lossy(&self.0.stderr))
    }
}

/// Whether a shell is installed.
pub fn there(shell: &str) -> bool {
    let program = shell.split(' ').next().unwrap();
    std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .any(|directory| directory.join(program).exists())
}

impl Host {
    pub fn new() -> Self {
        let host = Self { directory: tempfile::tempdir().unwrap() };
        for directory in [
            "bin",
            "cwd",
            "files",
            "tmp",
            "root/etc/apt",
            "root/var/lib/dpkg/updates",
            "root/proc/sys/net",
            "root/usr/sbin",
        ] {
            fs::create_dir_all(host.path(directory)).unwrap();
        }
        let executable = |name: &str, text: &str| {
            fs::write(host.path("bin").join(name), text).unwrap();
            fs::set_permissions(host.path("bin").join(name), fs::Permissions::from_mode(0o755)).unwrap();
        };
        PLAYED.iter().for_each(|name| executable(name, PLAY));
        // Answers contain the paths of the machine again.
        let base64 = format!(
            "#!/bin/sh\ncase \"$*\" in *d*) exec /usr/bin/base64 \"$@\" ;; esac\nsed 's#{}/#/#g' | /usr/bin/base64 \"$@\"\n",
            host.path("root").display()
        );
        executable("base64", &base64);
        fs::create_dir_all(host.path("root/proc/sys/kernel/random")).unwrap();
        fs::write(host.path("root/proc/sys/kernel/random/boot_id"), "5d9a0c1e-boot\n").unwrap();
        for name in ["hosts", "fstab", "shadow"] {
            fs::write(host.path("root/etc").join(name), "").unwrap();
        }
        fs::write(host.path("root/etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n").unwrap();
        fs::write(host.path("root/etc/group"), "root:x:0:\n").unwrap();
        fs::create_dir_all(host.path("root/proc/self")).unwrap();
        fs::write(host.path("root/proc/self/mountinfo"), "1 0 0:1 / / rw - ext4 /dev/a rw\n").unwrap();
        let uid = match rustix::process::geteuid() {
            root if root.is_root() => NOBODY,
            other => other.as_raw(),
        };
        let status = format!("Name:\tsh\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nGid:\t0\t0\t0\t0\n");
        fs::write(host.path("root/proc/self/status"), status).unwrap();
        (0..400)
            .for_each(|number| fs::write(host.path(&format!("root/proc/sys/net/v{number}")), "0\n").unwrap());
        fs::write(host.path("record"), "").unwrap();
        fs::set_permissions(host.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        if rustix::process::geteuid().is_root() {
            host.all().iter().for_each(|path| chown(path, Some(NOBODY), Some(NOBODY)).unwrap());
        }
        host
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.directory.path().join(relative)
    }

    /// For names that are paths.
    pub fn files(&self) -> PathBuf {
        self.path("files")
    }

    /// Runs a program as a host does, as the user `nobody` where the test runs as root.
    pub fn run(&self, shell: &str, program: &Program) -> Left {
        let script = self.path("script");
        fs::write(&script, self.relocated(&program.script)).unwrap();
        let drop_rights = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"];
        let rights = if rustix::process::geteuid().is_root() { &drop_rights[..] } else { &[] };
        let mut words = rights.iter().copied().chain(["timeout", "60"]).chain(shell.split(' '));
        let path = std::env::join_paths(
            std::iter::once(self.path("bin"))
                .chain(std::env::split_paths("/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")),
        );
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .args(["-c", "eval \"$(cat \"$0\")\""])
            .arg(&script)
            .current_dir(self.path("cwd"))
            .env_clear()
            .env("PATH", path.unwrap())
            .env("RECORD", self.path("record"))
            .env("TMPDIR", self.path("tmp"))
            .env("HOME", self.path("cwd"));
        let output = feed(&mut command, &program.payload);
        Left(Output {
            status: output.status.code().unwrap_or(-1),
            stdout: output.stdout,
            stderr: output.stderr,
        })
    }

    fn relocated(&self, script: &str) -> String {
        let root = self.path("root").display().to_string();
        let mut text = String::new();
        let mut before = ' ';
        for (at, c) in script.char_indices() {
            let begins = c == '/' && !(before.is_ascii_alphanumeric() || "/._-".contains(before));
            if begins && PLACES.iter().any(|place| script[at..].starts_with(place)) {
                text.push_str(&root);
            }
            text.push(c);
            before = c;
        }
        text
    }

    /// No word was split, no other command ran, and no file was created elsewhere.
    pub fn expect_harmless(&self, text: &str, said: &str) {
        for call in self.calls() {
            assert!(call[0] != "canary", "canary was run\n{said}");
            let torn: Vec<&String> =
                call.iter().filter(|word| word.contains(MARK) && !word.contains(text)).collect();
            assert!(torn.is_empty(), "{call:?}\n{said}");
        }
        fs::write(self.path("record"), "").unwrap();
        assert_eq!(
            fs::read_dir(self.path("cwd")).unwrap().count(),
            0,
            "something was made where it ran\n{said}"
        );
        for path in self.all() {
            let name = path.file_name().unwrap();
            let marked = name.as_bytes().windows(MARK.len()).any(|window| window == MARK.as_bytes());
            let whole = name.to_str().is_some_and(|name| name.contains(text));
            assert!(!marked || whole, "{path:?}\n{said}");
        }
    }

    /// The arguments of every recorded command, its name first.
    fn calls(&self) -> Vec<Vec<String>> {
        let record = fs::read(self.path("record")).unwrap();
        let mut words =
            record.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        let mut calls = Vec::new();
        while let Some(count) = words.next().and_then(|count| count.parse::<usize>().ok()) {
            calls.push(words.by_ref().take(count + 1).collect());
        }
        calls
    }

    /// Every path of the host.
    fn all(&self) -> BTreeSet<PathBuf> {
        fn walk(path: &Path, all: &mut BTreeSet<PathBuf>) {
            all.insert(path.to_owned());
            if path.symlink_metadata().unwrap().is_dir() {
                fs::read_dir(path).unwrap().for_each(|entry| walk(&entry.unwrap().path(), all));
            }
        }
        let mut all = BTreeSet::new();
        walk(self.directory.path(), &mut all);
        all
    }
}
