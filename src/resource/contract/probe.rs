//! Questions about a host, and their answers.
//!
//! All probes of a run are sent in one program and all answers return in one stream; the engine groups probes of
//! one kind, so that the number of processes barely depends on the number of probes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::resource::contract::host_condition::HostCondition;
use crate::resource::contract::owed::Owed;

/// One question. Ordered, so that a set of them always makes the same program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// What is at a path (links are not followed): its type, mode, owner, digest.
    Path {
        /// Absolute path.
        path: String,
        /// Where it is set and differs from the digest of a regular file, the answer contains the content (up to
        /// 1 MiB), so that a diff is shown without a second round trip.
        unless_sha256: Option<String>,
    },
    /// The whole content of a small public file, such as a certificate.
    Content {
        /// Absolute path.
        path: String,
    },
    /// Whether a directory is empty or missing.
    Empty {
        /// Absolute path.
        path: String,
    },
    /// Whether a distribution package is installed, in which version, and whether it is held.
    Package {
        /// As the package manager writes it.
        name: String,
    },
    /// The state of a systemd unit.
    Unit {
        /// With its suffix: `kubelet.service`.
        name: String,
    },
    /// When files were written last.
    Written {
        /// Absolute paths.
        files: Vec<String>,
        /// Packages, as dpkg names them: it writes a list of files when it unpacks one.
        packages: Vec<String>,
    },
    /// Whether something listens on a TCP port.
    Listener {
        /// Of any address.
        port: u16,
    },
    /// The live value of a kernel parameter.
    Sysctl {
        /// Dotted: `net.ipv4.ip_forward`.
        key: String,
    },
    /// Whether a kernel module is loaded or built in.
    Module {
        /// As in modprobe(8).
        name: String,
    },
    /// Whether any swap is active.
    Swap,
    /// Whether an image is in containerd's `k8s.io` namespace. With a digest: whether that very image is.
    Image {
        /// With registry, and tag or digest, not both.
        reference: String,
    },
    /// Whether a private key belongs to a certificate.
    KeyPair {
        /// Path of the private key.
        key: String,
        /// Path of the certificate.
        certificate: String,
    },
    /// A route of the main table, by its destination.
    Route {
        /// In CIDR form.
        destination: String,
    },
    /// Whether a condition holds. All conditions of a run are tested at once, for at most 3 seconds.
    Condition(HostCondition),
    /// A user, by name, and the user that already has the desired number.
    User {
        /// Login name.
        name: String,
        /// The desired number.
        uid: Option<u32>,
    },
    /// A group, by name, and the group that already has the desired number.
    Group {
        /// Of the group.
        name: String,
        /// The desired number.
        gid: Option<u32>,
    },
    /// Whether a user's password has this hash, and whether it is locked. Another hash never leaves the host.
    Password {
        /// Login name.
        user: String,
        /// As in crypt(5).
        hash: Option<String>,
    },
    /// The authorized SSH keys of a user, and the paths around them.
    AuthorizedKeys {
        /// Login name.
        user: String,
    },
    /// What is mounted at a point.
    Mount {
        /// Absolute path.
        point: String,
        /// What should be mounted there, as in fstab(5); the answer contains the device that it resolves to.
        source: Option<String>,
    },
    /// Whether an earlier run changed the cause, and the reaction has not succeeded since.
    Owed(Owed),
    /// The exit status of a guard, run by a shell.
    Guard {
        /// A shell script that changes nothing.
        script: String,
    },
}

impl Probe {
    /// [`Probe::Path`] without the content.
    pub fn path(path: &str) -> Self {
        Self::Path { path: path.to_owned(), unless_sha256: None }
    }
}

impl fmt::Display for Probe {
    /// `path /etc/hosts`, `unit kubelet.service`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { path, .. } => write!(f, "path {path}"),
            Self::Content { path } => write!(f, "content {path}"),
            Self::Empty { path } => write!(f, "whether {path} is empty"),
            Self::Package { name } => write!(f, "package {name}"),
            Self::Unit { name } => write!(f, "unit {name}"),
            Self::Written { files, packages } => {
                let names: Vec<&str> = files.iter().chain(packages).map(String::as_str).collect();
                write!(f, "last writing of {}", names.join(", "))
            }
            Self::Listener { port } => write!(f, "listener on port {port}"),
            Self::Sysctl { key } => write!(f, "sysctl {key}"),
            Self::Module { name } => write!(f, "module {name}"),
            Self::Swap => f.write_str("swap"),
            Self::Image { reference } => write!(f, "image {reference}"),
            Self::KeyPair { key, certificate } => write!(f, "key pair {key} and {certificate}"),
            Self::Route { destination } => write!(f, "route {destination}"),
            Self::Condition(condition) => write!(f, "whether {condition}"),
            Self::User { name, .. } => write!(f, "user {name}"),
            Self::Group { name, .. } => write!(f, "group {name}"),
            Self::Password { user, .. } => write!(f, "password of {user}"),
            Self::AuthorizedKeys { user } => write!(f, "authorized keys of {user}"),
            Self::Mount { point, .. } => write!(f, "mount {point}"),
            Self::Owed(owed) => write!(f, "whether {} has reacted to {}", owed.reaction, owed.cause),
            Self::Guard { script } => write!(f, "guard {script}"),
        }
    }
}

/// The answer to one probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To [`Probe::Path`].
    Path(PathState),
    /// To [`Probe::Content`]; `None` where the file does not exist.
    Content(Option<Vec<u8>>),
    /// To [`Probe::Empty`].
    Empty(bool),
    /// To [`Probe::Package`]; `None` where it is not installed.
    Package(Option<InstalledPackage>),
    /// To [`Probe::Unit`].
    Unit(UnitState),
    /// To [`Probe::Written`]: the newest time, in seconds since 1970. Times in the future, which result from a clock
    /// that was set back, do not count; `None` where there is no other.
    Written(Option<i64>),
    /// To [`Probe::Listener`].
    Listener(bool),
    /// To [`Probe::Sysctl`]; `None` where the kernel does not have the parameter.
    Sysctl(Option<String>),
    /// To [`Probe::Module`]: loaded or built in.
    Module(bool),
    /// To [`Probe::Swap`]: any active.
    Swap(bool),
    /// To [`Probe::Image`]: present.
    Image(bool),
    /// To [`Probe::KeyPair`]: both exist and have the same public key.
    KeyPair(bool),
    /// To [`Probe::Route`]: the rest of the line `ip route` prints for it, or `None`.
    Route(Option<String>),
    /// To [`Probe::Condition`]: one line that describes what was observed instead; `None` where it holds.
    Condition(Option<String>),
    /// To [`Probe::User`].
    User(UserState),
    /// To [`Probe::Group`].
    Group(GroupState),
    /// To [`Probe::Password`]; `None` where the user does not exist.
    Password(Option<PasswordState>),
    /// To [`Probe::AuthorizedKeys`]; `None` where the user does not exist.
    AuthorizedKeys(Option<KeysState>),
    /// To [`Probe::Mount`]; `None` where nothing is mounted.
    Mount(Option<MountState>),
    /// To [`Probe::Owed`].
    Owed(bool),
    /// To [`Probe::Guard`]: the exit status.
    Guard(i32),
    /// The probe failed (no permission, a read error): the message.
    Failed(String),
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathState {
    /// Nothing.
    Absent,
    /// A regular file.
    File {
        /// Permission bits, 0 to 0o7777.
        mode: u32,
        /// User name, or the number where it has none.
        owner: String,
        /// Group name, or the number where it has none.
        group: String,
        /// SHA-256 of its content, lowercase hex.
        sha256: String,
        /// Bytes.
        size: u64,
        /// Set only where the probe requests it and the digest differs, up to 1 MiB.
        content: Option<Vec<u8>>,
    },
    /// A directory.
    Directory {
        /// Permission bits.
        mode: u32,
        owner: String,
        group: String,
    },
    /// A symbolic link.
    Symlink {
        /// As stored in the link.
        target: String,
    },
    /// A device, socket or pipe.
    Other,
}

/// A package whose files are on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledPackage {
    /// Exact version as the package manager writes it.
    pub version: String,
    /// Whether upgrades are blocked (apt-mark hold, dnf versionlock).
    pub held: bool,
    /// Whether its installation was completed; dpkg may have been interrupted after it unpacked the package.
    pub configured: bool,
}

/// Properties of a unit (`systemctl show`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitState {
    /// `LoadState`: `loaded`, `not-found`, `masked`.
    pub load: String,
    /// `ActiveState`: `active`, `inactive`, `failed`, `activating`.
    pub active: String,
    /// `SubState`: `running`, `exited`, `dead`.
    pub sub: String,
    /// `UnitFileState`: `enabled`, `disabled`, `static`, or empty.
    pub unit_file: String,
    /// `NeedDaemonReload`.
    pub needs_daemon_reload: bool,
    /// `ActiveEnterTimestamp`, in seconds since 1970: its last start; `None` where it never started.
    pub started: Option<i64>,
    /// `StateChangeTimestamp`, likewise: its last start, stop or reload.
    pub changed: Option<i64>,
}

/// The answer about a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserState {
    /// `None` where the user does not exist.
    pub account: Option<Account>,
    /// Supplementary groups.
    pub groups: BTreeSet<String>,
    /// Another user that has the number of the probe.
    pub holder: Option<String>,
    /// Whether metalform is logged in as this user.
    pub is_login: bool,
}

/// A user's entry (passwd(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// User number.
    pub uid: u32,
    /// Primary group, by name, or by number where it has none.
    pub group: String,
    /// Absolute path.
    pub home: String,
    /// Absolute path.
    pub shell: String,
    /// The GECOS field.
    pub comment: String,
    /// Whether it is in /etc/passwd, and not in a directory service.
    pub local: bool,
}

/// The answer about a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupState {
    /// `None` where the group does not exist.
    pub group: Option<GroupEntry>,
    /// Another group that has the number of the probe.
    pub holder: Option<String>,
}

/// A group's entry (group(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupEntry {
    /// Group number.
    pub gid: u32,
    /// Users that have it as their primary group.
    pub primary_of: Vec<String>,
    /// Whether it is in /etc/group, and not in a directory service.
    pub local: bool,
}

/// What leaves the host of a password (shadow(5)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PasswordState {
    /// Whether it has the hash of the probe, locked or not.
    pub same: bool,
    /// Whether it is locked, or was never set.
    pub locked: bool,
    /// Whether it has any hash.
    pub has_hash: bool,
}

/// The paths around a user's keys. Links are not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeysState {
    /// Absolute path.
    pub home: String,
    /// Whether there is a directory at that path.
    pub home_exists: bool,
    /// `.ssh` in the home.
    pub directory: PathState,
    /// `.ssh/authorized_keys`, with its content up to 1 MiB.
    pub file: PathState,
}

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountState {
    /// As in /proc/self/mountinfo.
    pub source: String,
    /// The device that the source resolves to.
    pub device: String,
    /// The device that the source of the probe resolves to; `None` where it is not a device.
    pub expected_device: Option<String>,
    /// File system type.
    pub fs_type: String,
    /// Of the mount and of its file system; `ro` or `rw` among them.
    pub options: BTreeSet<String>,
}

/// All answers of one round trip.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed(pub BTreeMap<Probe, Answer>);

impl Observed {
    /// The answer to a probe; `None` where it was not among the questions.
    pub fn get(&self, probe: &Probe) -> Option<&Answer> {
        self.0.get(probe)
    }
}
