"""Ctrl-C during deploy-node: what runs is finished, a learner is taken out, the lease is released, and the same command resumes."""

from checks import check, expect, expect_equal, until
from cluster import get, kubectl, metalform, on, ready
from control_plane_node import ETCD, MASTER, forget, introduce, member_of
from deployment import Deployment

NODE = "spare-2"
INTERRUPTED = 130
# What is running when the signal comes is finished first; none of it takes longer.
PATIENCE = 30
ADDED = r"add https://.* to etcd as a learner"
LEASE = "metalform-etcd-membership"


def set_up():
    introduce(NODE, MASTER, ETCD)


def tear_down():
    forget(NODE)


@check("interrupted while packages are installed: exit code 130, and dpkg is not left half-done")
def during_packages():
    with Deployment(NODE) as running:
        running.until("dpkg runs", lambda: on(NODE, "pgrep", "-x", "dpkg").returncode == 0)
        running.signal("INT")
        _expect_interrupted(running, PATIENCE)
    expect_equal("dpkg --audit", on(NODE, "dpkg", "--audit").stdout, "")


@check("interrupted while its etcd member is a learner: it is taken out, and the lease is released")
def during_learner():
    with Deployment(NODE) as running:
        running.until_line(ADDED)
        # Without its kubelet the member does not start: it stays a learner until it is looked at.
        on(NODE, "systemctl", "kill", "--signal=STOP", "kubelet")
        try:
            running.until("its member is a learner", _is_learner)
            expect(_holder(), "nothing holds the lease while there is a learner")
            running.signal("INT")
            _expect_interrupted(running, PATIENCE)
        finally:
            on(NODE, "systemctl", "kill", "--signal=CONT", "kubelet")
    expect_equal("its etcd member", member_of(NODE), None)
    expect_equal("the holder of the lease", _holder(), "")
    expect_equal("join tokens", _tokens(), "")


@check("interrupted twice: it ends at once")
def twice():
    with Deployment(NODE) as running:
        running.until_line(rf"^{NODE}: ")
        running.signal("INT")
        running.signal("INT")
        _expect_interrupted(running, 3)
    # A lease whose holder was cut short is free when it has expired.
    until("the lease is free", 40, lambda: not _holder() or _expired())


@check("the same command resumes")
def resumes():
    done = metalform("deploy-node", NODE)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)
    expect(ready(NODE), "not Ready")
    expect(not member_of(NODE).get("isLearner"), "its etcd member does not vote")
    expect_equal("the holder of the lease", _holder(), "")
    expect_equal("join tokens", _tokens(), "")


def _expect_interrupted(running, seconds):
    expect_equal(f"exit code\n{running.stderr}", running.finish(seconds), INTERRUPTED)
    expect_equal(f"errors\n{running.stderr}", len(running.errors()), 1)
    expect(running.hints(), f"there is no hint\n{running.stderr}")


def _is_learner():
    return (member_of(NODE) or {}).get("isLearner")


def _lease():
    return get("lease", LEASE, "--namespace=kube-system")["spec"]


def _holder():
    return _lease().get("holderIdentity", "")


def _expired():
    script = 'test "$(date -d "$1" +%s)" -lt "$(($(date +%s) - $2))"'
    lease = _lease()
    return on("bootstrap", "sh", "-c", script, "sh", lease["renewTime"], str(lease["leaseDurationSeconds"])).returncode == 0


def _tokens():
    return kubectl("get", "secrets", "-A", "--field-selector=type=bootstrap.kubernetes.io/token", "-o", "name")
