"""Roles come and go with a Node's labels: a worker has an etcd member for a while, a master becomes a worker and a master again."""

from api_writer import ApiWriter
from checks import State, check, expect, expect_equal
from cluster import NODES, address, forget, introduce, kubectl, metalform, on, ready, shell, with_role
from etcd_voters import expect_voters

SUCCESS = 0
WORKER, MASTER = "spare-1", "master-3"
_ROLE = "node-role.kubernetes.io/"
# What a worker must not have: keys that sign tokens, decrypt Secrets, or make a member of etcd.
_KEYS = [
    "/etc/kubernetes/pki/sa.key",
    "/etc/kubernetes/encryption.yaml",
    "/etc/kubernetes/pki/apiserver.key",
    "/etc/kubernetes/pki/apiserver-etcd-client.key",
    "/etc/kubernetes/controller-manager.conf",
    "/etc/kubernetes/pki/etcd/peer.key",
    "/etc/kubernetes/manifests/etcd.yaml",
    "/etc/kubernetes/manifests/kube-apiserver.yaml",
    "/var/lib/etcd/member",
]
# Seconds in which a writer may have no confirmation: requests that an API server cut off as it stopped, and an election.
GAP = 5
_state = State()


def set_up():
    introduce(WORKER)
    _metalform(SUCCESS, "deploy-node", WORKER)
    _state["writer"] = ApiWriter(with_role("master"))


def tear_down():
    if "writer" in _state:
        _state["writer"].end()
    _label(MASTER, "master=", "etcd=")
    metalform("deploy-node", MASTER)
    forget(WORKER)


@check("a worker that gets the label of etcd has a voting member after expand")
def becomes_member():
    _label(WORKER, "etcd=")
    _metalform(SUCCESS, "expand")
    expect_voters([*with_role("etcd"), WORKER])


@check("without the label its member leaves, with the data and the keys, and it works on")
def leaves_etcd():
    _label(WORKER, "etcd-")
    done = _metalform(SUCCESS, "expand")
    expect(f"remove {WORKER} from etcd: 4 -> 3 voters" in done.stderr, done.stderr)
    expect_voters(with_role("etcd"))
    _expect_worker(WORKER)


@check("a master that loses its labels becomes a worker, and no proxy has its API server")
def master_leaves():
    _label(MASTER, "master-", "etcd-")
    _metalform(SUCCESS, "expand")
    expect_voters([node for node in with_role("etcd") if node != MASTER])
    _expect_worker(MASTER)
    for node in NODES:
        config = shell(node, "cat /etc/haproxy/haproxy.cfg")
        expect(f"{address(MASTER)}:6443" not in config, f"{node}: {config}")


@check("and a master again, with a voting member")
def master_returns():
    _label(MASTER, "master=", "etcd=")
    _metalform(SUCCESS, "expand")
    expect_voters(with_role("etcd"))
    for node in NODES:
        config = shell(node, "cat /etc/haproxy/haproxy.cfg")
        expect(f"{address(MASTER)}:6443" in config, f"{node}: {config}")


@check("without the label etcd alone its API server stays, and lists the voters of after the same expand")
def master_without_member():
    _label(MASTER, "etcd-")
    _label(WORKER, "etcd=")
    _metalform(SUCCESS, "expand")
    voters = [node for node in [*with_role("etcd"), WORKER] if node != MASTER]
    expect_voters(voters)
    manifest = shell(MASTER, "cat /etc/kubernetes/manifests/kube-apiserver.yaml")
    servers = manifest.split("--etcd-servers=")[1].split()[0]
    expect_equal("--etcd-servers", sorted(servers.split(",")), sorted(f"https://{address(node)}:2379" for node in voters))
    expect_equal("readyz", kubectl(f"--server=https://{address(MASTER)}:6443", "get", "--raw", "/readyz"), "ok")
    expect_equal("left of etcd", on(MASTER, "pgrep", "-l", "-x", "etcd").stdout, "")


@check("and has a voting member again")
def member_returns():
    _label(MASTER, "etcd=")
    _label(WORKER, "etcd-")
    _metalform(SUCCESS, "expand")
    expect_voters(with_role("etcd"))


@check("what a pod and a program outside have appended through the API meanwhile is linearizable, without a pause")
def history():
    _state["writer"].check(GAP)


def _label(node, *roles):
    kubectl("label", "node", node, "--overwrite", *(f"{_ROLE}{role}" for role in roles))


def _expect_worker(node):
    expect(ready(node), "it is not Ready")
    there = [key for key in _KEYS if on(node, "test", "-e", key).returncode == 0]
    expect_equal("left on it", there, [])
    running = on(node, "pgrep", "-l", "-x", "etcd|kube-apiserver|kube-controller|kube-scheduler")
    expect_equal("what runs on it", running.stdout, "")


def _metalform(code, *words):
    done = metalform(*words)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, code)
    return done
