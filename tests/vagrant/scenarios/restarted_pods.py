"""A file that only the start of a static pod reads: the pod is restarted when it changes, and the run waits for that."""

import json

from changed_tree import push_tree
from checks import check, expect, expect_equal
from cluster import BOOTSTRAP, get, metalform, shell, with_role
from control_plane_node import MASTER

NODE = next(node for node in with_role(MASTER) if node != BOOTSTRAP)
TREE = "/root/changed-tree"
POLICY = "kube-apiserver/audit-policy.yaml.j2"
RULE = "  # No content of secrets."
PODS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
_state = {}


def _pods():
    """By name: the kubelet's hash of the manifest that the pod was made from, and when its container started."""
    names = [name for name in PODS if name != "etcd" or NODE in with_role("etcd")]
    pods = {name: get("pod", "-n", "kube-system", f"{name}-{NODE}") for name in names}
    return {name: (pod["metadata"]["annotations"]["kubernetes.io/config.hash"], _started(pod)) for name, pod in pods.items()}


def _started(pod):
    return pod["status"]["containerStatuses"][0]["state"].get("running", {}).get("startedAt")


def _deploy(*words):
    done = metalform("deploy-node", NODE, *words)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)


def set_up():
    _deploy()
    _state["before"] = _pods()


def tear_down():
    shell(BOOTSTRAP, 'rm -rf "$1"', TREE)
    _deploy()
    _state.clear()


@check("each static pod has the digest of what it reads in its manifest and in the API")
def digests():
    for name in _state["before"]:
        pod = get("pod", "-n", "kube-system", f"{name}-{NODE}")
        digest = pod["metadata"]["annotations"].get("metalform.dev/config-digest", "")
        expect(digest.startswith("sha256:"), f"{name}: {json.dumps(pod['metadata']['annotations'])}")
        expect(digest in shell(NODE, 'cat "/etc/kubernetes/manifests/$1.yaml"', name), f"{name}: another digest on the disk")


@check("a changed audit policy restarts the API server, no other pod, and deploy-node ends after the restart")
def audit_policy():
    push_tree(TREE, POLICY, RULE, f"  # A rule that no request meets.\n  - level: None\n    users: [scenario]\n{RULE}")
    _deploy("--tree", TREE)
    before, after = _state["before"], _pods()
    (old, stopped), (new, started) = before["kube-apiserver"], after["kube-apiserver"]
    expect(old != new and started and started != stopped, f"not restarted: {before} {after}")
    # Their containers may restart: they lose their leases with the API server.
    others = [name for name in after if name != "kube-apiserver" and after[name][0] != before[name][0]]
    expect_equal("other pods of another manifest", others, [])


@check("the same again changes nothing")
def again():
    before = _pods()
    _deploy("--tree", TREE)
    expect_equal("the API server", _pods()["kube-apiserver"], before["kube-apiserver"])
