"""A host with dnf, of a release that the bundle of a cluster in use has learnt: it is deployed, and leaves as it came."""

import hashlib
import os
import shutil
import subprocess
import tempfile

import echo_image
import rpm_archive
from checks import State, check, expect, expect_equal
from cluster import (
    BOOTSTRAP,
    CACHE,
    apply,
    forget,
    get,
    introduce,
    kubectl,
    lab,
    metalform,
    on,
    ready,
    shell,
    succeed,
)
from engine import HOST, METALFORM
from hand_over import bundle, copy_directory
from host_state import expect_same, host_state
from reports import Report, expect_unchanged

WORKER = "rocky-1"
_BUNDLE = "/srv/metalform/bundle"
# Of the states, with Enterprise Linux's names.
_PACKAGES = "bird conntrack-tools ethtool haproxy iproute iptables-nft kmod nftables openssl"
_PACKAGES += " python3-dnf-plugin-versionlock runc socat"
_LIST = """apiVersion: metalform.dev/v1alpha1
kind: ComponentList
architectures: [amd64]
operating_systems:
  - {{distribution: rocky, release: "9", suite: "file://{archive}/os", packages: [{packages}]}}
components: []
"""
# Keys of package archives are those that the machine has which builds the bundle.
_WITH_KEYS = """
mount -t tmpfs tmpfs "$1"
mkdir -p "$1/upper/pki/rpm-gpg" "$1/work"
cp "$2"/* "$1/upper/pki/rpm-gpg"
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$1/upper,workdir=$1/work" /etc
shift 2
exec "$@"
"""
_HELD = ["containerd", "kube-proxy", "kubectl", "kubelet", "kubernetes-cni"]
_POD = "rpm-host"
_state = State()


def set_up():
    # Of a system that no other host has: made here, which may take longer than a host may take to come up.
    lab("image", timeout=900)
    introduce(WORKER)
    _state["before"] = host_state(WORKER)


def tear_down():
    kubectl("delete", "pod", _POD, "--ignore-not-found", "--now")
    forget(WORKER)
    if on(BOOTSTRAP, "test", "-e", f"{_BUNDLE}.scenario").returncode == 0:
        shell(BOOTSTRAP, 'rm -rf "$1" && mv "$1.scenario" "$1"', _BUNDLE)
        _done(metalform("bootstrap"))
        _done(metalform("expand"))


@check("a host of a release that the bundle does not have is refused, and nothing is changed on it")
def refused():
    done = metalform("deploy-node", WORKER)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, HOST)
    expect("operating system rocky 9.6 is not in the bundle" in done.stderr, done.stderr)
    expect_same(WORKER, _state["before"])


@check("bundle add brings the release to the bundle of a cluster that is in use")
def learnt():
    source = _bundle_with(_archive())
    shell(BOOTSTRAP, 'mv "$1" "$1.scenario"', _BUNDLE)
    copy_directory(source, BOOTSTRAP, _BUNDLE)
    succeed(BOOTSTRAP, "metalform", "bundle", "verify", _BUNDLE, timeout=120)
    _done(metalform("bootstrap"))


@check("the host is deployed")
def deployed():
    _done(metalform("deploy-node", WORKER))
    ready(WORKER)
    expect_equal("system", get("node", WORKER)["status"]["nodeInfo"]["osImage"], "Rocky Linux 9.6 (Blue Onyx)")


@check("a pod on it finds the API by its name")
def finds_api():
    echo_image.load([WORKER])
    container = {"name": "echo", "image": echo_image.REFERENCE, "imagePullPolicy": "Never", "args": ["serve", WORKER]}
    pod = {"nodeName": WORKER, "terminationGracePeriodSeconds": 0, "containers": [container]}
    apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": _POD, "namespace": "default"}, "spec": pod})
    kubectl("wait", "--for=condition=Ready", f"pod/{_POD}", "--timeout=60s", timeout=90)
    service = get("service", "kubernetes", "--namespace=default")["spec"]["clusterIP"]
    found = kubectl("exec", _POD, "--", "/echo", "lookup", "kubernetes.default").strip()
    expect_equal("addresses", found, f"[{service}]")
    kubectl("delete", "pod", _POD, "--now")


@check("its packages are those of the bundle, which is its only source, and held")
def packages():
    sources = shell(WORKER, "dnf -q repolist --enabled | tail -n +2 | awk '{print $1}'").split()
    expect_equal("sources", sources, ["metalform-rpm"])
    installed = shell(WORKER, "rpm -qa --qf '%{NAME}\n'").split()
    missing = [name for name in _PACKAGES.split() if name not in installed]
    expect_equal("missing packages", missing, [])
    before = succeed(WORKER, "rpm", "-q", *_HELD)
    shell(WORKER, 'dnf -q -y upgrade "$@"', *_HELD, timeout=120)
    expect_equal("held packages", succeed(WORKER, "rpm", "-q", *_HELD), before)
    held = shell(WORKER, "dnf -q versionlock list").split()
    expect_equal("holds", sorted(name for name in _HELD if any(one.startswith(f"{name}-") for one in held)), _HELD)


@check("expand tells the controllers of the other masters of the release, and changes nothing else")
def other_masters():
    done = metalform("expand", "-o", "json")
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    report = Report(done.stdout)
    changed = [host for host, found in report.hosts.items() if found["outcome"] != "unchanged"]
    expect_equal("changed hosts", changed, ["master-2", "master-3"])
    expect_equal("files", report.files(), {"/etc/metalform/machine-controller.json"})


@check("nothing is left to change, there and on the nodes of other releases")
def no_change():
    expect_unchanged(metalform("expand", "-o", "json"))


@check("node check names a source that somebody adds, and deploy-node disables it")
def foreign_source():
    source = "/etc/yum.repos.d/vendor.repo"
    shell(WORKER, 'printf "[vendor]\nname=vendor\nbaseurl=http://packages.example.org/\n" > "$1"', source)
    done = metalform("node", "check", WORKER)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, HOST)
    expect(f"{source} is a package source besides metalform's" in done.stderr, done.stderr)
    _done(metalform("deploy-node", WORKER))
    expect(on(WORKER, "test", "-e", source).returncode != 0, "the source is enabled still")
    succeed(WORKER, "rm", f"{source}.metalform-disabled")


@check("it is removed, and is what it was")
def removed():
    _done(metalform("remove-node", WORKER))
    expect_same(WORKER, _state["before"])


def _archive():
    """Of the packages of Debian 13 in the demo's bundle; made once."""
    digest = hashlib.sha256(bundle().encode())
    with open(rpm_archive.__file__, "rb") as file:
        digest.update(file.read())
    archive = os.path.join(CACHE, "demo", f"rpm-{digest.hexdigest()[:12]}")
    if not os.path.isdir(archive):
        shutil.rmtree(f"{archive}.new", ignore_errors=True)
        rpm_archive.make(f"{archive}.new", os.path.join(bundle(), "apt", "pool", "debian-13"))
        os.rename(f"{archive}.new", archive)
    return archive


def _bundle_with(archive):
    """A copy of the demo's bundle, which has learnt the release."""
    source = os.path.join(CACHE, "demo", f"bundle-{WORKER}")
    shutil.rmtree(source, ignore_errors=True)
    # Links: a bundle's files are replaced, never written again.
    subprocess.run(["cp", "-al", bundle(), source], check=True)
    with tempfile.TemporaryDirectory() as scratch:
        components = os.path.join(scratch, "components.yaml")
        with open(components, "w", encoding="utf-8") as file:
            file.write(_LIST.format(archive=archive, packages=_PACKAGES.replace(" ", ", ")))
        added = [METALFORM, "bundle", "add", source, "-f", components]
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", _WITH_KEYS, "sh"]
        os.mkdir(os.path.join(scratch, "etc"))
        command += [os.path.join(scratch, "etc"), os.path.join(archive, "keys"), *added]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    expect_equal(f"exit code of bundle add\n{done.stderr}", done.returncode, 0)
    return source


def _done(done):
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)
