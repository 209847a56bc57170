//! Questions about a host, and their answers.
//!
//! Every probe of a run travels in one program and every answer comes back in one stream; the engine
//! groups probes of one sort so that their number does not change the number of processes much.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::resource::contract::condition::Condition;

/// One question. Ordered, so that a set of them is always asked in the same order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Probe {
    /// What is at a path (links are not followed): its sort, mode, owner, digest.
    Path {
        /// Absolute path.
        path: String,
        /// When given, and a regular file is there whose digest differs, its content comes back too
        /// (up to 1 MiB), so that a diff can be shown without a second round trip.
        unless_sha256: Option<String>,
    },
    /// The whole content of a small public file (certificates; files that others own too).
    Content {
        /// Absolute path.
        path: String,
    },
    /// Whether a directory has nothing in it; so has one that is not there.
    Empty {
        /// Absolute path.
        path: String,
    },
    /// Whether a distribution package is installed, in which version, and whether it is held.
    Package {
        /// Its name.
        name: String,
    },
    /// What systemd knows of a unit.
    Unit {
        /// With its suffix: `kubelet.service`.
        name: String,
    },
    /// The live value of a kernel parameter.
    Sysctl {
        /// Dotted: `net.ipv4.ip_forward`.
        key: String,
    },
    /// Whether a kernel module is loaded or built in.
    Module {
        /// Its name.
        name: String,
    },
    /// Whether any swap is active.
    Swap,
    /// Whether an image is in containerd's `k8s.io` namespace.
    Image {
        /// Its full reference.
        reference: String,
    },
    /// Whether a private key and the certificate beside it belong together.
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
    /// Whether something holds that can be waited for. Looked at for 3 seconds at most, all at once.
    Condition(Condition),
    /// A user, by name, and who else has the number that it should have.
    User {
        /// Its name.
        name: String,
        /// The number.
        uid: Option<u32>,
    },
    /// A group, by name, and which other one has the number that it should have.
    Group {
        /// Its name.
        name: String,
        /// The number.
        gid: Option<u32>,
    },
    /// Whether a user's password has this hash, and whether it is locked. What it is instead stays on the host.
    Password {
        /// The user's name.
        user: String,
        /// As crypt(5) writes it.
        hash: Option<String>,
    },
    /// The keys that let a user in by SSH, and where they lie.
    AuthorizedKeys {
        /// The user's name.
        user: String,
    },
    /// What is mounted at a point.
    Mount {
        /// Absolute path.
        point: String,
        /// What should be mounted there, as in fstab(5): where its name leads is told too.
        source: Option<String>,
    },
    /// The exit status of a guard, run by `sh -c`.
    Guard {
        /// Shell text that changes nothing.
        script: String,
    },
}

impl fmt::Display for Probe {
    /// `path /etc/hosts`, `unit kubelet.service`: what is asked about, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path { path, .. } => write!(f, "path {path}"),
            Self::Content { path } => write!(f, "content {path}"),
            Self::Empty { path } => write!(f, "whether {path} is empty"),
            Self::Package { name } => write!(f, "package {name}"),
            Self::Unit { name } => write!(f, "unit {name}"),
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
            Self::Guard { script } => write!(f, "guard {script}"),
        }
    }
}

/// The answer to one probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To [`Probe::Path`].
    Path(PathState),
    /// To [`Probe::Content`]; `None` where there is no such file.
    Content(Option<Vec<u8>>),
    /// To [`Probe::Empty`].
    Empty(bool),
    /// To [`Probe::Package`]; `None` where it is not installed.
    Package(Option<InstalledPackage>),
    /// To [`Probe::Unit`].
    Unit(UnitState),
    /// To [`Probe::Sysctl`]; `None` where the kernel has no such parameter.
    Sysctl(Option<String>),
    /// To [`Probe::Module`]: loaded or built in.
    Module(bool),
    /// To [`Probe::Swap`]: any active.
    Swap(bool),
    /// To [`Probe::Image`]: present.
    Image(bool),
    /// To [`Probe::KeyPair`]: both exist and the public keys are the same.
    KeyPair(bool),
    /// To [`Probe::Route`]: the rest of the line `ip route` prints for it, or `None`.
    Route(Option<String>),
    /// To [`Probe::Condition`]: in one line what is seen instead; `None` where it holds.
    Condition(Option<String>),
    /// To [`Probe::User`].
    User(UserState),
    /// To [`Probe::Group`].
    Group(GroupState),
    /// To [`Probe::Password`]; `None` where there is no such user.
    Password(Option<PasswordState>),
    /// To [`Probe::AuthorizedKeys`]; `None` where there is no such user.
    AuthorizedKeys(Option<KeysState>),
    /// To [`Probe::Mount`]; `None` where nothing is mounted.
    Mount(Option<MountState>),
    /// To [`Probe::Guard`]: the exit status.
    Guard(i32),
    /// The probe could not be answered (no permission, a read error): what was said.
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
        /// Present only when asked for and different, and not larger than 1 MiB.
        content: Option<Vec<u8>>,
    },
    /// A directory.
    Directory {
        /// Permission bits.
        mode: u32,
        /// As with a file.
        owner: String,
        /// As with a file.
        group: String,
    },
    /// A symbolic link.
    Symlink {
        /// What it points to, as stored.
        target: String,
    },
    /// A device, socket or pipe.
    Other,
}

/// An installed package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledPackage {
    /// Exact version as the package manager writes it.
    pub version: String,
    /// Whether upgrades are blocked (apt-mark hold, dnf versionlock).
    pub held: bool,
}

/// What systemd knows of a unit (`systemctl show`).
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
}

/// What is known of a user.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserState {
    /// `None` where there is no such user.
    pub account: Option<Account>,
    /// The groups that list the user as a member: supplementary ones.
    pub groups: BTreeSet<String>,
    /// Another user who has the number that was asked about.
    pub holder: Option<String>,
    /// Whether it is who logged in for this run.
    pub is_login: bool,
}

/// A user's entry (passwd(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its number.
    pub uid: u32,
    /// Primary group, by name, or by number where it has none.
    pub group: String,
    /// Home directory.
    pub home: String,
    /// Login shell.
    pub shell: String,
    /// Full name or purpose.
    pub comment: String,
    /// Whether it is in the host's own files, and not in a directory service.
    pub local: bool,
}

/// What is known of a group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GroupState {
    /// `None` where there is no such group.
    pub group: Option<GroupEntry>,
    /// Another group that has the number that was asked about.
    pub holder: Option<String>,
}

/// A group's entry (group(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupEntry {
    /// Its number.
    pub gid: u32,
    /// Users whose primary group it is.
    pub primary_of: Vec<String>,
    /// Whether it is in the host's own files.
    pub local: bool,
}

/// What is told of a password (shadow(5)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PasswordState {
    /// Whether its hash is the one that was asked about, locked or not.
    pub same: bool,
    /// Whether it is locked, or was never set.
    pub locked: bool,
    /// Whether there is a hash at all.
    pub has_hash: bool,
}

/// Where a user's keys lie. Links are not followed, and of what they are only that is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeysState {
    /// Home directory.
    pub home: String,
    /// Whether it is there.
    pub home_exists: bool,
    /// `.ssh` in it.
    pub directory: PathState,
    /// `authorized_keys` in that, with its content up to 1 MiB.
    pub file: PathState,
}

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountState {
    /// As the kernel names it.
    pub source: String,
    /// The device that this name leads to.
    pub device: String,
    /// The device that the name which was asked about leads to; `None` where it is no device.
    pub wanted_device: Option<String>,
    /// File system type.
    pub sort: String,
    /// Options of the mount and of its file system; either `ro` or `rw`.
    pub options: BTreeSet<String>,
}

/// All answers of one round trip.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed(pub BTreeMap<Probe, Answer>);

impl Observed {
    /// The answer to a probe; `None` when it was never asked, which is a fault of the caller.
    pub fn get(&self, probe: &Probe) -> Option<&Answer> {
        self.0.get(probe)
    }
}
