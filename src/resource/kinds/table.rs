//! The table of kinds.

use crate::resource::contract::kind::Kind;
use crate::resource::fields::field_spec::FieldSpec;
use crate::resource::kinds::{
    archive, authorized_key, binary, certificate, command, directory, file, group, host_entry, image, kmod,
    kubeconfig, line, mount, package, package_repository, reboot, route, service, static_pod, swap, symlink,
    sysctl, unit, user, wait,
};

/// A kind, for the check of state files and for the reference page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindSpec {
    /// Its key in a state file.
    pub kind: Kind,
    /// One sentence, which describes the name of a resource too.
    pub about: &'static str,
    /// The fields besides its name and the shared keys.
    pub fields: &'static [FieldSpec],
}

static KINDS: [KindSpec; Kind::ALL.len()] = {
    let mut all = [spec(Kind::Archive); Kind::ALL.len()];
    let mut n = 0;
    while n < all.len() {
        all[n] = spec(Kind::ALL[n]);
        n += 1;
    }
    all
};

/// All kinds, by name.
pub fn kinds() -> &'static [KindSpec] {
    &KINDS
}

/// The fields of a kind.
pub fn fields(kind: Kind) -> &'static [FieldSpec] {
    spec(kind).fields
}

/// Whether a kind has the field.
pub fn has_field(kind: Kind, field: &str) -> bool {
    fields(kind).iter().any(|spec| spec.name == field)
}

const fn spec(kind: Kind) -> KindSpec {
    let (about, fields) = match kind {
        Kind::Archive => (
            "A directory, by its path, with the content of a tar archive that the host downloads.",
            archive::FIELDS,
        ),
        Kind::AuthorizedKey => (
            "A public key that authorizes SSH logins of a user; its name is a sentence.",
            authorized_key::FIELDS,
        ),
        Kind::Binary => ("A program that the host downloads, by its path.", binary::FIELDS),
        Kind::Certificate => ("A certificate, by its path, and its private key.", certificate::FIELDS),
        Kind::Command => ("A shell command with guards; its name is a sentence.", command::FIELDS),
        Kind::Directory => ("A directory, by its path.", directory::FIELDS),
        Kind::File => ("A regular file, by its path.", file::FIELDS),
        Kind::Group => ("A local group, by its name.", group::FIELDS),
        Kind::HostEntry => (
            "The names of an address in /etc/hosts, by the address, or the addresses of a name, by the name.",
            host_entry::FIELDS,
        ),
        Kind::Image => ("A container image in containerd, by its full reference.", image::FIELDS),
        Kind::Kmod => ("A kernel module, by its name, loaded now and at boot.", kmod::FIELDS),
        Kind::Kubeconfig => {
            ("A kubeconfig file, by its path, and its client certificate.", kubeconfig::FIELDS)
        }
        Kind::Line => {
            ("One line of a text file that other programs edit too; its name is a sentence.", line::FIELDS)
        }
        Kind::Mount => ("A file system, by its mount point, mounted now and at boot.", mount::FIELDS),
        Kind::Package => ("A package of the distribution, by its name.", package::FIELDS),
        Kind::PackageRepository => (
            "A signed package repository for apt or dnf, by the stem of its file name.",
            package_repository::FIELDS,
        ),
        Kind::Reboot => (
            "A reboot where one is required; later resources run once the host is back. Its name is a sentence.",
            reboot::FIELDS,
        ),
        Kind::Route => ("A live route of the main table, by its destination in CIDR form.", route::FIELDS),
        Kind::Service => ("A systemd service, by its unit.", service::FIELDS),
        Kind::StaticPod => {
            ("A manifest in the kubelet's directory, by the name of the pod.", static_pod::FIELDS)
        }
        Kind::Swap => ("No swap; its name is off.", swap::FIELDS),
        Kind::Symlink => ("A symbolic link, by its path.", symlink::FIELDS),
        Kind::Sysctl => ("A kernel parameter, by its dotted key, set now and at boot.", sysctl::FIELDS),
        Kind::Template => ("A regular file, by its path, rendered from a template.", file::FIELDS),
        Kind::Unit => {
            ("A systemd unit file in /etc/systemd/system, by the whole name of the unit.", unit::FIELDS)
        }
        Kind::User => ("A local user, by its name.", user::FIELDS),
        Kind::Wait => {
            ("Waits until a port, a URL or a path is available; its name is a sentence.", wait::FIELDS)
        }
    };
    KindSpec { kind, about, fields }
}
