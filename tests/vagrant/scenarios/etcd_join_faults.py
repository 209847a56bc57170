"""What goes wrong while a node joins etcd, and when: at an action that metalform begins, or while its learner copies."""

import json
import random
import time

from checks import Failed, expect, expect_equal, until
from cluster import BOOTSTRAP, address, delete_node, discard, lab, metalform, on, power_off, shell, succeed, with_role
from control_plane_node import ETCD, introduce, member_of, members, remove_member
from deployment import Deployment
from sampling import SEED

NODE, OTHER = "spare-2", "spare-1"
DATA = "/var/lib/etcd"
# The actions of a join, in their order, each as the line that metalform prints when it begins it.
ACTIONS = {
    "prepares the member": r"apply etcd prerequisites$",
    "takes the lease": r"take the lease on etcd membership$",
    "sets aside the data of a removed member": r"set aside the data",
    "adds the learner": r"add https://\S+ to etcd as a learner$",
    "starts the learner": r"apply etcd member$",
    "promotes the learner": r"promote etcd learner",
    "releases the lease": r"release the lease on etcd membership$",
}
# Seconds. A run that cannot reach its host ends; a lease whose holder is dead expires; a learner copies.
SSH_PATIENCE, LEASE, JOIN = 90, 30, 240
# An action is begun and not ended yet, or has just ended.
_LATEST = 0.4
_INSTANTS = random.Random(f"{SEED} etcd_join_faults")
_QUICKLY = 0.01


def begin():
    """A clean host that has never been a member."""
    clear(NODE)
    introduce(NODE, ETCD)


def clear(node):
    """No member, no Node, no disk; and its cables are in, which a cut outlives."""
    lab("power-off", node)
    lab("heal", node)
    remove_member(node)
    delete_node(node)
    discard(node)


# --- metalform or the joiner, at an action


def kill_metalform(action):
    with _run_until(action) as running:
        running.kill()
        code = running.finish(10)
    expect(code in (-9, 137), f"exit {code}:\n{running.stderr}")
    settle()


def cut_power(action):
    with _run_until(action) as running:
        power_off(NODE)
        expect(running.finish(SSH_PATIENCE) != 0, f"it succeeds although the host has no power:\n{running.stdout}")
        _show(running)
    expect_voters()
    lab("power-on", NODE)
    settle()


def _run_until(action):
    """A run that has begun the action, up to 0.4 s ago."""
    begin()
    if ACTIONS[action].startswith("set aside"):
        with _strike("promotes the learner") as running:
            running.kill()
        remove_member(NODE)
    return _strike(action)


def _strike(action):
    running = Deployment(NODE)
    try:
        running.until_line(rf"^{NODE}: +{ACTIONS[action]}", JOIN, pause=_QUICKLY)
        # The instant itself is what is tested: there is no condition to wait for.
        time.sleep(_INSTANTS.uniform(0, _LATEST))
    except BaseException:
        running.__exit__()
        raise
    return running


# --- the link of the joiner


def cut_link_for_a_while():
    """Its learner has begun to copy, or waits for its vote."""
    begin()
    with _strike("starts the learner") as running:
        lab("cut", NODE)
        time.sleep(20)
        lab("heal", NODE)
        running.finish(JOIN)
        _show(running)
    expect_voters()
    settle()


def cut_link_for_good():
    begin()
    with _strike("starts the learner") as running:
        lab("cut", NODE)
        expect(running.finish(SSH_PATIENCE) != 0, f"it succeeds although the host is cut off:\n{running.stdout}")
        _show(running)
    expect_voters()
    # The host never comes back: the next command, whichever it is, finds no learner or ends it.
    done = metalform("deploy-node", with_role(ETCD)[-1], timeout=JOIN)
    expect_equal(f"exit code of the next command\n{done.stderr}", done.returncode, 0)
    expect_equal("learners", [member for member in members() if member.get("isLearner")], [])
    lab("heal", NODE)
    settle()


# --- the leader, while a learner copies


def kill_leader(writer):
    """40 MB at 10 Mbit/s take 32 s."""
    begin()
    writer.fill(40)
    leader = _leader()
    with _strike("prepares the member") as running:
        lab("slow", NODE, "--line", "10")
        running.until("etcd on the joiner has data", lambda: on(NODE, "test", "-d", f"{DATA}/member/snap").returncode == 0)
        shell(leader, 'kill -KILL "$(pgrep -x etcd)"')
        expect(not _votes(NODE), "the learner has copied everything already")
        running.finish(JOIN)
        print(f"# SIGKILL to etcd on {leader}", flush=True)
        _show(running)
        lab("slow", NODE)
    expect_voters()
    settle()


def _leader():
    def leader():
        done = metalform("etcd", "members", "-o", "json")
        return done.returncode == 0 and next((m["name"] for m in json.loads(done.stdout) if m.get("leader")), None)

    return until("a member leads", 30, leader)


# --- the disk of the joiner


def fill_disk_at_start():
    _full_disk("2m", "starts")


def fill_disk_while_copying(writer):
    """etcd reserves two segments of its log, 64 MB each; the database does not fit any more."""
    writer.fill(100)
    _full_disk("160m", "copies")


def _full_disk(size, what):
    begin()
    with Deployment(NODE) as running:
        running.until_line(ACTIONS["prepares the member"], JOIN, pause=_QUICKLY)
        shell(NODE, 'mkdir -p "$2"; mount -t tmpfs -o "size=$1,mode=0700" tmpfs "$2"', size, DATA)
        expect(running.finish(420) != 0, f"it succeeds although the disk is full as etcd {what}:\n{running.stdout}")
        _show(running)
    expect_equal("errors", len(running.errors()), 1)
    expect("etcd" in running.errors()[0], f"etcd is not named: {running.errors()[0]}")
    expect_voters()
    expect_equal("learners", [member for member in members() if member.get("isLearner")], [])
    shell(NODE, 'mount -o remount,size=2g "$1"', DATA)
    settle()


# --- two joins


def join_two_at_once():
    begin()
    clear(OTHER)
    introduce(OTHER, ETCD)
    with Deployment(NODE) as one, Deployment(OTHER) as other:
        one.succeed(JOIN)
        other.succeed(JOIN)
    _expect_health(NODE, OTHER)


# --- afterwards


def settle():
    """The voters are healthy, and the same command makes the joiner one of them."""
    expect_voters()
    began = time.monotonic()
    done = metalform("deploy-node", NODE, timeout=LEASE + JOIN)
    expect_equal(f"exit code of the next run\n{done.stdout}{done.stderr}", done.returncode, 0)
    print(f"# the next run took {time.monotonic() - began:.1f} s", flush=True)
    _expect_health(NODE)


def expect_voters():
    """The members that were there before; one of them may just have been started again."""
    until("the three voters are healthy", 30, lambda: _healthy_voters() >= set(with_role(ETCD)))


def _expect_health(*joined):
    expected = {*with_role(ETCD), *joined}
    until("all members are healthy voters", 30, lambda: _healthy_voters() == expected and len(members()) == len(expected))
    done = metalform("etcd", "health")
    expect_equal(f"exit code of etcd health\n{done.stderr}", done.returncode, 0)


def _healthy_voters():
    done = metalform("etcd", "members", "-o", "json", timeout=60)
    if done.returncode != 0:
        raise Failed(f"exit {done.returncode}: {done.stderr}")
    return {m["name"] for m in json.loads(done.stdout) if (m["status"], m["health"]) == ("voter", "healthy")}


def _votes(node):
    member = member_of(node)
    return bool(member) and not member.get("isLearner")


def _show(running):
    print(f"# the run ended with {running.returncode}: {' '.join(running.errors())[:300]}", flush=True)


def voter_urls():
    return [f"https://{address(node)}:2379" for node in with_role(ETCD)]


def credentials():
    """What a client of etcd needs: name of the file → content."""
    sources = {"ca.crt": "ca.crt", "client.crt": "server.crt", "client.key": "server.key"}
    return {name: succeed(BOOTSTRAP, "cat", f"/etc/kubernetes/pki/etcd/{source}") for name, source in sources.items()}
