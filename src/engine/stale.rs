//! The probes whose answers steps can change: they must be observed again.
//!
//! # Guarantees
//! An answer that is kept is the one that the host would return again, unless something other than the steps changes the
//! host. Where the reach of a step is unknown (a command, a package's scripts, a service that starts, a wait),
//! everything is observed again; guards always are, since they may read anything.

use std::collections::BTreeSet;

use super::Item;
use crate::resource::contract::probe::Probe;
use crate::resource::contract::step::{Step, UnitVerb};

/// The probes whose answers `steps` may change, and all probes of the resources in `changed`, which are to be verified.
/// Pure.
pub(super) fn probes<'a>(
    steps: impl IntoIterator<Item = &'a Step>,
    changed: &BTreeSet<&str>,
    items: &[Item],
) -> BTreeSet<Probe> {
    let mut reach = Reach::default();
    steps.into_iter().for_each(|step| reach.add(step));
    let reach = &reach;
    items
        .iter()
        .flat_map(|item| {
            let proves = changed.contains(item.id.as_str());
            item.probes.iter().filter(move |probe| proves || reach.may_change(probe))
        })
        .cloned()
        .collect()
}

/// How far the effects of steps go.
#[derive(Debug, Default)]
struct Reach<'a> {
    everything: bool,
    units: bool,
    packages: bool,
    kernel: bool,
    modules: bool,
    swap: bool,
    accounts: bool,
    keys: bool,
    images: bool,
    routes: bool,
    /// The last components of the paths of steps.
    names: BTreeSet<&'a str>,
    /// All components of these paths.
    parts: BTreeSet<&'a str>,
}

impl<'a> Reach<'a> {
    fn add(&mut self, step: &'a Step) {
        match step {
            Step::WriteFile { path, .. }
            | Step::EditFile { path, .. }
            | Step::MakeDirectory { path, .. }
            | Step::SetAccess { path, .. }
            | Step::Symlink { path, .. }
            | Step::Remove { path, .. }
            | Step::Download { path, .. }
            | Step::Unpack { path, .. } => self.path(path),
            Step::IssueCertificate(request) => {
                self.path(&request.certificate);
                self.path(&request.key);
            }
            Step::ReloadUnitFiles | Step::ReloadUnit(_) => self.units = true,
            Step::Unit {
                verb: UnitVerb::Enable | UnitVerb::Disable | UnitVerb::Mask | UnitVerb::Unmask,
                name,
            } => {
                self.units = true;
                self.path(name);
            }
            Step::HoldPackage { .. } => self.packages = true,
            // Some parameters set others, or add and remove routes.
            Step::SetSysctl { .. } => (self.kernel, self.routes) = (true, true),
            // A module has parameters, and loads others that it requires.
            Step::LoadModule(_) => (self.modules, self.kernel) = (true, true),
            // systemd has a unit for each swap.
            Step::SwapOff => (self.swap, self.units) = (true, true),
            Step::PullImage(_) => self.images = true,
            Step::ReplaceRoute { .. } => self.routes = true,
            Step::RefreshPackageIndex | Step::VerifyUnit { .. } => {}
            Step::SetPassword { .. } => self.accounts = true,
            Step::WriteAuthorizedKeys { .. } => {
                self.keys = true;
                self.path("/.ssh/authorized_keys");
            }
            Step::InstallPackages(_)
            | Step::RemovePackages(_)
            | Step::Unit {
                verb: UnitVerb::Start | UnitVerb::Stop | UnitVerb::Restart | UnitVerb::ReloadOrRestart,
                ..
            }
            | Step::Await { .. }
            // Owners' names of files change, homes appear and disappear; a mount hides what was there.
            | Step::Account { .. }
            | Step::Mount { .. }
            | Step::Reboot { .. }
            | Step::Run { .. } => self.everything = true,
        }
    }

    fn path(&mut self, path: &'a str) {
        self.names.extend(parts(path).next_back());
        self.parts.extend(parts(path));
        self.units |= path.contains("/systemd/");
        self.packages |= ["/dpkg/", "/rpm/", "/dnf/"].iter().any(|place| path.contains(place));
        self.kernel |= path.starts_with("/proc/");
        self.accounts |= ["/etc/passwd", "/etc/group", "/etc/shadow"].contains(&path);
        // Only the host knows where homes are: any path may be in one.
        self.keys = true;
    }

    fn may_change(&self, probe: &Probe) -> bool {
        self.everything
            || match probe {
                Probe::Path { path, .. } | Probe::Content { path } | Probe::Empty { path } => {
                    self.may_change_path(path)
                }
                Probe::KeyPair { key, certificate } => {
                    self.may_change_path(key) || self.may_change_path(certificate)
                }
                Probe::Written { files, packages } => {
                    self.packages && !packages.is_empty()
                        || files.iter().any(|path| self.may_change_path(path))
                }
                // Only what starts or stops a program changes it.
                Probe::Listener { .. } => false,
                Probe::Package { .. } => self.packages,
                Probe::Unit { .. } => self.units,
                Probe::Sysctl { .. } => self.kernel,
                Probe::Module { .. } => self.modules,
                Probe::Swap => self.swap,
                Probe::Image { .. } => self.images,
                Probe::Route { .. } => self.routes,
                Probe::User { .. } | Probe::Group { .. } | Probe::Password { .. } => self.accounts,
                Probe::AuthorizedKeys { .. } => self.keys || self.accounts,
                Probe::Mount { .. } => false,
                // Only a change of the reaction itself ends it.
                Probe::Owed(_) => false,
                Probe::Guard { .. } | Probe::Condition(_) => true,
            }
    }

    /// A step at a path reaches what is below it (it may have become a link, or be gone), and what is above
    /// (directories are made on the way). A directory may be reached under two names (`/lib` and
    /// `/usr/lib`), so what is called alike may be the same.
    fn may_change_path(&self, path: &str) -> bool {
        parts(path).any(|part| self.names.contains(part))
            || parts(path).next_back().is_some_and(|name| self.parts.contains(name))
    }
}

fn parts(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::contract::host_condition::HostCondition;
    use crate::resource::contract::remote_file::RemoteFile;
    use crate::resource::contract::step::{Access, AccountTool, MountVerb, PackageVersion};

    fn asked() -> Vec<Probe> {
        let path = |path: &str| Probe::Path { path: path.into(), unless_sha256: None };
        vec![
            path("/etc/a"),
            path("/etc/a/conf.d/x"),
            path("/etc/b"),
            path("/usr/lib/systemd/system/u.service"),
            Probe::Content { path: "/etc/c".into() },
            Probe::Content { path: "/opt/unpacked/.metalform-archive".into() },
            Probe::Empty { path: "/opt/unpacked".into() },
            Probe::Package { name: "p".into() },
            Probe::Unit { name: "u.service".into() },
            Probe::Written { files: vec!["/etc/c".into()], packages: vec!["p".into()] },
            Probe::Listener { port: 22 },
            Probe::Sysctl { key: "net.ipv4.ip_forward".into() },
            Probe::Module { name: "overlay".into() },
            Probe::Swap,
            Probe::Image { reference: "pause".into() },
            Probe::KeyPair { key: "/etc/a/k".into(), certificate: "/pki/z".into() },
            Probe::Route { destination: "10.0.0.0/8".into() },
            Probe::User { name: "a".into(), uid: None },
            Probe::AuthorizedKeys { user: "a".into() },
            Probe::Mount { point: "/srv".into(), source: None },
        ]
    }

    fn again(step: &Step) -> String {
        let guard = Probe::Guard { script: "true".into() };
        let item = Item { id: "x:y".into(), probes: asked().into_iter().chain([guard.clone()]).collect() };
        let mut again = probes([step], &BTreeSet::new(), &[item]);
        assert!(again.remove(&guard), "a guard may read anything: {step:?}");
        if again.len() == asked().len() {
            return "everything".into();
        }
        again.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_step_makes_stale_what_it_can_reach() {
        let access = || Access { owner: "root".into(), group: "root".into(), mode: 0o644 };
        let write = |path: &str| Step::WriteFile {
            path: path.into(),
            content: Vec::new(),
            access: access(),
            sensitive: false,
        };
        let download = || RemoteFile { url: "http://a".into(), sha256: String::new(), ca: None };
        let unit = |verb| Step::Unit { name: "u.service".into(), verb };
        let package = PackageVersion { name: "p".into(), version: None, hold: false };
        for (step, expected) in [
            (write("/etc/c"), "content /etc/c, last writing of /etc/c, p, authorized keys of a"),
            (write("/etc/new"), "authorized keys of a"),
            (write("/etc/passwd"), "user a, authorized keys of a"),
            (write("/etc/a/conf.d/x"), "path /etc/a, path /etc/a/conf.d/x, authorized keys of a"),
            (
                Step::Symlink { path: "/etc/a".into(), target: "/b".into() },
                "path /etc/a, path /etc/a/conf.d/x, key pair /etc/a/k and /pki/z, authorized keys of a",
            ),
            (
                Step::Remove { path: "/pki".into(), recursive: true },
                "key pair /etc/a/k and /pki/z, authorized keys of a",
            ),
            (
                Step::MakeDirectory { path: "/etc/b".into(), access: access() },
                "path /etc/b, authorized keys of a",
            ),
            (
                write("/lib/systemd/system/u.service"),
                "path /usr/lib/systemd/system/u.service, unit u.service, authorized keys of a",
            ),
            (
                write("/etc/dnf/plugins/versionlock.list"),
                "package p, last writing of /etc/c, p, authorized keys of a",
            ),
            (Step::ReloadUnitFiles, "unit u.service"),
            (
                unit(UnitVerb::Enable),
                "path /usr/lib/systemd/system/u.service, unit u.service, authorized keys of a",
            ),
            (unit(UnitVerb::Start), "everything"),
            (Step::Run { script: "true".into() }, "everything"),
            (Step::InstallPackages(vec![package]), "everything"),
            (Step::RefreshPackageIndex, ""),
            (Step::HoldPackage { name: "p".into(), hold: true }, "package p, last writing of /etc/c, p"),
            (
                Step::SetSysctl { key: "net.ipv4.conf.all.forwarding".into(), value: "1".into() },
                "sysctl net.ipv4.ip_forward, route 10.0.0.0/8",
            ),
            (Step::LoadModule("overlay".into()), "sysctl net.ipv4.ip_forward, module overlay"),
            (
                Step::Download { from: download(), path: "/etc/b".into(), access: access() },
                "path /etc/b, authorized keys of a",
            ),
            (
                Step::Unpack {
                    from: download(),
                    path: "/opt/unpacked".into(),
                    strip: 0,
                    marker: String::new(),
                    access: access(),
                },
                "content /opt/unpacked/.metalform-archive, whether /opt/unpacked is empty, authorized keys of a",
            ),
            (Step::Reboot { boot_id: "1".into(), seconds: 1 }, "everything"),
            (Step::Await { condition: HostCondition::File { path: "/a".into() }, seconds: 1 }, "everything"),
            (Step::VerifyUnit { name: "u.service".into(), files: Vec::new(), sensitive: false }, ""),
            (Step::SwapOff, "unit u.service, swap"),
            (Step::PullImage("pause".into()), "image pause"),
            (Step::Account { tool: AccountTool::AddGroup, arguments: vec!["a".into()] }, "everything"),
            (Step::SetPassword { user: "a".into(), hash: "$".into() }, "user a, authorized keys of a"),
            (
                Step::WriteAuthorizedKeys { user: "a".into(), found: None, content: Vec::new() },
                "authorized keys of a",
            ),
            (Step::Mount { point: "/srv".into(), verb: MountVerb::Mount }, "everything"),
        ] {
            assert_eq!(again(&step), expected, "{step:?}");
        }
    }

    #[test]
    fn what_was_changed_is_always_asked_again() {
        let item = |id: &str, probe| Item { id: id.into(), probes: vec![probe] };
        let items = [item("image:a", Probe::Swap), item("image:b", Probe::Module { name: "m".into() })];
        let again = probes([&Step::RefreshPackageIndex], &BTreeSet::from(["image:a"]), &items);
        assert_eq!(again, BTreeSet::from([Probe::Swap]));
    }
}
