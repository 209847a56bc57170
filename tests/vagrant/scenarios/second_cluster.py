"""A voter whose data is gone stays down, is reported as such, and is replaced through the others; never a second cluster."""

import json
import re

from checks import Failed, State, check, expect, expect_equal, until
from cluster import BOOTSTRAP, NODES, kubectl, lab, metalform, on, ready, shell, with_role
from control_plane_node import member_of, members
from sampling import sample

ETCD_CLASS = 5
DIRECTORY = "/var/lib/etcd"
# The directory is a mount of the lab, which stays: what a disk holds is moved out of the way instead.
AWAY = f"{DIRECTORY}/disk-away"
MANIFEST = "/etc/kubernetes/manifests/etcd.yaml"
WITNESS = "scenario-second-cluster"
# The one that began the cluster, and one whose static pod was written when others were there.
MEMBERS = ["the first member", "the member that joined last"]
_state = State()


def set_up():
    kubectl("create", "configmap", WITNESS, "--namespace=default")
    _state["last"] = _last_joined()


def tear_down():
    kubectl("delete", "configmap", WITNESS, "--namespace=default", "--ignore-not-found")
    for node in with_role("etcd"):
        if shell(node, f"test -d {AWAY} && echo put back || true"):
            _mount(node)
        shell(node, f"rm -rf {DIRECTORY}/moved-away")
    _expect_whole()


@check("no static pod on a disk would begin a cluster, and the mark of a new one is gone")
def nothing_is_new():
    for node in with_role("etcd"):
        state = re.findall(r"--initial-cluster-state=(\S+)", shell(node, 'cat "$1"', MANIFEST))
        expect_equal(f"--initial-cluster-state of {node}", state, ["existing"])
    shell(BOOTSTRAP, "test ! -e /etc/kubernetes/pki/etcd/new-cluster")


@check("the data of {} is moved away and the host power-cycled: etcd stays down", each=sample("second_cluster: data", MEMBERS, 1))
def data_is_lost(which):
    node = _node(which)
    _state["id"] = member_of(node)["ID"]
    shell(node, f"mv {DIRECTORY}/member {DIRECTORY}/moved-away")
    _power_cycle(node)
    _expect_down(node)
    expect_equal("the id of its member", member_of(node)["ID"], _state["id"])
    _expect_blocked(node, "deploy-node", node)
    if node == BOOTSTRAP:
        _expect_blocked(node, "bootstrap")
    _replace(node)


def _node(which):
    return BOOTSTRAP if which == "the first member" else _state["last"]


def _replace(node):
    done = metalform("deploy-node", node, "--replace-member", timeout=600)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)
    expect(member_of(node)["ID"] != _state["id"], "its member has the id of the one that lost its data")
    _expect_whole()
    again = metalform("deploy-node", node)
    expect_equal(f"exit code\n{again.stderr}", again.returncode, 0)
    expect("(changed=0)" in again.stdout, again.stdout)


@check("the disk of {} is not mounted: etcd stays down, and resumes once it is", each=sample("second_cluster: disk", MEMBERS, 1))
def disk_is_not_mounted(which):
    node = _node(which)
    before = member_of(node)["ID"]
    # As a host boots without its disk: an empty mount point.
    shell(node, f"mkdir {AWAY} && mv {DIRECTORY}/member {AWAY}")
    _power_cycle(node)
    _expect_down(node)
    _expect_blocked(node, "deploy-node", node)
    _mount(node)
    # The kubelet tries again after two minutes at most.
    until("etcd is whole again without any command", 200, _is_whole)
    expect_equal("the id of its member", member_of(node)["ID"], before)
    _expect_whole()


def _mount(node):
    shell(node, f"mv {AWAY}/member {DIRECTORY} && rmdir {AWAY}")


def _power_cycle(node):
    lab("power-off", node)
    lab("power-on", node)


def _expect_down(node):
    """The kubelet has tried to start the pod, and the cluster is the same one."""
    refused = ["journalctl", "-u", "kubelet", "-b", "-q", "--grep", "hostPath type check failed"]
    until(f"the kubelet of {node} refuses to start etcd", 180, lambda: on(node, *refused).stdout)
    expect_equal("etcd processes", on(node, "pgrep", "-x", "etcd").stdout, "")
    shell(node, f"test ! -e {DIRECTORY}/member")
    until("the API has what was written before", 60, lambda: kubectl("get", "configmap", WITNESS, "--namespace=default"))
    expect_equal("etcd's members", len(members()), len(with_role("etcd")))


def _expect_blocked(node, *command):
    done = metalform(*command)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, ETCD_CLASS)
    expect(re.search(rf"error: .*{node}.* data", done.stderr), done.stderr)
    expect(f"deploy-node {node} --replace-member" in done.stderr, done.stderr)


def _last_joined():
    """The one whose static pod names the most members: it joined last of those that are left, whatever came and went since."""

    def named(node):
        flag = re.search(r"--initial-cluster=(\S+)", shell(node, 'cat "$1"', MANIFEST))
        return len(flag[1].split(",")) if flag else 0

    return max((node for node in with_role("etcd") if node != BOOTSTRAP), key=named)


def _is_whole():
    done = metalform("etcd", "health", timeout=60)
    if done.returncode != 0:
        raise Failed(done.stderr or done.stdout)
    listed = json.loads(metalform("etcd", "members", "-o", "json").stdout)
    return {member["name"]: member["status"] for member in listed} == {name: "voter" for name in with_role("etcd")}


def _expect_whole():
    until("etcd has its healthy voters and no learner", 120, _is_whole)
    until("every node is Ready", 120, lambda: all(ready(node) for node in NODES))
    until("the API has what was written before", 60, lambda: kubectl("get", "configmap", WITNESS, "--namespace=default", "--ignore-not-found") is not None)
