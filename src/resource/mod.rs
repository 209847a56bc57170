//! Resources: the desired state of one thing on a host, the probes that observe it, and the change between the two.
//! Pure: nothing here accesses a host.
//!
//! Rooms: `contract` is what every kind answers to, `fields` parses their fields, `text` manages and edits files, and
//! `kinds` has one file a kind. The set of kinds is closed: [`Kind`] and [`Resource`] are enums that are matched
//! without wildcards, so a new kind does not compile until every question about it is answered.

pub mod contract;
pub mod fields;
mod kinds;
pub(crate) mod text;

use serde_json::{Map, Value};

use self::contract::change::Verdict;
use self::contract::context::Context;
use self::contract::ensure::Ensure;
use self::contract::kind::Kind;
use self::contract::probe::{Observed, Probe};
use self::fields::field_error::FieldError;
use self::fields::field_values::FieldValues;
use self::kinds::{
    archive, authorized_key, binary, certificate, command, directory, file, group, host_entry, image, kmod,
    kubeconfig, line, mount, package, package_repository, reboot, route, service, static_pod, swap, symlink,
    sysctl, unit, user, wait,
};

pub use self::kinds::package_repository::other_package_sources;
pub use self::kinds::table::{KindSpec, fields, has_field, kinds};

/// The desired state of one thing on a host.
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
    /// Parses evaluated fields. The shared keys of the state language are not among them, except `only_if_changed` of
    /// the kinds that have a field of that name.
    ///
    /// # Errors
    /// The first field or name that the kind does not accept.
    pub fn parse(
        kind: Kind,
        name: &str,
        fields: Map<String, Value>,
        ensure: Ensure,
        sensitive: bool,
    ) -> Result<Self, FieldError> {
        let fields = FieldValues::check(kind, self::fields(kind), fields, ensure, sensitive)?;
        if name.is_empty() || name.contains('\0') {
            return Err(fields.invalid_name(name, "must not be empty or contain a NUL character"));
        }
        Ok(match kind {
            Kind::Archive => Self::Archive(archive::Archive::parse(name, &fields)?),
            Kind::AuthorizedKey => Self::AuthorizedKey(authorized_key::AuthorizedKey::parse(&fields)?),
            Kind::Binary => Self::Binary(binary::Binary::parse(name, &fields)?),
            Kind::Certificate => Self::Certificate(certificate::Certificate::parse(name, &fields)?),
            Kind::Command => Self::Command(command::Command::parse(&fields)?),
            Kind::Directory => Self::Directory(directory::Directory::parse(name, &fields)?),
            Kind::File | Kind::Template => Self::File(file::File::parse(name, &fields)?),
            Kind::Group => Self::Group(group::Group::parse(name, &fields)?),
            Kind::HostEntry => Self::HostEntry(host_entry::HostEntry::parse(name, &fields)?),
            Kind::Image => Self::Image(image::Image::parse(name, &fields)?),
            Kind::Kmod => Self::Kmod(kmod::Kmod::parse(name, &fields)?),
            Kind::Kubeconfig => Self::Kubeconfig(kubeconfig::Kubeconfig::parse(name, &fields)?),
            Kind::Line => Self::Line(line::Line::parse(&fields)?),
            Kind::Mount => Self::Mount(mount::Mount::parse(name, &fields)?),
            Kind::Package => Self::Package(package::Package::parse(name, &fields)?),
            Kind::PackageRepository => {
                Self::PackageRepository(package_repository::PackageRepository::parse(name, &fields)?)
            }
            Kind::Reboot => Self::Reboot(reboot::Reboot::parse(&fields)?),
            Kind::Route => Self::Route(route::Route::parse(name, &fields)?),
            Kind::Service => Self::Service(service::Service::parse(name, &fields)?),
            Kind::StaticPod => Self::StaticPod(static_pod::StaticPod::parse(name, &fields)?),
            Kind::Swap => Self::Swap(swap::Swap::parse(name, &fields)?),
            Kind::Symlink => Self::Symlink(symlink::Symlink::parse(name, &fields)?),
            Kind::Sysctl => Self::Sysctl(sysctl::Sysctl::parse(name, &fields)?),
            Kind::Unit => Self::Unit(unit::Unit::parse(name, &fields)?),
            Kind::User => Self::User(user::User::parse(name, &fields)?),
            Kind::Wait => Self::Wait(wait::Wait::parse(&fields)?),
        })
    }

    /// The questions whose answers [`Self::diff`] reads.
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

    /// Compares with the host. It reads exactly the answers to [`Self::probes`], and refuses where one is missing or
    /// failed.
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

    /// The resources that its own fields name as causes of a reaction, which a boot has the same effect as.
    pub fn causes_until_boot(&self) -> Vec<&contract::resource_id::ResourceId> {
        match self {
            Self::Service(service) => service.causes().collect(),
            Self::Reboot(reboot) => reboot.causes().iter().collect(),
            Self::Archive(_)
            | Self::AuthorizedKey(_)
            | Self::Binary(_)
            | Self::Certificate(_)
            | Self::Command(_)
            | Self::Directory(_)
            | Self::File(_)
            | Self::Group(_)
            | Self::HostEntry(_)
            | Self::Image(_)
            | Self::Kmod(_)
            | Self::Kubeconfig(_)
            | Self::Line(_)
            | Self::Mount(_)
            | Self::Package(_)
            | Self::PackageRepository(_)
            | Self::Route(_)
            | Self::StaticPod(_)
            | Self::Swap(_)
            | Self::Symlink(_)
            | Self::Sysctl(_)
            | Self::Unit(_)
            | Self::User(_)
            | Self::Wait(_) => Vec::new(),
        }
    }

    /// The file that it edits, where its content must never be shown, not by other resources that edit it either.
    pub fn secret_file(&self) -> Option<&str> {
        let file = match self {
            Self::HostEntry(host_entry) => Some(host_entry.file()),
            Self::Kmod(kmod) => kmod.file(),
            Self::Line(line) => Some(line.file()),
            Self::Mount(mount) => Some(mount.file()),
            Self::Sysctl(sysctl) => sysctl.file(),
            Self::Archive(_)
            | Self::AuthorizedKey(_)
            | Self::Binary(_)
            | Self::Certificate(_)
            | Self::Command(_)
            | Self::Directory(_)
            | Self::File(_)
            | Self::Group(_)
            | Self::Image(_)
            | Self::Kubeconfig(_)
            | Self::Package(_)
            | Self::PackageRepository(_)
            | Self::Reboot(_)
            | Self::Route(_)
            | Self::Service(_)
            | Self::StaticPod(_)
            | Self::Swap(_)
            | Self::Symlink(_)
            | Self::Unit(_)
            | Self::User(_)
            | Self::Wait(_) => None,
        };
        file.filter(|file| file.sensitive).map(|file| file.path.as_str())
    }
}
