"""Nodes leave the cluster within budgets and without a failed request, and come back; what it needs stays."""

import re

import echo_image
from api_writer import ApiWriter
from checks import State, check, expect, expect_equal, until
from cluster import (
    BOOTSTRAP,
    NODES,
    address,
    apply,
    begin,
    forget,
    get,
    introduce,
    kubectl,
    lab,
    manifest,
    metalform,
    on,
    ready,
    shell,
    with_role,
)
from control_plane_node import etcdctl, member_of
from etcd_voters import expect_voters
from sampling import sample

SUCCESS, SSH, HOST, API, REFUSED = 0, 3, 4, 6, 7
WORKER, MASTER, ASKER = "spare-1", "master-3", "node-1"
NAMESPACE = "scenario-remove"
# Seconds in which a writer may have no confirmation: the Service of the API has the address of a master that has died until
# its lease there expires after 15 s, and a request to it takes 2.
GAP = 30
_state = State()
# Asks through the worker's proxy until it is told to stop; prints how often, and each failure.
_ASK = r"""
asked=0
while [ ! -e /run/scenario-stop ]; do
    asked=$((asked + 1))
    kubectl --kubeconfig=/etc/kubernetes/kubelet.conf get node "$1" -o name >/dev/null 2>/run/scenario-error ||
        echo "failed $(date +%T.%N): $(cat /run/scenario-error)"
done
echo "asked $asked"
"""
# Asks a pod from a node: BIRD's routes, and the bridge.
_FETCH = r'exec 3<>"/dev/tcp/$1/8080"; printf "GET / HTTP/1.0\r\n\r\n" >&3; cat <&3'
# What must not run on a host that has left.
_PROCESSES = ["pgrep", "-l", "-x", "kubelet|kube-proxy|etcd|kube-apiserver|kube-controller|kube-scheduler|echo"]


def set_up():
    introduce(WORKER)
    done = metalform("deploy-node", WORKER)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, SUCCESS)
    echo_image.load([WORKER])
    labels = {"app": "echo"}
    container = {
        "name": "echo",
        "image": echo_image.REFERENCE,
        "imagePullPolicy": "Never",
        "args": ["serve", "here"],
        "readinessProbe": {"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1},
    }
    pod = {
        "nodeSelector": {"kubernetes.io/hostname": WORKER},
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "echo", "namespace": NAMESPACE},
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "echo", "namespace": NAMESPACE},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
        },
    )
    until("its pod is ready", 60, lambda: get("deployment", "echo", "-n", NAMESPACE)["status"].get("readyReplicas") == 1)
    until("its budget is known", 30, lambda: get("pdb", "echo", "-n", NAMESPACE)["status"].get("currentHealthy") == 1)
    _state["writer"] = ApiWriter(with_role("master"))


def tear_down():
    if "writer" in _state:
        _state["writer"].end()
    kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", timeout=120)
    forget(WORKER)


@check("a dry run names the budget that would block the removal, and changes nothing")
def dry_run():
    done = _remove(SUCCESS, WORKER, "--dry-run")
    expect("cordon the node" in done.stdout and "disruption budget" in done.stdout, done.stdout)
    expect(not _is_cordoned(), "the node is cordoned")


@check("a budget blocks the removal: it is shown, and the node is uncordoned again")
def blocked():
    done = _remove(API, WORKER, "--drain-timeout", "5")
    expect(f"{NAMESPACE}/echo-" in done.stderr and "disruption budget" in done.stderr, done.stderr)
    expect(not _is_cordoned() and ready(WORKER), "the node is cordoned")


@check("what an administrator has cordoned stays so")
def stays_cordoned():
    kubectl("cordon", WORKER)
    _remove(API, WORKER, "--drain-timeout", "3")
    expect(_is_cordoned(), "the node is uncordoned")
    kubectl("uncordon", WORKER)


@check("the bootstrap node, a Node that is Ready and --offline: refused, and nothing is changed")
def refused():
    done = _remove(REFUSED, BOOTSTRAP)
    expect("only it has the CA keys" in done.stderr, done.stderr)
    done = _remove(REFUSED, ASKER, "--offline")
    expect("it is Ready" in done.stderr, done.stderr)
    expect(all(ready(node) for node in NODES), "a node is not Ready")


@check("without the budget the worker leaves: no Node, and nothing of Kubernetes runs there")
def worker_leaves():
    kubectl("delete", "pdb", "echo", "-n", NAMESPACE)
    _remove(SUCCESS, WORKER)
    _expect_gone(WORKER)


@check("and it comes back by the same manifest")
def worker_comes_back():
    _deploy(WORKER)


@check("its Node is deleted while it runs, and applied again: pods from before answer in its new part of the pod network")
def node_deleted():
    # Its images left with it.
    echo_image.load([WORKER])
    until("its pod is ready again", 60, _pod_is_ready)
    before, pod = get("node", WORKER)["spec"]["podCIDR"], _pod()["metadata"]["uid"]
    kubectl("delete", "node", WORKER)
    _deploy(WORKER)
    network = get("node", WORKER)["spec"]["podCIDR"]
    expect(network != before, f"it has {before} again: this check shows nothing")
    until("its pod has an address of the new part", 60, lambda: _pod()["status"].get("podIP", "").startswith(network.rpartition(".")[0] + "."))
    until("its pod is ready", 60, _pod_is_ready)
    expect_equal("the pod", _pod()["metadata"]["uid"], pod)
    answer = on(ASKER, "timeout", "5", "bash", "-c", _FETCH, "bash", _pod()["status"]["podIP"])
    expect("here" in answer.stdout, f"{answer.stdout}{answer.stderr}")
    done = metalform("deploy-node", WORKER, "--dry-run", "--detailed-exitcode")
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, SUCCESS)


@check("a master whose etcd leads leaves, and no request through another node's proxy fails meanwhile")
def master_leaves():
    etcdctl("move-leader", f"{member_of(MASTER)['ID']:x}", endpoint=_endpoints())
    on(ASKER, "rm", "-f", "/run/scenario-stop")
    asking = begin(ASKER, "sh", "-c", _ASK, "sh", ASKER)
    try:
        done = _remove(SUCCESS, MASTER)
        expect("3 -> 2 voters, quorum 2 -> 2" in done.stderr and "lead etcd" in done.stderr, done.stderr)
    finally:
        on(ASKER, "touch", "/run/scenario-stop")
    output, _ = asking.communicate(timeout=30)
    asked = re.search(r"asked (\d+)", output)
    expect(asked and int(asked[1]) > 20 and "failed" not in output, output)
    _expect_gone(MASTER)
    expect_voters([node for node in with_role("etcd") if node != MASTER])


@check("no proxy has its API server any more")
def no_proxy():
    for node in NODES:
        if node != MASTER:
            config = shell(node, "cat /etc/haproxy/haproxy.cfg")
            expect(address(MASTER) not in config, f"{node}: {config}")


@check("and it comes back, with its etcd member")
def master_comes_back():
    _deploy(MASTER)
    expect_voters(with_role("etcd"))


def _removed_and_replaced():
    lab("power-off", MASTER)
    done = _remove(SSH, MASTER)
    expect("--offline" in done.stderr, done.stderr)
    until("its Node is not Ready", 90, lambda: _ready_status(MASTER) != "True")
    _remove(SUCCESS, MASTER, "--offline")
    expect(on(BOOTSTRAP, "kubectl", "get", "node", MASTER).returncode != 0, "the Node exists")
    expect_voters([node for node in with_role("etcd") if node != MASTER])
    introduce(MASTER)
    _deploy(MASTER, applied=True)
    expect_voters(with_role("etcd"))


def _replaced_at_once():
    uid = get("node", MASTER)["metadata"]["uid"]
    lab("power-off", MASTER)
    until("its Node is not Ready", 90, lambda: _ready_status(MASTER) != "True")
    introduce(MASTER)
    done = metalform("deploy-node", MASTER)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, HOST)
    for part in ("machine id", "no data of its etcd member", "--replace"):
        expect(part in done.stderr, done.stderr)
    done = metalform("deploy-node", MASTER, "--replace")
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, SUCCESS)
    expect(ready(MASTER), "it is not Ready")
    expect_equal("the Node's uid", get("node", MASTER)["metadata"]["uid"], uid)
    expect_voters(with_role("etcd"))


# Each begins and ends with three masters that vote.
DEATHS = {
    "without --offline the error leads to it, with it the others go on without; another machine takes its place": _removed_and_replaced,
    "a machine that is put in its place is refused, with what differs; with --replace it is that node": _replaced_at_once,
}


@check("a master has died: {}", each=sample("remove_node", DEATHS, 1))
def master_dies(how):
    DEATHS[how]()


@check("what a pod and a program outside have appended through the API meanwhile is linearizable")
def history():
    _state["writer"].check(GAP)


def _endpoints():
    """Of all: a member hands over its own leadership alone."""
    return ",".join(f"https://{address(node)}:2379" for node in with_role("etcd"))


def _remove(code, node, *options):
    done = metalform("remove-node", node, *options)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, code)
    return done


def _deploy(node, applied=False):
    if not applied:
        apply(manifest(node))
    done = metalform("deploy-node", node)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, SUCCESS)
    expect(ready(node), "it is not Ready")


def _pod():
    (pod,) = get("pods", "-n", NAMESPACE, "-l", "app=echo")["items"]
    return pod


def _pod_is_ready():
    return any(each["type"] == "Ready" and each["status"] == "True" for each in _pod()["status"].get("conditions", []))


def _is_cordoned():
    return get("node", WORKER)["spec"].get("unschedulable", False)


def _ready_status(node):
    conditions = get("node", node)["status"]["conditions"]
    return next(each["status"] for each in conditions if each["type"] == "Ready")


def _expect_gone(node):
    expect(on(BOOTSTRAP, "kubectl", "get", "node", node).returncode != 0, "the Node exists")
    running = on(node, *_PROCESSES)
    expect_equal("what runs on its host", running.stdout, "")
