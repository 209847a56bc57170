//! The table of all kinds.

use crate::resource::fields::field::FieldSpec;
use crate::resource::kinds::archive;
use crate::resource::kinds::authorized_key;
use crate::resource::kinds::binary;
use crate::resource::kinds::certificate;
use crate::resource::kinds::command;
use crate::resource::kinds::directory;
use crate::resource::kinds::file;
use crate::resource::kinds::group;
use crate::resource::kinds::host_entry;
use crate::resource::kinds::image;
use crate::resource::kinds::kmod;
use crate::resource::kinds::kubeconfig;
use crate::resource::kinds::line;
use crate::resource::kinds::mount;
use crate::resource::kinds::package;
use crate::resource::kinds::package_repository;
use crate::resource::kinds::reboot;
use crate::resource::kinds::route;
use crate::resource::kinds::service;
use crate::resource::kinds::static_pod;
use crate::resource::kinds::swap;
use crate::resource::kinds::symlink;
use crate::resource::kinds::sysctl;
use crate::resource::kinds::unit;
use crate::resource::kinds::user;
use crate::resource::kinds::wait;

/// A kind, for the check of state files and for the reference page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindSpec {
    /// As it is written in a state file.
    pub name: &'static str,
    /// One sentence; says what the name of a resource of this kind is.
    pub about: &'static str,
    /// What it may be told beside its name and the shared keys.
    pub fields: &'static [FieldSpec],
}

const KINDS: &[KindSpec] = &[
    KindSpec {
        name: "archive",
        about: "A directory, by its path, that a downloaded tar archive was unpacked to.",
        fields: archive::FIELDS,
    },
    KindSpec {
        name: "authorized_key",
        about: "A public key that lets a user in by SSH; its name is a sentence.",
        fields: authorized_key::FIELDS,
    },
    KindSpec { name: "binary", about: "A downloaded program, by its path.", fields: binary::FIELDS },
    KindSpec {
        name: "certificate",
        about: "A certificate, by its path, and the private key beside it.",
        fields: certificate::FIELDS,
    },
    KindSpec {
        name: "command",
        about: "A guarded shell command; its name is a sentence.",
        fields: command::FIELDS,
    },
    KindSpec { name: "directory", about: "A directory, by its path.", fields: directory::FIELDS },
    KindSpec { name: "file", about: "A regular file, by its path.", fields: file::FIELDS },
    KindSpec { name: "group", about: "A group of the host, by its name.", fields: group::FIELDS },
    KindSpec {
        name: "host_entry",
        about: "Names of an address in /etc/hosts, by the address.",
        fields: host_entry::FIELDS,
    },
    KindSpec {
        name: "image",
        about: "A container image, by its full reference, in containerd.",
        fields: image::FIELDS,
    },
    KindSpec {
        name: "kmod",
        about: "A kernel module, by its name, live and persisted.",
        fields: kmod::FIELDS,
    },
    KindSpec {
        name: "kubeconfig",
        about: "A kubeconfig file, by its path, and the client certificate that it names.",
        fields: kubeconfig::FIELDS,
    },
    KindSpec {
        name: "line",
        about: "One line of a text file that others own too; its name is a sentence.",
        fields: line::FIELDS,
    },
    KindSpec {
        name: "mount",
        about: "A file system, by its mount point, in /etc/fstab and mounted.",
        fields: mount::FIELDS,
    },
    KindSpec {
        name: "package",
        about: "A package of the distribution, by its name.",
        fields: package::FIELDS,
    },
    KindSpec {
        name: "package_repository",
        about: "A signed repository of packages, for apt or dnf, by the stem of its file name.",
        fields: package_repository::FIELDS,
    },
    KindSpec {
        name: "reboot",
        about: "A reboot when it is needed; what follows runs once the host is back. Its name is a sentence.",
        fields: reboot::FIELDS,
    },
    KindSpec {
        name: "route",
        about: "A live route of the main table, by its destination in CIDR form.",
        fields: route::FIELDS,
    },
    KindSpec { name: "service", about: "A systemd service, by its unit.", fields: service::FIELDS },
    KindSpec {
        name: "static_pod",
        about: "A manifest in the kubelet's directory, by the pod's name.",
        fields: static_pod::FIELDS,
    },
    KindSpec { name: "swap", about: "No swap; its name is off.", fields: swap::FIELDS },
    KindSpec { name: "symlink", about: "A symbolic link, by its path.", fields: symlink::FIELDS },
    KindSpec {
        name: "sysctl",
        about: "A kernel parameter, by its dotted key, live and persisted.",
        fields: sysctl::FIELDS,
    },
    KindSpec { name: "template", about: "A file made from a template, by its path.", fields: file::FIELDS },
    KindSpec {
        name: "unit",
        about: "A systemd unit file in /etc/systemd/system, by the unit's whole name.",
        fields: unit::FIELDS,
    },
    KindSpec { name: "user", about: "A user of the host, by its name.", fields: user::FIELDS },
    KindSpec {
        name: "wait",
        about: "A barrier: what follows runs once a port, a URL or a path answers; its name is a sentence.",
        fields: wait::FIELDS,
    },
];

/// All kinds, by name.
pub fn kinds() -> &'static [KindSpec] {
    KINDS
}

/// The fields of a kind; `None` when there is no such kind.
pub fn fields(kind: &str) -> Option<&'static [FieldSpec]> {
    spec(kind).map(|spec| spec.fields)
}

pub(in crate::resource) fn spec(kind: &str) -> Option<&'static KindSpec> {
    KINDS.iter().find(|spec| spec.name == kind)
}
