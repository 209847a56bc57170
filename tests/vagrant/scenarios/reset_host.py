"""A host that leaves the cluster is what it was before it came, whatever it was there, and can come again."""

import json

import yaml

from checks import State, check, expect, expect_equal, until
from cluster import (
    BOOTSTRAP,
    apply,
    delete_node,
    forget,
    get,
    introduce,
    kubectl,
    manifest,
    metalform,
    on,
    ready,
    shell,
    succeed,
    with_role,
)
from control_plane_node import ETCD, MASTER
from control_plane_node import introduce as introduce_with
from deployment import Deployment
from host_state import expect_same, host_state, nft

SUCCESS, HOST, REFUSED = 0, 4, 7
WORKER, MEMBER = "spare-1", "spare-2"
FILE = "/root/scenario-node.yaml"
POD = "scenario-reset"
_OWN_TABLE = "table ip nat { chain postrouting { type nat hook postrouting priority srcnat; masquerade; }; }"
_SHARE = "/var/lib/metalform/etcd-snapshots"
_state = State()


def set_up():
    introduce(WORKER)
    introduce_with(MEMBER, MASTER, ETCD)


def tear_down():
    shell(BOOTSTRAP, 'rm -f "$1"', FILE)
    kubectl("delete", "pod", POD, "--ignore-not-found", "--force", "--grace-period=0")
    forget(WORKER)
    forget(MEMBER)


@check("a node that is Ready is refused, and so is the bootstrap node")
def refused():
    done = _metalform(REFUSED, "reset-host", with_role("etcd")[-1])
    expect("metalform remove-node" in done.stderr, done.stderr)
    _metalform(REFUSED, "reset-host", BOOTSTRAP)


@check("deploy-node is killed half-way, and reset-host makes the host what it was")
def killed_half_way():
    # An administrator's own: it stays as it is.
    shell(WORKER, "echo 'vm.swappiness = 7' > /etc/sysctl.d/10-own.conf; mkdir -p /opt/own; echo own > /opt/own/file")
    _state["worker"] = host_state(WORKER)
    # iptables-save shows nothing of such a table.
    nft(WORKER, _OWN_TABLE)
    # All hosts of the lab share it, and the other nodes have set it already.
    panic = shell(WORKER, "sysctl -n kernel.panic; sysctl -qw kernel.panic=7").strip()
    before = host_state(WORKER)
    unpacked = "test -x /usr/sbin/haproxy && command -v nft && command -v iptables-save"
    with Deployment(WORKER) as running:
        running.until("haproxy is unpacked", lambda: on(WORKER, "sh", "-c", unpacked).returncode == 0)
        running.kill()
    # An administrator looks into it.
    _install_own(WORKER, "own-tool")
    done = metalform("reset-host", WORKER, "--check")
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, HOST)
    expect("package haproxy" in done.stdout, done.stdout)
    _metalform(SUCCESS, "reset-host", WORKER)
    _purge_own(WORKER, "own-tool")
    expect_same(WORKER, before)
    shell(WORKER, 'sysctl -qw "kernel.panic=$1"', panic)
    nft(WORKER, "delete table ip nat")


@check("it can be deployed, and what its removal leaves is what was there")
def worker():
    # An administrator's own, in places of a node.
    shell(WORKER, f"ip netns add own; mkdir -p {_SHARE}; mount -t tmpfs own {_SHARE}; echo own > {_SHARE}/file")
    before = host_state(WORKER)
    _metalform(SUCCESS, "deploy-node", WORKER)
    expect(ready(WORKER), "it is not Ready")
    _metalform(SUCCESS, "remove-node", WORKER)
    expect_same(WORKER, before)
    expect_equal("a file of an administrator's", shell(WORKER, f"cat {_SHARE}/file"), "own\n")
    shell(WORKER, "ip netns exec own true; ip netns delete own; umount /run/netns; rmdir /run/netns")
    shell(WORKER, f"umount {_SHARE}; rmdir {_SHARE}")
    expect_same(WORKER, _state["worker"])


@check("a second reset changes nothing, by the manifest of a Node that is gone")
def again():
    succeed(BOOTSTRAP, "sh", "-c", f"cat > {FILE}", stdin=yaml.safe_dump(manifest(WORKER)))
    done = _metalform(SUCCESS, "reset-host", "-f", FILE, "--check")
    expect("nothing of metalform is left" in done.stdout, done.stdout)
    # A node has a package of this name, and this host one of its administrator's.
    _install_own(WORKER, "socat")
    _metalform(SUCCESS, "reset-host", "-f", FILE)
    _metalform(SUCCESS, "reset-host", "-f", FILE, "--check")
    _purge_own(WORKER, "socat")
    expect_same(WORKER, _state["worker"])


@check("a master with etcd is deployed and removed: its host is what it was")
def member():
    before = host_state(MEMBER)
    _metalform(SUCCESS, "deploy-node", MEMBER)
    _metalform(SUCCESS, "remove-node", MEMBER)
    expect_same(MEMBER, before)


@check("a pod that has outlived containerd ends with the reset of its host")
def without_containerd():
    apply(manifest(WORKER))
    _metalform(SUCCESS, "deploy-node", WORKER)
    # The process of its sandbox is enough.
    container = {"name": POD, "image": "localhost/none", "imagePullPolicy": "Never"}
    spec = {"nodeName": WORKER, "terminationGracePeriodSeconds": 0, "containers": [container]}
    apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD}, "spec": spec})
    until("its sandbox", 60, _has_pause)
    shell(WORKER, "systemctl stop kubelet containerd")
    expect(_has_pause(), "it has ended with containerd")
    until("a Node that is not Ready", 90, _is_silent)
    _metalform(SUCCESS, "reset-host", WORKER)
    expect(not _has_pause(), "it runs on")
    delete_node(WORKER)
    expect_same(WORKER, _state["worker"])


@check("with --keep-data the data stays, and nothing else")
def keeps_data():
    apply(manifest(WORKER))
    _metalform(SUCCESS, "deploy-node", WORKER)
    _metalform(SUCCESS, "remove-node", WORKER, "--keep-data")
    expect(shell(WORKER, "ls -A /var/lib/containerd").strip(), "the images are gone")
    expect(on(WORKER, "test", "-e", "/etc/kubernetes").returncode != 0, "/etc/kubernetes is there")
    _metalform(SUCCESS, "reset-host", "-f", FILE)
    expect_same(WORKER, _state["worker"])
    expect_equal("data", shell(WORKER, "ls -A /var/lib/containerd").strip(), "")


@check("all voters of the others are healthy")
def healthy():
    delete_node(MEMBER)
    members = json.loads(_metalform(SUCCESS, "etcd", "health", "-o", "json").stdout)
    expect_equal("voters", sorted(one["name"] for one in members), sorted(with_role("etcd")))


def _is_silent():
    conditions = {one["type"]: one["status"] for one in get("node", WORKER)["status"]["conditions"]}
    return conditions["Ready"] != "True"


def _has_pause():
    return on(WORKER, "pgrep", "-x", "pause").returncode == 0


def _install_own(node, package):
    """A package that no repository has, once apt has ended that a killed run has left at work."""
    shell(
        node,
        "apt-get -qq -o DPkg::Lock::Timeout=120 check || true; "
        'mkdir -p /run/own/DEBIAN; printf "Package: %s\\nVersion: 0.1\\nArchitecture: all\\nMaintainer: own\\n'
        'Description: own\\n" "$1" > /run/own/DEBIAN/control; dpkg-deb --build /run/own /run/own.deb; '
        "dpkg -i /run/own.deb; rm -r /run/own /run/own.deb",
        package,
        timeout=180,
    )


def _purge_own(node, package):
    """Fails where it is not installed any more."""
    shell(node, 'dpkg -s "$1" && dpkg --purge "$1"', package)


def _metalform(code, *words):
    done = metalform(*words)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, code)
    return done
