"""Two bundles side by side: Machines, and nodes by hand, of an older Kubernetes, and back to that of the cluster."""

import re

import machine_pool as pool
import second_bundle
from checks import check, expect, expect_equal, until
from cluster import BOOTSTRAP, SPARES, forget, get, introduce, kubectl, metalform, shell
from deployment import Deployment
from refusal import expect_refusal

FIRST, SECOND, BY_HAND = SPARES[:3]
ABSENT = "1.33.0"


def set_up():
    second_bundle.bring()
    pool.add(FIRST)
    pool.add(SECOND)
    until("both are available", pool.INSPECTED, lambda: pool.states() == dict.fromkeys([FIRST, SECOND], "Available"))


def tear_down():
    pool.end([FIRST, SECOND])
    forget(BY_HAND)
    second_bundle.remove()
    expect_equal("exit code", metalform("bootstrap").returncode, 0)


@check("a version that no bundle contains takes no host, and the Machine has the reason")
def absent():
    pool.create(1, ABSENT)
    message = until("the reason is there", pool.DEPLOYED, _refusal)
    expect(ABSENT in message and pool.version() in message, message)
    expect_equal("states", pool.states(), dict.fromkeys([FIRST, SECOND], "Available"))
    kubectl("delete", "machinedeployment", pool.NAME, "-n", pool.NAMESPACE)
    until("no Machine is left", pool.ROLLED, lambda: not pool.machines())
    until("the hosts are free", pool.ROLLED, lambda: pool.states() == dict.fromkeys([FIRST, SECOND], "Available"))


@check("bootstrap takes the second bundle: its images are in the registry, its packages are served; again nothing changes")
def taken():
    second_bundle.configure()
    done = metalform("bootstrap")
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    done = metalform("bootstrap")
    expect("(changed=0)" in done.stdout, done.stdout)
    index = f"/bundles/{second_bundle.VERSION}/apt/dists/debian-13/InRelease"
    shell(BOOTSTRAP, 'test -s "/var/lib/metalform/repository$1"', index)


@check("a control plane of an earlier minor version is refused, and nothing was changed for it")
def downgrade():
    with second_bundle.is_first():
        expect_refusal(metalform("bootstrap"), 4, rf"kubernetes {re.escape(pool.version())} .* {second_bundle.VERSION}")
    done = metalform("bootstrap")
    expect("(changed=0)" in done.stdout, done.stdout)


@check("Machines of the older version become nodes")
def older():
    pool.create(1, second_bundle.VERSION)
    until("it is available", pool.DEPLOYED, lambda: pool.available() == 1)
    _expect_kubelets(second_bundle.VERSION)


@check("rolled to the version of the cluster: one Machine is available all the time")
def rolled():
    newer = pool.version()
    pool.set_version(newer)
    least = []

    def is_rolled():
        least.append(sum(map(pool.is_ready, pool.machines())))
        return pool.is_rolled()

    until("all are of the new version", pool.ROLLED, is_rolled)
    _expect_kubelets(newer)
    expect(min(least) >= 1, f"Machines that were ready, look by look: {least}")


@check("deploy-node: a node whose label names the older version has it, with the packages of that bundle")
def by_hand():
    introduce(BY_HAND)
    kubectl("label", "node", BY_HAND, f"metalform.dev/version={second_bundle.VERSION}")
    with Deployment(BY_HAND) as running:
        running.succeed(300)
    expect_equal("kubelet", _kubelet(BY_HAND), f"v{second_bundle.VERSION}")
    sources = shell(BY_HAND, "cat /etc/apt/sources.list.d/metalform.sources")
    expect(f"/bundles/{second_bundle.VERSION}/apt" in sources, sources)


@check("a master of another version than the first bundle's is refused")
def master():
    kubectl("label", "node", BY_HAND, "node-role.kubernetes.io/master=")
    done = metalform("deploy-node", BY_HAND)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 1)
    expect("nodes with the role master have the version of the first bundle" in done.stderr, done.stderr)
    kubectl("label", "node", BY_HAND, "node-role.kubernetes.io/master-")


def _refusal():
    for machine in pool.machines():
        claimed = pool.conditions(machine).get("HostClaimed", {})
        if claimed.get("reason") == "VersionNotInBundle":
            return claimed["message"]
    return None


def _kubelet(node):
    return get("node", node)["status"]["nodeInfo"]["kubeletVersion"]


def _expect_kubelets(version):
    machines = pool.staying()
    nodes = [machine.get("status", {}).get("nodeRef", {}).get("name") for machine in machines]
    expect(all(nodes), f"without a node: {machines}")
    expect_equal("kubelets", {_kubelet(node) for node in nodes}, {f"v{version}"})
