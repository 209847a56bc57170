//! The closed list of mutations of a host. A step contains every value that it needs: executing it decides nothing.

use crate::resource::contract::host_condition::HostCondition;
use crate::resource::contract::remote_file::RemoteFile;

/// One mutation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
pub enum Step {
    /// Write a temporary file, sync, rename; owner and mode are right from the first instant. Missing parent
    /// directories are created (0755 root).
    WriteFile {
        /// Absolute path.
        path: String,
        /// Whole content.
        content: Vec<u8>,
        access: Access,
        /// Whether the content must never be shown.
        sensitive: bool,
    },
    /// Write a file that other programs edit too, as [`Step::WriteFile`] does, but only if it is unchanged since
    /// it was observed. It keeps its owner, mode and attributes.
    EditFile {
        /// Absolute path, not that of a link.
        path: String,
        /// SHA-256 of the observed content, lowercase hex; `None` where there was no file.
        found: Option<String>,
        /// Whole new content.
        content: Vec<u8>,
        /// Of a new file.
        access: Access,
        /// Whether the content must never be shown.
        sensitive: bool,
    },
    /// Write `~/.ssh/authorized_keys` of a user (0600, its directory 0700) as [`Step::EditFile`] does, with the
    /// permissions of that user.
    WriteAuthorizedKeys {
        /// Login name.
        user: String,
        /// SHA-256 of the observed content, lowercase hex; `None` where there was no file.
        found: Option<String>,
        /// Whole new content.
        content: Vec<u8>,
    },
    /// Create a directory and its parents, with this access.
    MakeDirectory {
        /// Absolute path.
        path: String,
        access: Access,
    },
    /// Change owner, group and mode.
    SetAccess {
        /// Absolute path.
        path: String,
        access: Access,
    },
    /// Create or replace a symbolic link, atomically.
    Symlink {
        /// Absolute path of the link.
        path: String,
        /// As stored in the link.
        target: String,
    },
    /// Remove a file, a link or a directory.
    Remove {
        /// Absolute path.
        path: String,
        /// Whether a directory is removed with its content; else it must be empty.
        recursive: bool,
    },
    /// Download to a temporary file, verify the digest, sync, rename.
    Download {
        from: RemoteFile,
        /// Absolute path.
        path: String,
        access: Access,
    },
    /// Download a tar archive, verify the digest, unpack it beside the directory, and exchange the two. Fails
    /// where the directory has content and no marker.
    Unpack {
        from: RemoteFile,
        /// Absolute path of the directory.
        path: String,
        /// How many leading directories are removed from the names.
        strip: u32,
        /// Content of the marker file, which identifies the archive.
        marker: String,
        /// Owner and group of everything, mode of the directory itself.
        access: Access,
    },
    /// Wait until a condition holds.
    Await {
        /// What is waited for.
        condition: HostCondition,
        /// Deadline.
        seconds: u32,
    },
    /// Reboot and wait until the host is back. Ends a segment of the apply program.
    Reboot {
        /// The current boot id; the host is back when it has another one.
        boot_id: String,
        /// Deadline.
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
        /// Of the package.
        name: String,
        /// Hold, or release.
        hold: bool,
    },
    /// Verify unit files that are not installed yet with systemd-analyze; fails where systemd would ignore or refuse
    /// part of one. Does nothing where systemd-analyze is not installed.
    VerifyUnit {
        /// The unit whose result decides.
        name: String,
        /// The files to verify now, one or several at once; empty where an earlier step has verified it.
        files: Vec<UnitFile>,
        /// Whether the output of systemd-analyze must never be shown.
        sensitive: bool,
    },
    /// `systemctl daemon-reload`.
    ReloadUnitFiles,
    /// The same, if systemd has read files of this unit, or of an instance of this template. It reads those of a unit that
    /// it does not know when it first needs the unit.
    ReloadUnit(String),
    /// One systemctl verb for one unit.
    Unit {
        /// With its suffix.
        name: String,
        /// Of systemctl.
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
    /// Pull an image into containerd's `k8s.io` namespace, from the configured mirrors. containerd verifies a digest.
    PullImage(String),
    /// Create a private key on the host if it is missing (it never leaves the host), send back a signing request,
    /// and write the certificate that the CA issues. Ends a segment of the apply program: the steps after it run
    /// once the certificate is issued.
    IssueCertificate(CertificateRequest),
    /// Add or replace a route of the main table.
    ReplaceRoute {
        /// In CIDR form.
        destination: String,
        /// As in ip-route(8): `dev eth0`, `via 10.0.0.1`.
        via: String,
    },
    /// Add, change or delete a user or group.
    Account {
        /// The command.
        tool: AccountTool,
        /// The name of the account is last.
        arguments: Vec<String>,
    },
    /// Set the hash of a user's password, which must not be in an argument list.
    SetPassword {
        /// Login name.
        user: String,
        /// As in shadow(5); `!` first where it is locked.
        hash: String,
    },
    /// Mount, remount or unmount, with the options in `/etc/fstab`.
    Mount {
        /// Absolute path.
        point: String,
        /// Of mount(8).
        verb: MountVerb,
    },
    /// Run a shell command whose guard holds.
    Run {
        /// For a shell of its own.
        script: String,
    },
}

impl Step {
    /// The files, links and directories that it creates, replaces or removes, as far as their paths are known
    /// beforehand.
    pub fn paths(&self) -> Vec<&str> {
        match self {
            Self::MakeDirectory { path, .. } | Self::SetAccess { path, .. } => vec![path],
            Self::IssueCertificate(request) => vec![&request.certificate, &request.key],
            other => other.content_path().into_iter().collect(),
        }
    }

    /// The path whose content it creates, replaces or removes.
    pub fn content_path(&self) -> Option<&str> {
        match self {
            Self::WriteFile { path, .. }
            | Self::EditFile { path, .. }
            | Self::Symlink { path, .. }
            | Self::Remove { path, .. }
            | Self::Download { path, .. }
            | Self::Unpack { path, .. } => Some(path),
            // The two that name files get theirs by user and by request, see `paths`.
            Self::WriteAuthorizedKeys { .. }
            | Self::IssueCertificate(_)
            | Self::MakeDirectory { .. }
            | Self::SetAccess { .. }
            | Self::Await { .. }
            | Self::Reboot { .. }
            | Self::RefreshPackageIndex
            | Self::InstallPackages(_)
            | Self::RemovePackages(_)
            | Self::HoldPackage { .. }
            | Self::VerifyUnit { .. }
            | Self::ReloadUnitFiles
            | Self::ReloadUnit(_)
            | Self::Unit { .. }
            | Self::SetSysctl { .. }
            | Self::LoadModule(_)
            | Self::SwapOff
            | Self::PullImage(_)
            | Self::ReplaceRoute { .. }
            | Self::Account { .. }
            | Self::SetPassword { .. }
            | Self::Mount { .. }
            | Self::Run { .. } => None,
        }
    }
}

/// A unit file that is not installed yet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, serde::Serialize)]
pub struct UnitFile {
    /// With its suffix.
    pub name: String,
    /// Whole content.
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

impl Access {
    /// Owned by root.
    pub fn root(mode: u32) -> Self {
        Self { owner: "root".to_owned(), group: "root".to_owned(), mode }
    }
}

/// A package and the version to install.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct PackageVersion {
    /// Of the package.
    pub name: String,
    /// Exact version; `None` is the newest in the repository.
    pub version: Option<String>,
    /// Whether it is held afterwards.
    pub hold: bool,
}

/// Commands that change users and groups.
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
    /// `groupdel`; a group that was removed with its user is no error.
    DeleteGroup,
}

/// An action at a mount point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub enum MountVerb {
    /// Mount the entry of fstab(5).
    Mount,
    /// Apply the options of the entry of fstab(5).
    Remount,
    /// Unmount; where it is busy, the error names the processes that use it.
    Unmount,
}

/// systemctl verbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub enum UnitVerb {
    /// `enable`.
    Enable,
    /// `disable`.
    Disable,
    /// `start`.
    Start,
    /// `stop`.
    Stop,
    /// `restart`.
    Restart,
    /// `reload-or-restart`.
    ReloadOrRestart,
    /// `mask`.
    Mask,
    /// `unmask`.
    Unmask,
}

/// The content of a certificate. The key is created on the host (ECDSA P-256, 0600).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct CertificateRequest {
    /// Path of the certificate (PEM).
    pub certificate: String,
    /// Path of the private key (PEM).
    pub key: String,
    /// Name of the CA: `kubernetes`, `etcd`, `front-proxy`.
    pub authority: String,
    /// Subject common name.
    pub common_name: String,
    /// Subject organizations, which Kubernetes reads as groups.
    pub organizations: Vec<String>,
    /// Subject alternative names: IP addresses and DNS names.
    pub names: Vec<String>,
    /// Extended key usages.
    pub usages: Vec<KeyUsage>,
    /// Of the certificate; the key has the same owner and group, and 0600.
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
