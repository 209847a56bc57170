"""etcd without its quorum continues with the data of one member, or with a snapshot; the others join it again."""

import json
import random

from checks import Failed, State, check, expect, expect_equal, until
from cluster import BOOTSTRAP, NODES, address, get, kubectl, metalform, ready, shell, succeed, with_role
from control_plane_node import members
from deployment import Deployment
from etcd_voters import expect_voters
from sampling import SEED, sample

SUCCESS, REFUSED = 0, 7
DIRECTORY = "/var/lib/etcd"
SNAPSHOT = "/root/scenario-recover.db"
CONFIRMED = "--yes-i-have-read-the-plan"
# Recovery, and two members that join one after the other.
PATIENCE = 600
BEFORE, AFTER = "scenario-recover-before", "scenario-recover-after"
# Of a client of etcd, by no CA that etcd trusts; and what it was.
_CERTIFICATE = "/etc/kubernetes/pki/etcd/metalform"
_BREAK_CERTIFICATE = """
cp -p "$1.crt" /root/scenario-recover.crt && cp -p "$1.key" /root/scenario-recover.key
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=metalform -keyout "$1.key" -out "$1.crt" 2>/dev/null
"""
_RESTORE_CERTIFICATE = 'mv /root/scenario-recover.crt "$1.crt" && mv /root/scenario-recover.key "$1.key"'
# The last value that was confirmed, and the last that was sent.
_state = State(acknowledged=0, sent=0)


def set_up():
    _state["etcd"] = with_role("etcd")
    expect(len(_state["etcd"]) == 3, f"three etcd nodes are needed: {_state['etcd']}")
    kubectl("create", "configmap", BEFORE, "--namespace=default")
    _state["identities"] = _identities()


def tear_down():
    for name in (BEFORE, AFTER):
        kubectl("delete", "configmap", name, "--namespace=default", "--ignore-not-found")
    _label("master=", _others())
    for node in _state["etcd"]:
        shell(node, f"rm -rf {DIRECTORY}/removed-*")
    shell(BOOTSTRAP, f"rm -f {SNAPSHOT}")


@check("while etcd has its quorum, recover is refused, and restore asks for a confirmation")
def refused():
    _metalform(SUCCESS, "snapshot", SNAPSHOT)
    done = _metalform(REFUSED, "recover", CONFIRMED)
    expect("quorum" in done.stderr, done.stderr)
    done = _metalform(REFUSED, "restore", SNAPSHOT)
    expect("confirmation" in done.stderr, done.stderr)
    expect_equal("etcd health", metalform("etcd", "health").returncode, SUCCESS)


@check("etcd works, and refuses the certificate of metalform: no member is stopped, also where one is named")
def certificate_refused():
    _acknowledge()
    shell(BOOTSTRAP, _BREAK_CERTIFICATE, _CERTIFICATE)
    try:
        for named in ([], ["--member", _others()[0]]):
            done = _metalform(REFUSED, "recover", *named, CONFIRMED)
            expect("have a leader" in done.stderr and "`metalform bootstrap`" in done.stderr, done.stderr)
    finally:
        shell(BOOTSTRAP, _RESTORE_CERTIFICATE, _CERTIFICATE)
    _expect_as_before()


# Of one, the data of the members that are destroyed; then the words of the command.
WAYS = {
    "two of three members are destroyed: etcd continues with the first one": (["last", "middle"], ["recover"]),
    "the first and another are destroyed: etcd continues with the one that is named": (["first", "middle"], ["recover", "--member"]),
    "all are destroyed: etcd continues with a snapshot, without what came after it": (["first", "middle", "last"], ["restore", SNAPSHOT]),
}


@check("{}; three vote again", each=sample("etcd_recover", WAYS, 1))
def recovered(way):
    destroyed, words = WAYS[way]
    nodes = dict(zip(("first", "middle", "last"), [BOOTSTRAP, *(node for node in _state["etcd"] if node != BOOTSTRAP)]))
    _acknowledge()
    if len(destroyed) == 3:
        shell(BOOTSTRAP, f"rm -f {SNAPSHOT}")
        _metalform(SUCCESS, "snapshot", SNAPSHOT)
        kubectl("create", "configmap", AFTER, "--namespace=default")
    for which in destroyed:
        _destroy(nodes[which])
    survivor = nodes["first"] if len(destroyed) == 3 else next(nodes[which] for which in nodes if which not in destroyed)
    if words[-1] == "--member":
        words = [*words, survivor]
    if len(destroyed) == 3:
        done = _metalform(REFUSED, "recover", CONFIRMED)
        expect("no host that can be reached has the data" in done.stderr, done.stderr)
    shown = _metalform(SUCCESS, *words, "--dry-run")
    line = next(line for line in shown.stdout.splitlines() if line.startswith(f"{survivor} "))
    expect("continues" in line and "is lost" in shown.stdout, shown.stdout)
    done = metalform("etcd", *words, CONFIRMED, timeout=PATIENCE)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, SUCCESS)
    _expect_as_before()
    if len(destroyed) < 3:
        shell(survivor, f"ls -d {DIRECTORY}/removed-*")


@check("the only API server loses the member beside it, and the others have quorum: it continues with one of theirs")
def reconnected():
    _label("master-", _others())
    done = metalform("expand", timeout=PATIENCE)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, SUCCESS)
    _acknowledge()
    _destroy(BOOTSTRAP)
    done = metalform("bootstrap", timeout=PATIENCE)
    expect("its data on this host does not" in done.stderr and "`metalform etcd recover`" in done.stderr, done.stderr)
    shown = _metalform(SUCCESS, "recover", "--dry-run")
    expect("2 of 3 voting members are healthy" in shown.stdout and "its own etcd member is lost" in shown.stdout, shown.stdout)
    done = metalform("etcd", "recover", CONFIRMED, timeout=PATIENCE)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, SUCCESS)
    _expect_as_before()
    manifest = shell(BOOTSTRAP, "cat /etc/kubernetes/manifests/kube-apiserver.yaml")
    expect_equal("--etcd-servers", manifest.split("--etcd-servers=")[1].split()[0], f"https://{address(BOOTSTRAP)}:2379")
    _label("master=", _others())
    done = metalform("expand", timeout=PATIENCE)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, SUCCESS)


def _others():
    return [node for node in _state["etcd"] if node != BOOTSTRAP]


def _label(role, nodes):
    kubectl("label", "node", *nodes, "--overwrite", f"node-role.kubernetes.io/{role}")


# What a recovery does, each as the line that metalform prints when it begins it.
ACTIONS = [
    "stop etcd and the control plane",
    "make its etcd member the only one",
    "waiting for etcd to answer",
    "waiting for the API to answer",
    "take the lease",
    "add .* as a learner",
    "apply etcd member",
    "promote etcd learner",
]
RESTORATION = {
    "stops etcd": "stop etcd and the control plane",
    "makes a member of the snapshot": "make an etcd member of the snapshot",
}


@check("recover is killed at: {}; it is completed by the same command, or by the one to which that leads", each=sample("kills", ACTIONS, 1))
def killed(action):
    _destroy_all_but_the_first()
    _kill(action, "recover", CONFIRMED)
    _acknowledge_if_served()
    _complete()


@check("restore is killed while it {}; the same command completes it", each=sample("restorations", RESTORATION, 1))
def restoration_killed(action):
    _acknowledge()
    shell(BOOTSTRAP, f"rm -f {SNAPSHOT}")
    _metalform(SUCCESS, "snapshot", SNAPSHOT)
    for node in _state["etcd"]:
        _destroy(node)
    _kill(RESTORATION[action], "restore", SNAPSHOT, CONFIRMED)
    done = metalform("etcd", "restore", SNAPSHOT, CONFIRMED, timeout=PATIENCE)
    expect_equal(f"exit code\n{done.stdout[-2000:]}{done.stderr[-2000:]}", done.returncode, SUCCESS)
    _expect_as_before()


def _kill(action, *words):
    with Deployment(None, *words, verb="etcd") as running:
        running.until_line(action, PATIENCE, pause=0.01)
        running.kill_within(0.4, random.Random(f"{SEED} {action}"))


@check("recover is killed at random, five times over ({})", each=sample("instants", range(1, 7), 0))
def killed_at_random(number):
    instants = random.Random(f"{SEED} {number}")
    _destroy_all_but_the_first()
    verb, options = "etcd", ["recover", CONFIRMED]
    for _ in range(5):
        instant = instants.uniform(0.1, 16)
        with Deployment(None, *options, verb=verb) as running:
            if running.killed_after(instant):
                print(f"# {verb} was killed {instant:.2f} s after its start", flush=True)
                continue
        if running.returncode == SUCCESS:
            break
        _acknowledge_if_served()
        _expect_refused(running)
        verb, options = "expand", []
    _complete()


def _complete():
    done = metalform("etcd", "recover", CONFIRMED, timeout=PATIENCE)
    if done.returncode != SUCCESS:
        _expect_refused(done)
        done = metalform("expand", timeout=PATIENCE)
    expect_equal(f"exit code\n{done.stdout[-2000:]}{done.stderr[-2000:]}", done.returncode, SUCCESS)
    _expect_as_before()


def _expect_refused(done):
    """Since etcd answers again."""
    expect_equal(f"exit code\n{done.stdout[-2000:]}{done.stderr[-2000:]}", done.returncode, REFUSED)
    expect("`metalform expand`" in done.stderr, done.stderr)


def _destroy_all_but_the_first():
    _acknowledge()
    for node in _state["etcd"]:
        if node != BOOTSTRAP:
            _destroy(node)


@check("and nothing is left to do")
def nothing_to_do():
    done = metalform("expand", "--dry-run", "--detailed-exitcode", timeout=300)
    expect(done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}")


def _acknowledge():
    """A write that only what etcd has at this moment contains."""
    _state["sent"] += 1
    change = json.dumps({"data": {"acknowledged": str(_state["sent"])}})
    kubectl("patch", "configmap", BEFORE, "--namespace=default", "--type=merge", f"--patch={change}")
    _state["acknowledged"] = _state["sent"]


def _acknowledge_if_served():
    """A write between a recovery that was killed and the next run, which must not lose it."""
    try:
        kubectl("get", "--raw=/readyz", "--request-timeout=2s")
        _acknowledge()
        print(f"# {_state['acknowledged']} was acknowledged after the kill", flush=True)
    except Failed as failed:
        print(f"# nothing was acknowledged after the kill: {failed}", flush=True)


def _destroy(node):
    """Its disk is empty, and the host runs."""
    succeed(node, "systemctl", "stop", "kubelet")
    shell(node, f"pkill -9 -x etcd || true; while pgrep -x etcd; do sleep 0.1; done; rm -rf {DIRECTORY}/member")
    succeed(node, "systemctl", "start", "kubelet")


def _metalform(code, *words):
    done = metalform("etcd", *words, timeout=120)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, code)
    return done


def _expect_as_before():
    expect_voters(_state["etcd"])
    expect_equal("members of etcdctl", len(members()), 3)
    expect_equal("the identities of the cluster and its nodes", _identities(), _state["identities"])
    found = {each["metadata"]["name"] for each in get("configmaps", "--namespace=default")["items"]}
    expect_equal("what was acknowledged before, and what came after the snapshot", found & {BEFORE, AFTER}, {BEFORE})
    last = get("configmap", BEFORE, "--namespace=default")["data"]["acknowledged"]
    expect(_state["acknowledged"] <= int(last) <= _state["sent"], f"the last write is {last}: {_state}")
    until("every node is Ready", 120, lambda: all(ready(node) for node in NODES))
    until("the API takes writes", 30, _writes)


def _writes():
    kubectl("annotate", "configmap", BEFORE, "--namespace=default", "--overwrite", "scenario=written")
    return True


def _identities():
    system = get("namespace", "kube-system")["metadata"]["uid"]
    return {"kube-system": system, **{node["metadata"]["name"]: node["metadata"]["uid"] for node in get("nodes")["items"]}}
