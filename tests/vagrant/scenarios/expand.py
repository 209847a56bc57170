"""Several nodes at once: a plan with the arithmetic of etcd, which is done as it was saved or not at all, and a host that
fails blocks no other."""

import json

from checks import check, expect, expect_equal, until
from cluster import BOOTSTRAP, NODES, delete_node, discard, kubectl, lab, metalform, ready, shell, with_role
from control_plane_node import introduce
from etcd_voters import expect_voters

SUCCESS, CONFIGURATION, SSH, REFUSED = 0, 1, 3, 7
MASTER, ETCD = "spare-1", "spare-2"
BROKEN = "broken"
PLAN = "/run/expand.plan"


def set_up():
    introduce(MASTER, "master", "etcd")
    introduce(ETCD, "etcd")


def tear_down():
    kubectl("delete", "node", BROKEN, "--ignore-not-found")
    shell(BOOTSTRAP, 'rm -f "$1"', PLAN)
    for node in (MASTER, ETCD):
        lab("power-on", node)
        metalform("remove-node", node)
        delete_node(node)
        discard(node)


@check("a dry run shows every step of etcd's voters, and changes nothing")
def dry_run():
    done = _expand(SUCCESS, "--dry-run")
    lines = [line.strip() for line in done.stdout.splitlines()]
    expected = [
        "etcd voters, one change at a time, in this order unless another host is ready first: 3, quorum 2",
        f"{MASTER} joins: 3 -> 4, quorum 2 -> 3, no more failures tolerated than with 3",
        f"{ETCD} joins: 4 -> 5, quorum 3 -> 3",
    ]
    expect(all(line in lines for line in expected), done.stdout[-3000:])
    expect_voters(with_role("etcd"))


@check("after a label is edited, the saved plan is refused, and nothing is changed")
def edited():
    _expand(SUCCESS, "--dry-run", "--out", PLAN)
    expect_equal("mode", shell(BOOTSTRAP, 'stat -c %a "$1"', PLAN).strip(), "600")
    kubectl("label", "node", ETCD, "node-role.kubernetes.io/infra=")
    done = _expand(REFUSED, "--plan", PLAN)
    expect(f"{ETCD}: roles of the Node differ from those in the plan" in done.stderr, done.stderr)
    kubectl("label", "node", ETCD, "node-role.kubernetes.io/infra-")
    expect_voters(with_role("etcd"))
    expect_equal("a node was changed", [node for node in (MASTER, ETCD) if _has_kubelet(node)], [])


@check("the saved plan is carried out, without the Node that is wrong: five voters")
def expanded():
    wrong = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": BROKEN, "labels": {"node-role.kubernetes.io/king": ""}},
    }
    kubectl("apply", "-f", "-", stdin=json.dumps(wrong))
    done = _expand(CONFIGURATION, "--dry-run", "--out", PLAN)
    expect("node-role.kubernetes.io/king" in done.stderr, done.stderr)
    _expand(SUCCESS, "--plan", PLAN)
    expect_voters([*with_role("etcd"), MASTER, ETCD])
    expect(all(ready(node) for node in [*NODES, MASTER, ETCD]), "a node is not Ready")


@check("the same plan once more is refused")
def only_once():
    done = _expand(REFUSED, "--plan", PLAN)
    expect(f"{MASTER}: recorded addresses of the Node differ from those in the plan" in done.stderr, done.stderr)


@check("a Node that is wrong is set aside, and the others are verified")
def wrong_node():
    done = _expand(CONFIGURATION)
    expect("node-role.kubernetes.io/king" in done.stderr, done.stderr)
    kubectl("delete", "node", BROKEN)


@check("again: nothing is changed")
def again():
    report = json.loads(_expand(SUCCESS, "-o", "json").stdout)
    outcomes = {host["host"]: host["outcome"] for host in report["hosts"]}
    expect_equal("outcomes", outcomes, dict.fromkeys([*NODES, MASTER, ETCD], "unchanged"))


@check("a host without power is set aside, with the exit code of SSH, and the others are converged")
def set_aside():
    lab("power-off", ETCD)
    report = json.loads(_expand(SSH, "-o", "json").stdout)
    outcomes = {host["host"]: host["outcome"] for host in report["hosts"]}
    expect_equal("outcomes", outcomes, {**dict.fromkeys([*NODES, MASTER], "unchanged"), ETCD: "failed"})
    lab("power-on", ETCD)


@check("of five voters one is sick: it is removed first, and then the other")
def shrinks():
    shell(ETCD, "mv /etc/kubernetes/manifests/etcd.yaml /root/etcd.yaml")
    until("its member is not healthy", 60, lambda: metalform("etcd", "health").returncode == 5)
    done = metalform("remove-node", MASTER)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 5)
    expect(ETCD in done.stderr and "withdraw" not in done.stderr, done.stderr)
    done = metalform("remove-node", MASTER, ETCD)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, SUCCESS)
    order = [line.split()[-1] for line in done.stdout.splitlines() if line.startswith("Summary for ")]
    expect_equal("order", order, [ETCD, MASTER])
    expect_voters(with_role("etcd"))


def _expand(code, *options):
    done = metalform("expand", *options, timeout=400)
    expect_equal(f"exit code\n{done.stdout[-3000:]}{done.stderr[-3000:]}", done.returncode, code)
    return done


def _has_kubelet(node):
    return shell(node, "test -e /var/lib/kubelet/config.yaml && echo yes || true").strip() == "yes"
