//! The packages of the operating system, upgraded once before a host is deployed (`distUpgradeOnBoot`).

use serde_json::json;

use super::Job;
use super::fault::JobFault;
use crate::model::platform::PackageFormat;
use crate::resource::contract::kind::Kind;

/// From the package sources of the host itself: those of the cluster are set up by the deployment. What a power cut has
/// interrupted is completed first: apt refuses until then. `check` waits for another process that is at work on it.
const APT: &str = "export DEBIAN_FRONTEND=noninteractive
if test -n \"$(ls -A /var/lib/dpkg/updates)\"; then
    apt-get -q -o DPkg::Lock::Timeout=120 check || true
    dpkg --force-confdef --force-confold --configure -a
fi
apt-get -q update
apt-get -q -y -o DPkg::Lock::Timeout=120 -o Dpkg::Options::=--force-confdef \
    -o Dpkg::Options::=--force-confold dist-upgrade
";
/// dnf-utils may be missing: then a newer kernel than the one that runs requires the reboot.
const DNF: &str = "dnf -q -y upgrade
if command -v needs-restarting >/dev/null; then
    needs-restarting -r >/dev/null || touch /run/reboot-required
elif test \"$(rpm -q --last kernel-core | awk 'NR == 1 { sub(/^kernel-core-/, \"\", $1); print $1 }')\" != \"$(uname -r)\"; then
    touch /run/reboot-required
fi
";

impl Job<'_> {
    /// Reboots where the packages require it, and waits until the host has another boot id. Under one token packages are
    /// upgraded once; the reboot is made up for.
    pub(super) async fn upgrade_packages(&self) -> Result<(), JobFault> {
        let facts = self.ports(&self.spec).host.facts().await?;
        let upgrade = match PackageFormat::of(&facts.os) {
            Some(PackageFormat::Rpm) => DNF,
            _ => APT,
        };
        let marker = format!("/var/lib/metalform/upgraded-{}", self.order.fence.token);
        let run = format!("set -e\n{upgrade}mkdir -p /var/lib/metalform\ntouch {marker}\n");
        let resources = vec![
            (Kind::Command, "upgrade packages".to_owned(), json!({ "run": run, "creates": marker })),
            (Kind::Reboot, "for upgraded packages".to_owned(), json!({})),
        ];
        self.converge("upgrade of packages", resources).await
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::engine::shells::{run, shells};
    use crate::transport::Program;

    #[test]
    fn an_interrupted_transaction_is_completed_first() {
        for shell in shells() {
            let host = tempfile::tempdir().unwrap();
            let root = host.path().display();
            fs::create_dir(host.path().join("updates")).unwrap();
            fs::write(host.path().join("updates/0001"), "").unwrap();
            let called =
                format!("#!/bin/sh\nfor last; do :; done\necho \"${{0##*/}} $last\" >>{root}/called\n");
            let refuses = "case $last in check | dist-upgrade) exit 100 ;; esac";
            for (program, does) in [
                ("apt-get", format!("test ! -e {root}/updates/0001 || {refuses}\n")),
                ("dpkg", format!("rm {root}/updates/0001\n")),
            ] {
                let path = host.path().join(program);
                fs::write(&path, format!("{called}{does}")).unwrap();
                fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
            }
            let script = APT.replace("/var/lib/dpkg/updates", &format!("{root}/updates"));
            let program =
                Program { script: format!("set -e\nPATH={root}:$PATH\n{script}"), payload: Vec::new() };
            for expected in [
                "apt-get check\ndpkg -a\napt-get update\napt-get dist-upgrade\n",
                "apt-get update\napt-get dist-upgrade\n",
            ] {
                assert_eq!(run(shell, &program).status, 0, "{shell}");
                assert_eq!(fs::read_to_string(host.path().join("called")).unwrap(), expected, "{shell}");
                fs::remove_file(host.path().join("called")).unwrap();
            }
        }
    }
}
