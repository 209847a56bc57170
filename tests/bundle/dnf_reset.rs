//! The packages of a host with dnf, when it is reset: what the node brought goes, what others have or need stays.

use std::fs;

use super::dnf_host::{can_be_host, on_host, repository, write_tree};

macro_rules! script {
    ($name:literal) => {
        include_str!(concat!("../../src/operation/cluster_site/", $name, ".sh"))
    };
}

macro_rules! brought {
    () => {
        concat!(script!("recorded"), script!("installed_packages"), script!("brought_packages"))
    };
}

/// The scripts that `reset-host` and `deploy-node` send, as functions.
fn functions() -> String {
    let functions = [
        ("record_host", concat!(script!("installed_packages"), script!("inventory"), script!("record_host"))),
        (
            "record_packages",
            concat!(script!("recorded"), script!("installed_packages"), script!("record_packages")),
        ),
        ("plan_removal", concat!(brought!(), script!("plan_removal"))),
        ("clear_packages", concat!(brought!(), script!("clear_packages"))),
    ];
    let functions = functions.map(|(name, script)| format!("{name}() (\n{script}\n)\n"));
    functions.concat()
}

/// `admin-tool` is of an administrator and needs `kubernetes-cni`, which came with the kubelet; `old-tool` was there
/// before.
const STEPS: &str = r#"
install() {
    name=$1; shift
    { printf 'Name: %s\nVersion: 1\nRelease: 1\nSummary: A tool\nLicense: MIT\nBuildArch: noarch\n' "$name"
      printf 'Requires: %s\n' "$@"; printf '%%description\nA tool.\n%%files\n'; } >"WORK/$name.spec"
    rpmbuild --quiet --define "_rpmdir WORK/rpms" -bb "WORK/$name.spec"
    rpm -i "WORK/rpms/noarch/$name-1-1.noarch.rpm" 2>&1 | undebian
}
# Debian's rpm recommends alien each time.
undebian() { grep -v '^rpm: ' || true; }
clear() { clear_packages | undebian; }
packages() { rpm -qa --qf '%{NAME}\n' | sort | xargs; }
removed() { plan_removal | sed -n '/^Remv/p' | xargs; }
before=/var/lib/metalform/before

echo '== before'
install old-tool 'rpmlib(PayloadIsXz)'
record_host
sed -n '/^package/p' $before/inventory
echo '== an administrator installs a tool between a deployment that failed and the next'
install new-tool 'rpmlib(PayloadIsXz)'
echo '== a node'
apply one
record_packages
sed 's/^\(gpg-pubkey\)-.*/\1/' $before/brought
packages
echo '== an administrator installs what needs packages of the node, and what needs that'
install admin-tool 'kubernetes-cni >= 1.0'
install admin-plugin '(kubernetes-cni if admin-tool)'
install admin-frontend admin-tool
packages='kubelet containerd'; removed
packages='kubelet kubernetes-cni'; removed
echo '== without the states'
apply none
packages
echo '== reset'
clear
packages
echo '== again, once nothing needs it'
rpm -e admin-tool admin-frontend admin-plugin 2>&1 | undebian
clear
packages
clear
"#;

const EXPECTED: &str = "\
== before
package	old-tool	install installed
== an administrator installs a tool between a deployment that failed and the next
== a node
node-1: changed=2 unchanged=0
gpg-pubkey
gpg-pubkey
kubelet
kubernetes-cni
new-tool
gpg-pubkey gpg-pubkey kubelet kubernetes-cni new-tool old-tool
== an administrator installs what needs packages of the node, and what needs that

Remv admin-plugin Remv admin-tool Remv admin-frontend
== without the states
node-1: changed=2 unchanged=0
admin-frontend admin-plugin admin-tool gpg-pubkey gpg-pubkey kubernetes-cni new-tool old-tool
== reset
admin-frontend admin-plugin admin-tool kubernetes-cni new-tool old-tool
== again, once nothing needs it
new-tool old-tool
";

#[tokio::test]
async fn what_dnf_brought_with_the_packages_of_a_node_goes() {
    if !can_be_host() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let work = directory.path();
    let uri = repository(work).await;
    write_tree(&work.join("one"), &uri, ("    version: 1.35.4-1\n    hold: true\n", "present"));
    write_tree(&work.join("none"), &uri, ("", "absent"));
    fs::create_dir(work.join("rpms")).unwrap();
    assert_eq!(on_host(work, &(functions() + STEPS)).await, EXPECTED);
}
