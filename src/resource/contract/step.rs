//! The closed list of what may be done to a host. A step carries every value it needs: whoever executes
//! it has no choice left to make.

use crate::resource::contract::condition::Condition;
use crate::resource::contract::download::Download;

/// One mutation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
pub enum Step {
    /// Write beside, sync, rename; owner and mode are right from the first instant. Parent directories are
    /// made when missing (0755 root).
    WriteFile {
        /// Absolute path.
        path: String,
        /// Whole content.
        content: Vec<u8>,
        /// Owner, group and mode.
        access: Access,
        /// Whether the content must never be shown.
        sensitive: bool,
    },
    /// Write a file that others own too, as [`Step::WriteFile`] does, but only if it is still what it was when
    /// the new content was made of it. It keeps its owner, mode and attributes.
    EditFile {
        /// Absolute path; not of a link.
        path: String,
        /// SHA-256 of what it was, lowercase hex; `None` where there was nothing.
        found: Option<String>,
        /// Whole new content.
        content: Vec<u8>,
        /// Owner, group and mode where there was nothing.
        access: Access,
        /// Whether the content must never be shown.
        sensitive: bool,
    },
    /// Write `~/.ssh/authorized_keys` of a user (0600, its directory 0700) as [`Step::EditFile`] does, with the
    /// rights of that user alone.
    WriteAuthorizedKeys {
        /// The user's name.
        user: String,
        /// SHA-256 of what it was, lowercase hex; `None` where there was nothing.
        found: Option<String>,
        /// Whole new content.
        content: Vec<u8>,
    },
    /// Make a directory and its parents, with this access.
    MakeDirectory {
        /// Absolute path.
        path: String,
        /// Owner, group and mode.
        access: Access,
    },
    /// Change owner, group and mode of what exists.
    SetAccess {
        /// Absolute path.
        path: String,
        /// Owner, group and mode.
        access: Access,
    },
    /// Make or replace a symbolic link, atomically.
    Symlink {
        /// Absolute path of the link.
        path: String,
        /// What it points to.
        target: String,
    },
    /// Remove a file, link or (empty or whole, as `recursive` says) directory.
    Remove {
        /// Absolute path.
        path: String,
        /// Whether a directory goes with all that is in it.
        recursive: bool,
    },
    /// Fetch a file beside its place, check its digest, sync, rename.
    Download {
        /// Where from.
        from: Download,
        /// Absolute path.
        path: String,
        /// Owner, group and mode.
        access: Access,
    },
    /// Fetch a tar archive, check its digest, unpack it beside the directory, and exchange the two. A
    /// directory that has content and no marker is left alone.
    Unpack {
        /// Where from.
        from: Download,
        /// Absolute path of the directory.
        path: String,
        /// Leading directories that are taken off the names.
        strip: u32,
        /// Content of the file in it that says what it was unpacked from.
        marker: String,
        /// Owner and group of everything, mode of the directory itself.
        access: Access,
    },
    /// Go on when a condition holds.
    Await {
        /// What for.
        condition: Condition,
        /// How long at most.
        seconds: u32,
    },
    /// Reboot, and go on when the host is back. Ends a segment of the apply program.
    Reboot {
        /// The boot id before: another one says that it is back.
        boot_id: String,
        /// Within which it must be back.
        seconds: u32,
    },
    /// Refresh the package index from the configured repositories.
    RefreshPackageIndex,
    /// Install or change to exactly these versions, in one transaction, and set holds.
    InstallPackages(Vec<PackageVersion>),
    /// Remove packages (configuration included) in one transaction.
    RemovePackages(Vec<String>),
    /// Set or release a hold.
    HoldPackage {
        /// Its name.
        name: String,
        /// Hold, or release.
        hold: bool,
    },
    /// Ask systemd about unit files that are not installed yet, and fail if there is something in one of
    /// them that it would ignore or refuse. Nothing is asked where systemd-analyze is missing.
    VerifyUnit {
        /// The one that must be good.
        name: String,
        /// What to ask about now, the one or several at once; none when an earlier step has asked.
        files: Vec<UnitFile>,
        /// Whether what systemd says must never be shown.
        sensitive: bool,
    },
    /// `systemctl daemon-reload`.
    ReloadUnitFiles,
    /// One systemctl verb for one unit.
    Unit {
        /// With its suffix.
        name: String,
        /// What to do.
        verb: UnitVerb,
    },
    /// Set a kernel parameter live.
    SetSysctl {
        /// Dotted key.
        key: String,
        /// Value as sysctl(8) takes it.
        value: String,
    },
    /// Load a kernel module.
    LoadModule(String),
    /// `swapoff --all`.
    SwapOff,
    /// Pull an image into containerd's `k8s.io` namespace, from the configured mirrors.
    PullImage(String),
    /// Make a private key on the host if it is missing (it never leaves it), ask for a certificate, and
    /// write what the authority answered. Ends a segment of the apply program: the request travels back
    /// before the steps after it run.
    IssueCertificate(CertificateRequest),
    /// Add or replace a route of the main table.
    ReplaceRoute {
        /// In CIDR form.
        destination: String,
        /// `dev eth0`, `via 10.0.0.1`.
        via: String,
    },
    /// Add, change or delete a user or group.
    Account {
        /// The command.
        tool: AccountTool,
        /// Its arguments, the name last.
        arguments: Vec<String>,
    },
    /// Set the hash of a user's password, which no argument list may hold.
    SetPassword {
        /// The user's name.
        user: String,
        /// As shadow(5) has it.
        hash: String,
    },
    /// Mount, remount or unmount, by what `/etc/fstab` says.
    Mount {
        /// Absolute path.
        point: String,
        /// What to do.
        verb: MountVerb,
    },
    /// Run a shell command; its guard was already asked.
    Run {
        /// Text for `sh -c`.
        script: String,
    },
}

/// A unit file to be.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
pub struct UnitFile {
    /// With its suffix.
    pub name: String,
    /// Whole text.
    pub text: String,
}

/// Owner, group and permission bits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Access {
    /// User name.
    pub owner: String,
    /// Group name.
    pub group: String,
    /// 0 to 0o7777.
    pub mode: u32,
}

/// A package and the version to bring it to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct PackageVersion {
    /// Its name.
    pub name: String,
    /// Exact version; `None` is whatever the repository offers.
    pub version: Option<String>,
    /// Whether to hold it afterwards.
    pub hold: bool,
}

/// Commands for users and groups (useradd(8) and its like).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub enum AccountTool {
    /// `useradd`.
    AddUser,
    /// `usermod`.
    ChangeUser,
    /// `userdel`.
    DeleteUser,
    /// `groupadd`.
    AddGroup,
    /// `groupdel`; a group that went with its user is gone already.
    DeleteGroup,
}

/// What to do at a mount point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub enum MountVerb {
    /// Mount what fstab(5) says.
    Mount,
    /// Apply the options that fstab(5) says.
    Remount,
    /// Unmount; says who holds it when it is busy.
    Unmount,
}

/// systemctl verbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub enum UnitVerb {
    /// Enable at boot.
    Enable,
    /// Do not start at boot.
    Disable,
    /// Start.
    Start,
    /// Stop.
    Stop,
    /// Stop and start, or start.
    Restart,
    /// Reload, or restart where it cannot.
    ReloadOrRestart,
    /// Make it impossible to start.
    Mask,
    /// Undo a mask.
    Unmask,
}

/// What a certificate must say. The key is made on the host (ECDSA P-256, 0600).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct CertificateRequest {
    /// Where the certificate goes (PEM).
    pub certificate: String,
    /// Where the private key lies (PEM).
    pub key: String,
    /// The authority's name: `kubernetes`, `etcd`, `front-proxy`.
    pub authority: String,
    /// Subject common name.
    pub common_name: String,
    /// Subject organizations, which Kubernetes reads as groups.
    pub organizations: Vec<String>,
    /// Subject alternative names: IP addresses and DNS names.
    pub names: Vec<String>,
    /// Extended key usages.
    pub usages: Vec<KeyUsage>,
    /// Owner, group and mode of the certificate; the key has the same owner and group, and 0600.
    pub access: Access,
    /// Days of validity.
    pub days: u32,
}

/// Extended key usages (RFC 5280 section 4.2.1.12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyUsage {
    /// `serverAuth`.
    Server,
    /// `clientAuth`.
    Client,
}
