"""A learner does not outlive its run, and where the run was killed the next one on any node takes it out."""

from checks import check, expect, expect_equal, until
from cluster import get, lab, metalform
from control_plane_node import ETCD, forget, introduce, member_of, members
from deployment import Deployment
from sampling import LONG

NODE, OTHER = "spare-2", "spare-1"
SSH = 3
ADDED = r"add https://.* to etcd as a learner"
# A learner's limit, the lease's, and a deployment.
PATIENCE = 300 + 30 + 180
LEASE = "metalform-etcd-membership"


def tear_down():
    forget(NODE)
    forget(OTHER)
    until("etcd has its healthy voters and no learner", 120, _is_whole)


@check("its host loses power right after it was added: the run takes it out and releases the lease")
def host_is_lost():
    introduce(NODE, ETCD)
    with Deployment(NODE) as running:
        running.until_line(ADDED)
        running.until("it is in the list", lambda: member_of(NODE))
        lab("power-off", NODE)
        code = running.finish()
        expect_equal(f"exit code\n{running.stderr}", code, SSH)
    expect_equal("its member", member_of(NODE), None)
    expect_equal("the holder of the lease", get("lease", LEASE, "--namespace=kube-system")["spec"].get("holderIdentity") or "", "")


@check("with power again, the same command converges")
def resumes():
    lab("power-on", NODE)
    with Deployment(NODE) as running:
        running.succeed(300)
    expect(not member_of(NODE).get("isLearner"), "its etcd member does not vote")
    forget(NODE)


@check("metalform is killed and the host gone: a deployment of {} takes the learner out", each=[OTHER] if LONG else [])
def run_is_killed(other):
    introduce(NODE, ETCD)
    with Deployment(NODE) as running:
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


def _is_whole():
    return metalform("etcd", "health", timeout=60).returncode == 0
