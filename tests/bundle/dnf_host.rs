//! The engine on a host with dnf: the real one, in a copy of this machine's root whose changes are in memory.

use std::fs;
use std::path::Path;

use tokio::process::Command;

use super::TestRun;
use super::rpm_bundle::{KUBELET, PACKAGE, ROCKY, key, run, signatures};
use metalform::bundle::component_build::SourceMode;

/// Makes the root, and runs what follows as a host of the Red Hat family: without dpkg and apt, with
/// one package source of its own. `$1` is an empty directory; those at `$3` and `$4` are there too.
const HOST: &str = r#"
set -eu
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
for directory in /proc /sys /dev; do mount --rbind "$directory" "$1/root$directory"; done
for directory in "$3" "$4"; do mkdir -p "$1/root$directory"; mount --bind "$directory" "$1/root$directory"; done
rm -rf "$1/root/usr/bin/dpkg-query" "$1/root/usr/bin/apt-get" "$1/root/var/lib/rpm" "$1/root/etc/yum.repos.d" "$1/root/etc/pki/rpm-gpg"
mkdir "$1/root/etc/yum.repos.d"
# Debian's dnf keeps packages that it has seen as a repository of their own, for which there is no key.
printf '[main]\nenabled=0\n' >"$1/root/etc/dnf/plugins/local.conf"
printf 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.6"\n' >"$1/root/usr/lib/os-release"
printf '[baseos]\nname=baseos\nbaseurl=http://192.0.2.1/\n' >"$1/root/etc/yum.repos.d/baseos.repo"
exec chroot "$1/root" sh -euc "$2" sh
"#;

/// A command of every script: converges the host with the tree of this name.
const APPLY: &str = r#"
apply() { METALFORM apply --quiet --local --roster WORK/roster.yaml --on node-1 --tree "WORK/$1" host | sed 's/  [0-9.]* m\{0,1\}s$//'; }
"#;

/// `WORK`, `METALFORM` and `PACKAGE` are replaced. Each line that begins with `== ` is a step.
const STEPS: &str = r#"
kubelet() { rpm -q kubelet || true; grep -c '^kubelet-' /etc/dnf/plugins/versionlock.list || true; }
echo '== the repository becomes the only one, and a version is installed and held'
apply one; kubelet; ls /etc/yum.repos.d; test -x /usr/bin/kubelet
echo '== nothing is changed again'
apply one
echo '== what is held is not updated with the system'
dnf -q -y upgrade 2>/dev/null; kubelet
echo '== the next version'
apply two; kubelet
echo '== and back'
apply one; kubelet
echo '== a package that was altered is refused, and the hold stays'
printf x >>WORK/bundle/PACKAGE
METALFORM apply --quiet --local --roster WORK/roster.yaml --on node-1 --tree WORK/two host 2>&1 | grep -o -i 'checksum' | head -n 1
kubelet
echo '== without it all is as before'
apply none; kubelet; ls /etc/yum.repos.d /etc/pki/rpm-gpg
"#;

const EXPECTED: &str = "\
== the repository becomes the only one, and a version is installed and held
node-1: changed=2 unchanged=0
kubelet-1.35.4-1.x86_64
1
baseos.repo.metalform-disabled
metalform-rpm.repo
== nothing is changed again
node-1: changed=0 unchanged=2
== what is held is not updated with the system
kubelet-1.35.4-1.x86_64
1
== the next version
node-1: changed=1 unchanged=1
kubelet-1.35.5-1.x86_64
1
== and back
node-1: changed=1 unchanged=1
kubelet-1.35.4-1.x86_64
1
== a package that was altered is refused, and the hold stays
checksum
kubelet-1.35.4-1.x86_64
1
== without it all is as before
node-1: changed=2 unchanged=0
package kubelet is not installed
0
/etc/pki/rpm-gpg:

/etc/yum.repos.d:
baseos.repo
";

/// A tree with one state; `ensure` is that of both of its resources.
pub fn write_tree(at: &Path, uri: &str, (version, ensure): (&str, &str)) {
    let armor = key(1).public_armor().unwrap() + &key(3).public_armor().unwrap();
    let indented: String = armor.lines().map(|line| format!("      {line}\n")).collect();
    let package = format!("  - package: kubelet\n    ensure: {ensure}\n{version}");
    let repository = format!(
        "  - package_repository: metalform-rpm\n    ensure: {ensure}\n    format: rpm\n    uri: {uri}\n    \
         exclusive: true\n    key: |\n{indented}"
    );
    // What is absent is removed in the other order.
    let resources = if ensure == "absent" { [package, repository] } else { [repository, package] };
    fs::create_dir_all(at.join("states")).unwrap();
    fs::create_dir_all(at.join("templates")).unwrap();
    let text = format!("about: The kubelet from a bundle.\nresources:\n{}", resources.concat());
    fs::write(at.join("states/host.yaml"), text).unwrap();
    fs::write(at.join("states/top.yaml"), "node: { states: [host] }\n").unwrap();
}

/// The repository of a bundle with two versions of the kubelet, with a signed index and signed packages.
pub async fn repository(work: &Path) -> String {
    let bundle = TestRun { package_key: Some(key(3)), ..TestRun::of_systems(ROCKY).await };
    let next = KUBELET.replace("1.35.4", "1.35.5").replace("name: kubernetes\n", "name: next\n");
    let said = bundle.build(&format!("{KUBELET}{next}"), SourceMode::Release).await;
    assert!(said.contains("bundle written"), "{said}");
    for (path, signed) in signatures(&bundle, &key(1)) {
        fs::write(bundle.output().join(path), signed).unwrap();
    }
    let at = work.join("bundle");
    let (copied, said) = run(Command::new("cp").arg("-a").arg(bundle.output()).arg(&at)).await;
    assert!(copied, "{said}");
    format!("file://{}/rpm/rocky-9-amd64", at.display())
}

/// Whether [`on_host`] can run: in a user namespace, the files of this machine would be nobody's, and could not be removed
/// from the copy. `make test` runs as root.
pub fn can_be_host() -> bool {
    rustix::process::geteuid().is_root()
}

/// What the steps print on such a host, in which `WORK` is this directory.
pub async fn on_host(work: &Path, steps: &str) -> String {
    fs::create_dir(work.join("host")).unwrap();
    fs::write(work.join("roster.yaml"), "hosts: {node-1: }\n").unwrap();
    let metalform = Path::new(env!("CARGO_BIN_EXE_metalform"));
    let steps = [APPLY, steps].concat();
    let steps =
        steps.replace("WORK", work.to_str().unwrap()).replace("METALFORM", metalform.to_str().unwrap());
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-euc", HOST, "sh"]);
    command.arg(work.join("host")).arg(steps).args([work, metalform.parent().unwrap()]);
    run(&mut command).await.1
}

#[tokio::test]
async fn packages_of_a_host_with_dnf_are_those_of_the_state() {
    if !can_be_host() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let work = directory.path();
    let uri = repository(work).await;
    let held = |version: &str| format!("    version: {version}\n    hold: true\n");
    write_tree(&work.join("one"), &uri, (&held("1.35.4-1"), "present"));
    write_tree(&work.join("two"), &uri, (&held("1.35.5-1"), "present"));
    write_tree(&work.join("none"), &uri, ("", "absent"));

    let steps = STEPS.replace("PACKAGE", &PACKAGE.trim_start_matches('/').replace("1.35.4", "1.35.5"));
    assert_eq!(on_host(work, &steps).await, EXPECTED);
}
