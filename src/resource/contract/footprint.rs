//! What the name of a resource reveals of the files that it adds, changes and removes.

use crate::resource::contract::kind::Kind;

/// The files of a resource, as far as other resources must know them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Footprint {
    /// None that another resource depends on.
    None,
    /// Any: what a command does is not known.
    Unknown,
    /// Any, units among them: what a package contains is not known.
    Package,
    /// The file at its name. In a directory of systemd it is a unit file or a drop-in.
    File,
    /// As `File`, but a link: its time of writing is not that of the content.
    Link,
    /// The file at its name, which is never a unit file.
    Artefact,
    /// The directory at its name, of which nothing else is known.
    Directory,
    /// The directory at its name, and what is unpacked there.
    Archive,
    /// `/etc/systemd/system/NAME`, which systemd has read when the resource is done.
    UnitFile,
}

impl Kind {
    pub(in crate::resource) fn footprint(self) -> Footprint {
        match self {
            Self::Archive => Footprint::Archive,
            Self::Binary | Self::Certificate | Self::Kubeconfig => Footprint::Artefact,
            Self::Command => Footprint::Unknown,
            Self::Directory => Footprint::Directory,
            Self::File | Self::Template => Footprint::File,
            Self::Package => Footprint::Package,
            Self::Symlink => Footprint::Link,
            Self::Unit => Footprint::UnitFile,
            Self::AuthorizedKey
            | Self::Group
            | Self::HostEntry
            | Self::Image
            | Self::Kmod
            | Self::Line
            | Self::Mount
            | Self::PackageRepository
            | Self::Reboot
            | Self::Route
            | Self::Service
            | Self::StaticPod
            | Self::Swap
            | Self::Sysctl
            | Self::User
            | Self::Wait => Footprint::None,
        }
    }
}
