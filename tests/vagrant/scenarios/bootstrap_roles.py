"""The bootstrap node gives its member of etcd and its control plane away, and gets them back. The keys of the cluster stay on it."""

from checks import check, expect, expect_equal
from cluster import BOOTSTRAP, address, forget, get, introduce, kubectl, metalform, on, ready, shell, with_role
from etcd_voters import expect_voters

UNCHANGED = 0
WORKER = "spare-1"
_ROLES = ["master", "etcd"]
# What metalform has generated and issued here; not what the states of a master write in the same directories.
_KEYS = """
    cd /etc/kubernetes/pki
    sha256sum ca.crt ca.key etcd/ca.crt etcd/ca.key front-proxy-ca.crt front-proxy-ca.key sa.key sa.pub encryption.key \\
        routing.key etcd/metalform.crt etcd/metalform.key ../admin.conf
    find /etc/metalform/pki /var/lib/metalform/serve /var/lib/metalform/push /var/lib/metalform/repository.key -type f \\
        -exec sha256sum {} + | sort -k 2
"""
# What a node without a control plane and a member does not have.
_NOT_HERE = [
    "/etc/kubernetes/encryption.yaml",
    "/etc/kubernetes/pki/apiserver.key",
    "/etc/kubernetes/controller-manager.conf",
    "/etc/kubernetes/pki/etcd/peer.key",
    "/etc/kubernetes/manifests/etcd.yaml",
    "/etc/kubernetes/manifests/kube-apiserver.yaml",
    "/var/lib/etcd/member",
]
_state = {}


def set_up():
    _state["keys"] = shell(BOOTSTRAP, _KEYS)


def tear_down():
    _label("=")
    metalform("expand")
    forget(WORKER)


@check("without the labels its API server and its member leave")
def leaves():
    _label("-")
    _succeed("expand")
    expect_voters([node for node in with_role("etcd") if node != BOOTSTRAP])
    expect(ready(BOOTSTRAP), "it is not Ready")
    there = [path for path in _NOT_HERE if on(BOOTSTRAP, "test", "-e", path).returncode == 0]
    expect_equal("left on it", there, [])
    running = on(BOOTSTRAP, "pgrep", "-l", "-x", "etcd|kube-apiserver|kube-controller|kube-scheduler")
    expect_equal("what runs on it", running.stdout, "")
    config = shell(BOOTSTRAP, "cat /etc/haproxy/haproxy.cfg")
    expect(f"{address(BOOTSTRAP)}:6443" not in config, config)


@check("every key of the cluster is on it as before")
def keys_stay():
    expect_equal("keys", shell(BOOTSTRAP, _KEYS), _state["keys"])


@check("bootstrap has nothing to change there, and brings no control plane back")
def bootstrap_agrees():
    _expect_unchanged("bootstrap")


@check("a worker is deployed, its certificate signed, by a bootstrap node without an API server")
def serves():
    introduce(WORKER)
    _succeed("deploy-node", WORKER)
    expect(ready(WORKER), "it is not Ready")


@check("with the labels it has an API server and a voting member again")
def returns():
    _label("=")
    _succeed("expand")
    expect_voters(with_role("etcd"))
    config = shell(BOOTSTRAP, "cat /etc/haproxy/haproxy.cfg")
    expect(f"{address(BOOTSTRAP)}:6443" in config, config)
    expect_equal("keys", shell(BOOTSTRAP, _KEYS), _state["keys"])
    _expect_unchanged("bootstrap")


def _label(value):
    kubectl("label", "node", BOOTSTRAP, "--overwrite", *(f"node-role.kubernetes.io/{role}{value}" for role in _ROLES))


def _expect_unchanged(*command):
    done = metalform(*command, "--dry-run", "--detailed-exitcode")
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, UNCHANGED)
    _succeed(*command)
    expect_equal("running", on(BOOTSTRAP, "pgrep", "-x", "kube-apiserver").returncode == 0, "master" in _labels())


def _labels():
    labels = get("node", BOOTSTRAP)["metadata"]["labels"]
    return {label.removeprefix("node-role.kubernetes.io/") for label in labels}


def _succeed(*words):
    done = metalform(*words)
    expect_equal(f"exit code of {words}\n{done.stdout}{done.stderr}", done.returncode, 0)
    return done
