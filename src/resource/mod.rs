//! Resource kinds: what one thing on a host should be, what to ask to know what it is, and the change
//! between the two. Pure: nothing here touches a host.
//!
//! Each kind is a file with its fields, its probes and its `diff`. The set is closed: [`Resource`] is an
//! enum, so a new kind does not compile until every question about it is answered.

pub mod contract;
pub mod fields;
pub mod kinds;
pub(crate) mod text;

use serde_json::{Map, Value};

use self::contract::change::Verdict;
use self::contract::context::Context;
use self::contract::ensure::Ensure;
use self::contract::probe::{Observed, Probe};
use self::fields::given::{FieldError, Given};
use self::kinds::{
    archive, authorized_key, binary, certificate, command, directory, file, group, host_entry, image, kmod,
    kubeconfig, line, mount, package, package_repository, reboot, route, service, static_pod, swap, symlink,
    sysctl, unit, user, wait,
};
use crate::model::near::Near;
use crate::resource::fields::kind;

pub use self::fields::kind::{KindSpec, fields, kinds};

/// One thing on a host, as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// `archive`.
    Archive(archive::Archive),
    /// `authorized_key`.
    AuthorizedKey(authorized_key::AuthorizedKey),
    /// `binary`.
    Binary(binary::Binary),
    /// `certificate`.
    Certificate(certificate::Certificate),
    /// `command`.
    Command(command::Command),
    /// `directory`.
    Directory(directory::Directory),
    /// `file` and `template`.
    File(file::File),
    /// `group`.
    Group(group::Group),
    /// `host_entry`.
    HostEntry(host_entry::HostEntry),
    /// `image`.
    Image(image::Image),
    /// `kmod`.
    Kmod(kmod::Kmod),
    /// `kubeconfig`.
    Kubeconfig(kubeconfig::Kubeconfig),
    /// `line`.
    Line(line::Line),
    /// `mount`.
    Mount(mount::Mount),
    /// `package`.
    Package(package::Package),
    /// `package_repository`.
    PackageRepository(package_repository::PackageRepository),
    /// `reboot`.
    Reboot(reboot::Reboot),
    /// `route`.
    Route(route::Route),
    /// `service`.
    Service(service::Service),
    /// `static_pod`.
    StaticPod(static_pod::StaticPod),
    /// `swap`.
    Swap(swap::Swap),
    /// `symlink`.
    Symlink(symlink::Symlink),
    /// `sysctl`.
    Sysctl(sysctl::Sysctl),
    /// `unit`.
    Unit(unit::Unit),
    /// `user`.
    User(user::User),
    /// `wait`.
    Wait(wait::Wait),
}

impl Resource {
    /// Makes a resource of its rendered fields. The shared keys of the state language are not among them,
    /// but for `only_if_changed` of a `command`, which is one of its guards.
    ///
    /// # Errors
    /// An unknown kind, or the first field or name that the kind does not take.
    pub fn parse(
        kind: &str,
        name: &str,
        fields: Map<String, Value>,
        ensure: Ensure,
        sensitive: bool,
    ) -> Result<Self, FieldError> {
        let unknown = || FieldError::UnknownKind {
            kind: kind.to_owned(),
            near: Near::to(kind, kinds().iter().map(|spec| spec.name)),
        };
        let spec = kind::spec(kind).ok_or_else(unknown)?;
        if name.is_empty() || name.contains('\0') {
            let reason = "a name has text, and no NUL character";
            return Err(FieldError::Name { kind: spec.name, name: name.to_owned(), reason });
        }
        let given = Given::check(spec.name, spec.fields, fields, ensure, sensitive)?;
        Ok(match spec.name {
            "archive" => Self::Archive(archive::Archive::parse(name, &given)?),
            "authorized_key" => Self::AuthorizedKey(authorized_key::AuthorizedKey::parse(&given)?),
            "binary" => Self::Binary(binary::Binary::parse(name, &given)?),
            "certificate" => Self::Certificate(certificate::Certificate::parse(name, &given)?),
            "command" => Self::Command(command::Command::parse(&given)?),
            "directory" => Self::Directory(directory::Directory::parse(name, &given)?),
            "file" | "template" => Self::File(file::File::parse(spec.name, name, &given)?),
            "group" => Self::Group(group::Group::parse(name, &given)?),
            "host_entry" => Self::HostEntry(host_entry::HostEntry::parse(name, &given)?),
            "image" => Self::Image(image::Image::parse(name, &given)?),
            "kmod" => Self::Kmod(kmod::Kmod::parse(name, &given)?),
            "kubeconfig" => Self::Kubeconfig(kubeconfig::Kubeconfig::parse(name, &given)?),
            "line" => Self::Line(line::Line::parse(&given)?),
            "mount" => Self::Mount(mount::Mount::parse(name, &given)?),
            "package" => Self::Package(package::Package::parse(name, &given)?),
            "package_repository" => {
                Self::PackageRepository(package_repository::PackageRepository::parse(name, &given)?)
            }
            "reboot" => Self::Reboot(reboot::Reboot::parse(&given)?),
            "route" => Self::Route(route::Route::parse(name, &given)?),
            "service" => Self::Service(service::Service::parse(name, &given)?),
            "static_pod" => Self::StaticPod(static_pod::StaticPod::parse(name, &given)?),
            "swap" => Self::Swap(swap::Swap::parse(name, &given)?),
            "symlink" => Self::Symlink(symlink::Symlink::parse(name, &given)?),
            "sysctl" => Self::Sysctl(sysctl::Sysctl::parse(name, &given)?),
            "unit" => Self::Unit(unit::Unit::parse(name, &given)?),
            "user" => Self::User(user::User::parse(name, &given)?),
            "wait" => Self::Wait(wait::Wait::parse(&given)?),
            _ => return Err(unknown()),
        })
    }

    /// What to ask the host before [`Self::diff`].
    pub fn probes(&self) -> Vec<Probe> {
        match self {
            Self::Archive(archive) => archive.probes(),
            Self::AuthorizedKey(authorized_key) => authorized_key.probes(),
            Self::Binary(binary) => binary.probes(),
            Self::Certificate(certificate) => certificate.probes(),
            Self::Command(command) => command.probes(),
            Self::Directory(directory) => directory.probes(),
            Self::File(file) => file.probes(),
            Self::Group(group) => group.probes(),
            Self::HostEntry(host_entry) => host_entry.probes(),
            Self::Image(image) => image.probes(),
            Self::Kmod(kmod) => kmod.probes(),
            Self::Kubeconfig(kubeconfig) => kubeconfig.probes(),
            Self::Line(line) => line.probes(),
            Self::Mount(mount) => mount.probes(),
            Self::Package(package) => package.probes(),
            Self::PackageRepository(package_repository) => package_repository.probes(),
            Self::Reboot(reboot) => reboot.probes(),
            Self::Route(route) => route.probes(),
            Self::Service(service) => service.probes(),
            Self::StaticPod(static_pod) => static_pod.probes(),
            Self::Swap(swap) => swap.probes(),
            Self::Symlink(symlink) => symlink.probes(),
            Self::Sysctl(sysctl) => sysctl.probes(),
            Self::Unit(unit) => unit.probes(),
            Self::User(user) => user.probes(),
            Self::Wait(wait) => wait.probes(),
        }
    }

    /// What must be done so that the host has it. Of the answers it reads exactly those to
    /// [`Self::probes`]; where one of them is missing or failed, it refuses.
    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Verdict {
        let verdict = match self {
            Self::Archive(archive) => archive.diff(observed, context),
            Self::AuthorizedKey(authorized_key) => authorized_key.diff(observed, context),
            Self::Binary(binary) => binary.diff(observed, context),
            Self::Certificate(certificate) => certificate.diff(observed, context),
            Self::Command(command) => command.diff(observed, context),
            Self::Directory(directory) => directory.diff(observed, context),
            Self::File(file) => file.diff(observed, context),
            Self::Group(group) => group.diff(observed, context),
            Self::HostEntry(host_entry) => host_entry.diff(observed, context),
            Self::Image(image) => image.diff(observed),
            Self::Kmod(kmod) => kmod.diff(observed, context),
            Self::Kubeconfig(kubeconfig) => kubeconfig.diff(observed, context),
            Self::Line(line) => line.diff(observed, context),
            Self::Mount(mount) => mount.diff(observed, context),
            Self::Package(package) => package.diff(observed),
            Self::PackageRepository(package_repository) => package_repository.diff(observed, context),
            Self::Reboot(reboot) => reboot.diff(observed, context),
            Self::Route(route) => route.diff(observed),
            Self::Service(service) => service.diff(observed, context),
            Self::StaticPod(static_pod) => static_pod.diff(observed, context),
            Self::Swap(swap) => swap.diff(observed, context),
            Self::Symlink(symlink) => symlink.diff(observed, context),
            Self::Sysctl(sysctl) => sysctl.diff(observed, context),
            Self::Unit(unit) => unit.diff(observed, context),
            Self::User(user) => user.diff(observed, context),
            Self::Wait(wait) => wait.diff(observed, context),
        };
        verdict.unwrap_or_else(|refusal| Verdict::Refuse { reason: refusal.to_string() })
    }

    /// The file that it edits, when its text must never be shown: not by other resources that edit it either.
    pub fn secret_file(&self) -> Option<&str> {
        let file = match self {
            Self::HostEntry(host_entry) => Some(host_entry.file()),
            Self::Kmod(kmod) => kmod.file(),
            Self::Line(line) => Some(line.file()),
            Self::Mount(mount) => Some(mount.file()),
            Self::Sysctl(sysctl) => sysctl.file(),
            _ => None,
        };
        file.filter(|file| file.sensitive).map(|file| file.path.as_str())
    }
}
