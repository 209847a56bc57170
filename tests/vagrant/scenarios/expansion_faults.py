"""Operations that are killed anywhere, and machines that fail meanwhile: the next run converges, and no write is lost."""

import os
import random
import re
import tempfile
import time

import etcd_join_faults as joins
from api_writer import ApiWriter
from checks import State, check, expect, expect_equal, until
from cluster import (
    BOOTSTRAP,
    LAB,
    NODES,
    accept_host_key,
    address,
    authorise,
    discard,
    forget,
    fresh,
    get,
    introduce,
    lab,
    metalform,
    ready,
    shell,
    with_role,
)
from control_plane_node import ETCD, MASTER, etcdctl
from control_plane_node import forget as forget_member
from control_plane_node import introduce as introduce_member
from deployment import Deployment
from etcd_voters import expect_voters
from etcd_writer import PREFIX, Writer, key
from sampling import SEED, sample

SUCCESS, SSH, ETCD_CLASS, API_CLASS = 0, 3, 5, 6
NODE, WORKER = "spare-2", "spare-1"
# Seconds: without a confirmed write; for a whole operation, with a lease that has to expire first.
GAP, PATIENCE = 5, 330
# Without a confirmed write through the API: its Service has the address of a master that is off until its lease there
# expires after 15 s, and a request to it takes 2. And where no API server answers for 30 s.
API_GAP, SILENT_GAP = 30, 45
# The actions of each operation, in their order, each as the line that metalform prints when it begins it.
REMOVAL = [
    "cordon the node",
    "withdraw the API server",
    "update the addresses of API servers and mirrors",
    "stop the control plane",
    "take the lease",
    "remove .* from etcd",
    "release the lease",
    "stop the kubelet",
    "remove packages, files and settings",
    "clear the host",
    "remove the record",
    "delete the Node object",
]
EXPANSION = [
    "record the node's addresses",
    "create a join token",
    "apply base system",
    "apply etcd prerequisites",
    "apply joined",
    "delete the join token",
    "take the lease",
    "add .* as a learner",
    "apply etcd member",
    "apply control plane files",
    "promote etcd learner",
    "release the lease",
    "apply control plane$",
    "record that the API server is ready",
    "update the addresses of API servers and mirrors",
    "start a pod on the node",
    "delete that pod",
]
REPLACEMENT = [
    "remove etcd member",
    "apply base system",
    "apply etcd prerequisites",
    "apply joined",
    "take the lease",
    "add .* as a learner",
    "apply etcd member",
    "apply control plane files",
    "promote etcd learner",
    "release the lease",
    "apply control plane$",
    "start a pod on the node",
    "delete that pod",
]
_INSTANTS = random.Random(f"{SEED} expansion_faults")
_state = State(kills=0, api_gap=API_GAP)


def set_up():
    directory = tempfile.TemporaryDirectory(prefix="metalform-faults-")
    _state["directory"] = directory
    for name, text in joins.credentials().items():
        with open(os.open(os.path.join(directory.name, name), os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write(text)
    _state["writer"] = Writer(LAB, directory.name, joins.voter_urls())
    until("the first write is confirmed", 10, _state["writer"].confirmed)
    _state["api"] = ApiWriter(with_role(MASTER))


def tear_down():
    if "writer" in _state:
        _state["writer"].end()
        _state["directory"].cleanup()
    if "api" in _state:
        _state["api"].end()
    lab("power-on", *NODES)
    until("every node is Ready", 120, lambda: all(ready(node) for node in NODES))
    forget_member(NODE)
    forget(WORKER)
    etcdctl("del", "--prefix", PREFIX)


def _killed_at(action):
    """Kills a run up to 0.4 s after it began the action."""

    def kill(start, _=None):
        with start() as running:
            running.until_line(action, PATIENCE, pause=0.01)
            _state["kills"] += running.kill_within(0.4, _INSTANTS)

    return kill


def _killed_at_random(most):
    """Kills five runs, one after the other, each within so many seconds after its start; or until one has ended.
    The first one takes longer."""

    def kill(start, is_done=lambda: False):
        for number in range(5):
            instant = _INSTANTS.uniform(0.1, most)
            with start() as running:
                if not running.killed_after(instant):
                    expect(number, "the first run ended before it was killed")
                    expect_equal(f"exit code\n{running.stdout[-2000:]}{running.stderr[-2000:]}", running.returncode, SUCCESS)
                    return
            print(f"# killed {instant:.2f} s after its start", flush=True)
            _state["kills"] += 1
            if is_done():
                return

    return kill


def _run(*words):
    done = metalform(*words, timeout=PATIENCE)
    expect_equal(f"exit code of the next run\n{done.stdout[-2000:]}{done.stderr[-2000:]}", done.returncode, SUCCESS)


def _nodes():
    return {node["metadata"]["name"] for node in get("nodes")["items"]}


def _master():
    introduce_member(NODE, MASTER, ETCD)
    _run("deploy-node", NODE)


def removal(kill):
    _master()
    kill(lambda: Deployment(NODE, verb="remove-node"), lambda: NODE not in _nodes())
    if NODE in _nodes():
        _run("remove-node", NODE)
    _expect_without()


def expansion(kill):
    introduce_member(NODE, MASTER, ETCD)
    introduce(WORKER)
    kill(lambda: Deployment(None, verb="expand"))
    _run("expand")
    _expect_with()
    expect(ready(WORKER), "the worker is not Ready")
    _run("remove-node", NODE, WORKER)
    _expect_without()


def replacement(kill):
    _master()
    discard(NODE)
    fresh(NODE)
    authorise(NODE)
    accept_host_key(NODE)
    until("the Node is not Ready", 90, _not_ready)
    kill(lambda: Deployment(NODE, "--replace"))
    _run("deploy-node", NODE, "--replace")
    _expect_with()
    _run("remove-node", NODE)
    _expect_without()


# What is done, the actions at which it is killed, and the seconds within which it is killed at random.
OPERATIONS = {
    "remove-node of a master with etcd": (removal, REMOVAL, 6),
    "expand by a master with etcd and a worker": (expansion, EXPANSION, 16),
    "deploy-node --replace of a master with etcd": (replacement, REPLACEMENT, 16),
}
KILLS = {
    f"{operation} is killed at: {action}": (play, _killed_at(action))
    for operation, (play, actions, _) in OPERATIONS.items()
    for action in actions
} | {
    f"{operation} is killed at random, five times over ({number})": (play, _killed_at_random(most))
    for operation, (play, _, most) in OPERATIONS.items()
    for number in range(1, 7)
}


@check("{}", each=sample("expansion_faults: kills", KILLS, 1))
def killed(what):
    play, kill = KILLS[what]
    play(kill)


def api_is_silent():
    """Its processes are stopped, so that connections stay open and no request is answered."""
    introduce(WORKER)
    with Deployment(WORKER) as running:
        running.until_line("apply base system", PATIENCE)
        masters = with_role(MASTER)
        for master in masters:
            shell(master, "pkill -STOP -x kube-apiserver")
        time.sleep(30)
        for master in masters:
            shell(master, "pkill -CONT -x kube-apiserver")
        running.finish(PATIENCE)
        print(f"# the run ended with {running.returncode}", flush=True)
        expect(running.returncode in (SUCCESS, API_CLASS), running.stderr)
        expect(running.returncode == SUCCESS or running.hints(), running.stderr)
    _state["api_gap"] = SILENT_GAP
    _run("deploy-node", WORKER)


def host_reboots():
    """In the middle of its packages."""
    introduce(WORKER)
    with Deployment(WORKER) as running:
        running.until_line("apply base system", PATIENCE)
        time.sleep(_INSTANTS.uniform(1, 4))
        lab("power-off", WORKER)
        lab("power-on", WORKER)
        expect_equal(f"exit code\n{running.stderr}", running.finish(PATIENCE), SSH)
        expect(all(line.startswith(f"error: {WORKER}: ") for line in running.errors()), running.stderr)
        expect(any(f"metalform node check {WORKER}" in line for line in running.hints()), running.stderr)
    _run("deploy-node", WORKER)


def master_is_off():
    """A worker joins; etcd does not grow."""
    off = with_role(MASTER)[-1]
    introduce(WORKER)
    introduce_member(NODE, ETCD)
    lab("power-off", off)
    try:
        _run("deploy-node", WORKER)
        done = metalform("deploy-node", NODE, timeout=PATIENCE)
    finally:
        lab("power-on", off)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, ETCD_CLASS)
    expect(re.search(f"error: .* every voting member of etcd to be healthy; last seen: {off}", done.stderr), done.stderr)
    expect("hint: `metalform etcd health` shows every member" in done.stderr, done.stderr)
    until("its member is healthy again", 120, lambda: metalform("etcd", "health").returncode == SUCCESS)
    _run("deploy-node", NODE)
    _run("remove-node", NODE)


# A copy of a directory on a file system of its own, without room, in its place.
_FILL = """
copy=$(mktemp -d)
mount -t tmpfs -o size=$(($(du -sk "$1" | cut -f1) + 4096))k tmpfs "$copy"
cp -a "$1/." "$copy"
mount --bind "$copy" "$1"
umount "$copy"
rmdir "$copy"
head -c 1000000000 /dev/zero >"$1/filling" 2>/dev/null || true
"""


def disk_is_full():
    """That of all that metalform keeps on the bootstrap node: the operation is not recorded, and succeeds."""
    introduce(WORKER)
    kept = "/var/lib/metalform"
    shell(BOOTSTRAP, _FILL, kept)
    try:
        done = metalform("deploy-node", WORKER, timeout=PATIENCE)
    finally:
        shell(BOOTSTRAP, 'umount "$1"', kept)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, SUCCESS)
    for lost in ("operations", "nodes.json"):
        expect(re.search(f"{kept}/{lost}.*: No space left on device", done.stderr), f"{lost} is not named:\n{done.stderr}")


def two_at_once():
    """One of them waits for the other's host, and finds nothing to do."""
    introduce_member(NODE, MASTER, ETCD)
    introduce(WORKER)
    with Deployment(None, "--wait=300", verb="expand") as one, Deployment(None, "--wait=300", verb="expand") as other:
        one.succeed(PATIENCE)
        other.succeed(PATIENCE)
    _expect_with()
    _run("remove-node", NODE)


OTHERS = {
    "the API does not answer for 30 s": api_is_silent,
    "the host reboots in the middle of its packages": host_reboots,
    "a master is off while a worker is added and while etcd should grow": master_is_off,
    "the disk of the bootstrap node is full": disk_is_full,
    "two expand at once": two_at_once,
}


@check("{}", each=sample("expansion_faults: others", OTHERS, 1))
def other(what):
    OTHERS[what]()
    _run("remove-node", WORKER)
    _expect_without()


@check("what a pod and a program outside have appended through the API meanwhile is linearizable")
def api_history():
    print(f"# {_state['kills']} runs were killed", flush=True)
    _state["api"].check(_state["api_gap"])


@check("no write was lost, and none waited for longer than an election")
def writes():
    writer = _state["writer"]
    expect(writer.runs(), "the writer has ended")
    writer.end()
    confirmed = writer.confirmed()
    gap = writer.gap(0)
    print(f"# {len(confirmed)} writes were confirmed, with a gap of at most {gap:.2f} s", flush=True)
    for node in with_role(ETCD):
        endpoint = f"https://{address(node)}:2379"
        found = set(etcdctl("get", "--prefix", PREFIX, "--keys-only", endpoint=endpoint).split())
        expect_equal(f"confirmed writes that {node} does not have", [each for each in confirmed if key(each) not in found], [])
    expect(gap <= GAP, f"no write was confirmed for {gap:.2f} s")


def _not_ready():
    conditions = {each["type"]: each["status"] for each in get("node", NODE)["status"].get("conditions", [])}
    return conditions.get("Ready") != "True"


def _expect_with():
    expect_voters([*with_role(ETCD), NODE])
    expect(all(ready(node) for node in [*NODES, NODE]), "a node is not Ready")


def _expect_without():
    """Its host is what it was: the next time it is introduced it has a new disk all the same."""
    expect_voters(with_role(ETCD))
    expect_equal("nodes", _nodes(), set(NODES))
    done = metalform("expand", "--dry-run", "--detailed-exitcode", timeout=PATIENCE)
    expect_equal(f"exit code of a dry run\n{done.stdout[-2000:]}{done.stderr}", done.returncode, SUCCESS)
