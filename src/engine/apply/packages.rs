//! Package managers, and their shell commands.

use crate::model::facts::Facts;
use crate::model::platform::PackageFormat;
use crate::model::shell_word::{quote, quote_all};
use crate::resource::contract::step::PackageVersion;

/// A package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackageManager {
    /// Of the Debian family.
    Apt,
    /// Of the Red Hat family.
    Dnf,
}

impl PackageManager {
    /// The package manager of a host. Without facts there is no package among its resources, and any will do.
    pub fn of_host(facts: Option<&Facts>) -> Self {
        match facts.and_then(|facts| PackageFormat::of(&facts.os)) {
            Some(PackageFormat::Rpm) => Self::Dnf,
            Some(PackageFormat::Deb) | None => Self::Apt,
        }
    }

    /// The shell functions of the commands.
    pub(super) fn functions(self) -> &'static str {
        match self {
            Self::Apt => include_str!("apt.sh"),
            Self::Dnf => include_str!("dnf.sh"),
        }
    }

    /// Commands that install all of `packages` in one transaction, then set and release holds. dnf does not
    /// install what is locked to another version, so there all locks are released before.
    pub(super) fn install(self, packages: &[PackageVersion]) -> Vec<String> {
        let exact: Vec<String> = packages.iter().map(|package| self.exactly(package)).collect();
        let names = |hold: bool| -> Vec<&str> {
            packages
                .iter()
                .filter(|package| package.hold == hold)
                .map(|package| package.name.as_str())
                .collect()
        };
        let install = ("install_packages", exact.iter().map(String::as_str).collect());
        let (hold, release) = (("hold_packages", names(true)), ("release_packages", names(false)));
        let all = packages.iter().map(|package| package.name.as_str()).collect();
        let calls = match self {
            Self::Apt => [install, hold, release],
            Self::Dnf => [("release_packages", all), install, hold],
        };
        let call = |(function, words): (&str, Vec<&str>)| {
            (!words.is_empty()).then(|| format!("{function} {}", quote_all(words)))
        };
        calls.into_iter().filter_map(call).collect()
    }

    /// The command that sets or releases one hold.
    pub(super) fn hold(name: &str, hold: bool) -> String {
        format!("{} {}", if hold { "hold_packages" } else { "release_packages" }, quote(name))
    }

    fn exactly(self, package: &PackageVersion) -> String {
        match (self, &package.version) {
            (_, None) => package.name.clone(),
            (Self::Apt, Some(version)) => format!("{}={version}", package.name),
            (Self::Dnf, Some(version)) => format!("{}-{version}", package.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::engine::shells::{run, shells};
    use crate::transport::Program;

    #[test]
    fn dnf_runs_without_the_plugin_that_adds_sources() {
        let plugin = "--disableplugin=subscription-manager ";
        for (files, expected) in [
            (&[] as &[&str], ""),
            (&["subscription-manager.conf"], plugin),
            (&["subscription-manager.conf", "dnf5"], ""),
        ] {
            let host = tempfile::tempdir().unwrap();
            let at = host.path().display();
            for file in files {
                std::fs::write(host.path().join(file), "").unwrap();
            }
            std::fs::write(host.path().join("dnf"), "#!/bin/sh\necho \"$*\"\n").unwrap();
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(host.path().join("dnf"), mode).unwrap();
            let functions = PackageManager::Dnf.functions();
            let functions = functions.replace("/etc/dnf/plugins", &at.to_string());
            let functions = functions.replace("/usr/bin", &at.to_string());
            let script = format!("PATH={at}:$PATH\n{functions}\nrefresh_index\n");
            for shell in shells() {
                let output = run(shell, &Program { script: script.clone(), payload: Vec::new() });
                let printed = String::from_utf8(output.stdout).unwrap();
                let start = format!("-q -y {expected}--setopt=");
                assert!(printed.starts_with(&start), "{shell}: {files:?}: {printed}");
            }
        }
    }

    #[test]
    fn one_transaction_then_holds() {
        let package = |name: &str, version: Option<&str>, hold| PackageVersion {
            name: name.to_owned(),
            version: version.map(str::to_owned),
            hold,
        };
        let packages = [package("kubelet", Some("1.35.4-1"), true), package("socat", None, false)];
        assert_eq!(
            PackageManager::Apt.install(&packages),
            ["install_packages 'kubelet=1.35.4-1' socat", "hold_packages kubelet", "release_packages socat"]
        );
        assert_eq!(
            PackageManager::Dnf.install(&packages),
            [
                "release_packages kubelet socat",
                "install_packages kubelet-1.35.4-1 socat",
                "hold_packages kubelet"
            ]
        );
    }
}
