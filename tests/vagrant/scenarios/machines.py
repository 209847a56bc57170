"""Machines over a pool of hosts: from `kubectl apply` to nodes; rolled, scaled, interrupted, and given back clean."""

import random
import threading
import time

import machine_pool as pool
from checks import check, expect, expect_equal, until
from cluster import BOOTSTRAP, NODES, POOL, address, apply, get, kubectl, metalform, shell
from sampling import SEED, count

REPLICAS = 3
WORKLOAD = "scenario-machines"
ALONE = "alone"
# Another Host of a machine that exists.
DOUBLE = "scenario-double"
# Of the pods of the workload, as many run at any time.
BUDGET = 2
# Seconds. The node lifecycle controller looks at Nodes every 5 s; its taint of one that was not Ready goes with a look.
TAINT_REMOVED = 15
# Service accounts: one that may read the metrics, and one that may not.
READER, OTHER = "scenario-metrics-reader", "scenario-metrics-other"
# Prints the response of the controllers' /metrics to a request with the token that is on the standard input.
READ_METRICS = (
    "token=$(cat); { printf 'GET /metrics HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n';"
    " [ -z \"$token\" ] || printf 'Authorization: Bearer %s\\r\\n' \"$token\"; printf '\\r\\n'; } |"
    ' openssl s_client -quiet -verify_quiet -verify_return_error -CAfile /etc/kubernetes/pki/ca.crt'
    ' -verify_ip "$1" -connect "$1:8444" | tr -d "\\r"'
)
_INSTANTS = random.Random(f"{SEED} machines")


def set_up():
    for host in POOL:
        pool.add(host)


def tear_down():
    kubectl("delete", "namespace", WORKLOAD, "--ignore-not-found", timeout=120)
    kubectl("delete", "clusterrolebinding", READER, "--ignore-not-found")
    kubectl("delete", "serviceaccount", READER, OTHER, "-n", pool.NAMESPACE, "--ignore-not-found")
    pool.end(POOL)


@check("hosts that are added are inspected, and available")
def inspected():
    until("all hosts are available", pool.INSPECTED, lambda: pool.states() == dict.fromkeys(POOL, "Available"))


@check("a Host that kubectl creates with the address of a node or of another Host is left alone, and its condition has the reason")
def in_conflict():
    of_pool = POOL[0]
    for other, expected in (
        (BOOTSTRAP, f"is that of the bootstrap node {BOOTSTRAP}"),
        (NODES[-1], f"is that of Node {NODES[-1]}, which no Machine has deployed"),
        (of_pool, f"is that of Host {of_pool}"),
    ):
        pool.create_host(DOUBLE, address(other))
        message = until("the reason is there", pool.INSPECTED, _conflict)
        expect(expected in message, message)
        kubectl("delete", "hosts.metalform.dev", DOUBLE, timeout=60)
    expect_equal("states", pool.states(), dict.fromkeys(POOL, "Available"))


@check("three replicas become nodes, by kubectl apply and nothing else")
def created():
    began = time.monotonic()
    pool.create(REPLICAS)
    until("three are available", pool.DEPLOYED, lambda: pool.available() == REPLICAS)
    print(f"# {REPLICAS} replicas are available after {time.monotonic() - began:.1f} s", flush=True)


@check("a Node has the labels, taints and the provider ID of its Machine, and no other taint")
def described():
    for machine in pool.machines():
        host, uid = machine["status"]["host"], machine["metadata"]["uid"]
        node = get("node", machine["status"]["nodeRef"]["name"])
        expect_equal("name of the Node", node["metadata"]["name"], host)
        expect_equal("provider ID", node["spec"]["providerID"], f"metalform://{host}/{uid}")
        expect_equal("label", node["metadata"]["labels"].get("scenario"), "machines")
        until(f"{host} has the taint of its Machine and no other", TAINT_REMOVED, lambda: _has_only_its_taint(host))


@check("metalform machine list and describe, and host list show them")
def shown():
    listed = metalform("machine", "list").stdout
    machine = pool.machines()[0]
    expect(all(one["metadata"]["name"] in listed for one in pool.machines()), listed)
    text = metalform("machine", "describe", machine["metadata"]["name"]).stdout
    for part in ("Ready", "HostClaimed", machine["status"]["host"]):
        expect(part in text, f"{part} is not in:\n{text}")
    hosts = metalform("host", "list").stdout
    expect(hosts.count("InUse") == REPLICAS and hosts.count("Available") == len(POOL) - REPLICAS, hosts)


@check("their metrics count the hosts, for a service account with the right to read them and for no other")
def measured():
    answers = {}
    for account in (READER, OTHER):
        kubectl("create", "serviceaccount", account, "-n", pool.NAMESPACE)
    subject = f"--serviceaccount={pool.NAMESPACE}:{READER}"
    kubectl("create", "clusterrolebinding", READER, "--clusterrole=metalform:machine-metrics", subject)
    for account in (READER, OTHER):
        token = kubectl("create", "token", account, "-n", pool.NAMESPACE, "--duration=10m").strip()
        answers[account] = shell(BOOTSTRAP, READ_METRICS, address(BOOTSTRAP), stdin=token)
    answers["no token"] = shell(BOOTSTRAP, READ_METRICS, address(BOOTSTRAP), stdin="")
    codes = {account: answer.split(" ", 2)[1] for account, answer in answers.items()}
    expect_equal("status codes", codes, {READER: "200", OTHER: "403", "no token": "401"})
    for line in (f'metalform_hosts{{state="InUse"}} {REPLICAS}', "metalform_leader 1", f"metalform_machines_ready {REPLICAS}"):
        expect(line in answers[READER].splitlines(), f"{line} is not in:\n{answers[READER]}")


@check("a changed template rolls over all of them: three are available all the time, and a disruption budget is kept")
def rolled():
    _run_workload()
    pool.restart()
    with _Watch() as watch:
        until("all are of the new template", pool.ROLLED, pool.is_rolled)
    print(f"# {watch.looks} looks, at least {watch.machines} Machines available and {watch.pods} pods running", flush=True)
    expect(watch.looks > 20, f"only {watch.looks} looks")
    expect(watch.machines >= REPLICAS, f"only {watch.machines} Machines were available")
    expect(watch.pods >= BUDGET, f"only {watch.pods} pods ran")


@check("a pod without a controller, with a volume of its node, is evicted as others are")
def evicted():
    left = kubectl("get", "pod", ALONE, "-n", WORKLOAD, "--ignore-not-found", "-o", "name")
    expect_equal("what is left of it", left.strip(), "")


@check("a label of the template rolls over all of them too, though the controller is killed again and again")
def killed():
    pool.label_nodes("round", "second")
    for _ in range(count(20, 3)):
        # The instant itself is what is tested: there is no condition to wait for.
        time.sleep(_INSTANTS.uniform(0.5, 12))
        shell(BOOTSTRAP, 'systemctl kill --signal=KILL "$1"; systemctl reset-failed "$1"; systemctl start "$1"', pool.UNIT)
    until("all are of the new template", pool.ROLLED, pool.is_rolled)
    nodes = [get("node", machine["status"]["nodeRef"]["name"]) for machine in pool.staying()]
    expect_equal("the label", [node["metadata"]["labels"].get("round") for node in nodes], ["second"] * REPLICAS)


@check("with more replicas than hosts one Machine waits, and its condition has the reason")
def exhausted():
    pool.scale(len(POOL) + 1)
    until("every host has a Machine", pool.DEPLOYED, lambda: pool.available() == len(POOL))
    waiting = [machine for machine in pool.machines() if "nodeRef" not in machine.get("status", {})]
    expect_equal("Machines that wait", len(waiting), 1)
    expect_equal("reason", pool.conditions(waiting[0])["HostClaimed"]["reason"], "NoHostAvailable")


@check("scaled to one: the other hosts are drained, reset and available again, and their Nodes are gone")
def shrunk():
    kubectl("delete", "namespace", WORKLOAD, timeout=120)
    pool.scale(1)
    until("one Machine is left", pool.ROLLED, lambda: len(pool.machines()) == 1)
    until("the others are available", pool.ROLLED, lambda: list(pool.states().values()).count("Available") == len(POOL) - 1)
    nodes = {node["metadata"]["name"] for node in get("nodes")["items"]}
    expect_equal("nodes", nodes, set(NODES) | {pool.machines()[0]["status"]["host"]})
    free = next(host for host, state in pool.states().items() if state == "Available")
    shell(free, "! pgrep -x kubelet && ! test -e /etc/kubernetes && ! test -e /usr/bin/kubelet")


@check("without its MachineDeployment nothing is left but free hosts")
def deleted():
    kubectl("delete", "machinedeployment", pool.NAME, "-n", pool.NAMESPACE, "--wait=false")
    until("no Machine is left", pool.ROLLED, lambda: not pool.machines())
    until("all hosts are available", pool.ROLLED, lambda: pool.states() == dict.fromkeys(POOL, "Available"))


def _conflict():
    condition = pool.conditions(get("hosts.metalform.dev", DOUBLE)).get("Available", {})
    return condition.get("message") if condition.get("reason") == "HostConflict" else None


def _has_only_its_taint(node):
    taints = [(taint["key"], taint.get("value"), taint["effect"]) for taint in get("node", node)["spec"].get("taints", [])]
    expect_equal("taints", taints, [("scenario", "machines", "PreferNoSchedule")])
    return True


def _run_workload():
    labels = {"app": "workload"}
    pod = {
        "nodeSelector": {"scenario": "machines"},
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "pause", "image": _pause()}],
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": labels},
            }
        ],
    }
    metadata = {"name": "workload", "namespace": WORKLOAD}
    template = {"metadata": {"labels": labels}, "spec": pod}
    alone = {
        "nodeSelector": {"scenario": "machines"},
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "pause", "image": _pause(), "volumeMounts": [{"name": "own", "mountPath": "/own"}]}],
        "volumes": [{"name": "own", "emptyDir": {}}],
    }
    apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": WORKLOAD}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ALONE, "namespace": WORKLOAD}, "spec": alone},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": template},
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata,
            "spec": {"minAvailable": BUDGET, "selector": {"matchLabels": labels}},
        },
    )
    until("its pods run", 60, lambda: _pods() == REPLICAS)


def _pause():
    """The image of sandboxes, which is on every host: as the runtime of a host has it."""
    config = shell(BOOTSTRAP, "cat /etc/containerd/config.toml")
    return next(line.split("'")[1] for line in config.splitlines() if line.strip().startswith("sandbox ="))


def _pods():
    """How many pods of the workload are ready, and not being deleted."""
    ready = lambda pod: any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions", []))
    pods = get("pods", "-n", WORKLOAD, "-l", "app=workload")["items"]
    return sum(ready(pod) and "deletionTimestamp" not in pod["metadata"] for pod in pods)


class _Watch:
    """The least number of Machines that are ready and of pods that run, from looks several times a second."""

    def __init__(self):
        self.looks, self.machines, self.pods = 0, len(POOL), REPLICAS
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()

    def _run(self):
        while not self._end.wait(0.3):
            self.machines = min(self.machines, sum(map(pool.is_ready, pool.machines())))
            self.pods = min(self.pods, _pods())
            self.looks += 1
