"""A learner does not outlive its run, and where the run was killed the next one on any node takes it out."""

from checks import Failed, check, expect, expect_equal, until
from cluster import get, lab, metalform, on, succeed
from control_plane_node import ETCD, forget, introduce, member_of, members
from deployment import Deployment
from sampling import LONG

NODE, OTHER = "spare-2", "spare-1"
SSH, REFUSED = 3, 7
ADDED = r"add https://.* to etcd as a learner"
STARTED = r"waiting for etcd on .* to start"
# A learner's limit, the lease's, and a deployment.
PATIENCE = 300 + 30 + 180
LEASE = "metalform-etcd-membership"
# Megabits a second: the data takes longer than the power stays on, also beside other work.
SLOW = "0.2"
DATA = "/var/lib/etcd/member/wal"
_CLOSED = """
    table inet scenario {
        chain input { type filter hook input priority 0; tcp dport 2380 reject; }
        chain output { type filter hook output priority 0; tcp dport 2380 reject; }
    }
"""


def tear_down():
    forget(NODE)
    forget(OTHER)
    until("etcd has its healthy voters and no learner", 120, _is_whole)


@check("its host loses power right after it was added: the run takes it out and releases the lease")
def host_is_lost():
    introduce(NODE, ETCD)
    with Deployment(NODE) as running:
        # A member that starts and copies within a second would be promoted before the line is slow.
        with running.stopped_at_line(STARTED):
            lab("slow", NODE, "--line", SLOW)
        running.until("it is in the list", lambda: member_of(NODE))
        # It has its files, and no entry of the log: after a restart it knows nobody who could tell it that it is removed.
        running.until("it has data", lambda: on(NODE, "test", "-d", DATA).returncode == 0, pause=0.05)
        lab("power-off", NODE)
        code = running.finish()
        expect_equal(f"exit code\n{running.stderr}", code, SSH)
    expect_equal("its member", member_of(NODE), None)
    expect_equal("the holder of the lease", get("lease", LEASE, "--namespace=kube-system")["spec"].get("holderIdentity") or "", "")


@check("with power again, the same command converges, although etcd runs on the removed member's data")
def resumes():
    lab("power-on", NODE)
    lab("slow", NODE)
    until("the kubelet has started etcd again", 60, lambda: on(NODE, "pgrep", "-x", "etcd").returncode == 0)
    # The kubelet that the deployment starts reads the manifest before it watches it: it does not see it go and come back.
    succeed(NODE, "systemctl", "stop", "kubelet.service")
    with Deployment(NODE) as running:
        running.succeed(300)
    expect(not member_of(NODE).get("isLearner"), "its etcd member does not vote")
    forget(NODE)


@check("metalform is killed and the host gone: etcd remove-learner waits for the lease to expire, and takes the learner out")
def removed_by_hand():
    introduce(NODE, ETCD)
    with Deployment(NODE) as running:
        running.until("no other member can reach it", lambda: _closed(NODE))
        running.until_line(ADDED)
        running.until("it is in the list", lambda: member_of(NODE))
        running.signal("KILL")
        running.finish()
    lab("power-off", NODE)
    expect(member_of(NODE).get("isLearner"), "the run that was killed left no learner")
    done = metalform("etcd", "remove-learner")
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, REFUSED)
    expect("held by" in done.stderr, done.stderr)
    until("the lease has expired, and the learner is removed", 90, _removes_it, pause=2)
    expect_equal("the abandoned member", member_of(NODE), None)
    done = metalform("etcd", "remove-learner")
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, REFUSED)
    expect("every member votes" in done.stderr, done.stderr)
    forget(NODE)


@check("metalform is killed and the host gone: a deployment of {} takes the learner out", each=[OTHER] if LONG else [])
def run_is_killed(other):
    introduce(NODE, ETCD)
    with Deployment(NODE) as running:
        running.until("no other member can reach it", lambda: _closed(NODE))
        running.until_line(ADDED)
        running.until("it is in the list", lambda: member_of(NODE))
        running.signal("KILL")
        running.finish()
    lab("power-off", NODE)
    expect(member_of(NODE).get("isLearner"), "the run that was killed left no learner")
    introduce(other, ETCD)
    with Deployment(other) as running:
        running.succeed(PATIENCE)
    expect_equal("the abandoned member", member_of(NODE), None)
    expect(not any(member.get("isLearner") for member in members()), "a learner is left")
    expect(member_of(other) is not None, f"{other} has no member")


def _closed(host):
    """Peers of etcd are refused, so that it stays a learner until metalform is killed. nft comes with the packages."""
    return on(host, "nft", "-f", "-", stdin=_CLOSED).returncode == 0


def _removes_it():
    done = metalform("etcd", "remove-learner")
    if done.returncode != 0:
        raise Failed(f"exit {done.returncode}: {done.stderr}")
    return True


def _is_whole():
    return metalform("etcd", "health", timeout=60).returncode == 0
