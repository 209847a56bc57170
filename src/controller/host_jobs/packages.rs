//! The packages of the operating system, upgraded once before a host is deployed (`distUpgradeOnBoot`).

use serde_json::json;

use super::Job;
use super::fault::JobFault;
use crate::model::platform::PackageFormat;
use crate::resource::contract::kind::Kind;

/// From the package sources of the host itself: those of the cluster are set up by the deployment.
const APT: &str = "export DEBIAN_FRONTEND=noninteractive
apt-get -q update
apt-get -q -y -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold dist-upgrade
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
