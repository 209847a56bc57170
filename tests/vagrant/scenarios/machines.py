"""Machines over a pool of hosts: from `kubectl apply` to nodes; rolled, scaled, interrupted, and given back clean."""

import json
import random
import threading
import time

from checks import State, check, expect, expect_equal, until
from cluster import BOOTSTRAP, NODES, SPARES, address, apply, authorise, delete_node, discard, fingerprint, fresh, get, kubectl, metalform, shell
from sampling import SEED, count

SUCCESS = 0
NAMESPACE, NAME = "kube-system", "pool"
POOL = SPARES
REPLICAS = 3
UNIT = "metalform-machine-controller.service"
# Seconds. A host is inspected within one; three hosts that share two processors are deployed within the other.
INSPECTED, DEPLOYED, ROLLED = 90, 240, 480
# The annotation of `kubectl rollout restart`.
RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"
_INSTANTS = random.Random(f"{SEED} machines")
_state = State()


def set_up():
    for host in POOL:
        fresh(host)
        authorise(host)
        done = metalform(
            "host", "add", host, "--address", address(host), "--host-key", fingerprint(host), "--label", "pool=lab"
        )
        expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, SUCCESS)


def tear_down():
    kubectl("delete", "machinedeployment", NAME, "-n", NAMESPACE, "--ignore-not-found", "--wait=false")
    until("no Machine is left", ROLLED, lambda: not _machines())
    kubectl("delete", "hosts.metalform.dev", "--all", "--wait=true", timeout=120)
    for host in POOL:
        discard(host)
        delete_node(host)


@check("hosts that are added are inspected, and available")
def inspected():
    until("all hosts are available", INSPECTED, lambda: _states() == dict.fromkeys(POOL, "Available"))


@check("three replicas become nodes, by kubectl apply and nothing else")
def created():
    began = time.monotonic()
    apply(_deployment(REPLICAS))
    until("three are available", DEPLOYED, lambda: _available() == REPLICAS)
    print(f"# {REPLICAS} replicas are available after {time.monotonic() - began:.1f} s", flush=True)


@check("a Node has the labels, taints and the provider ID of its Machine, and nothing keeps pods off it that should not")
def described():
    for machine in _machines():
        host, uid = machine["status"]["host"], machine["metadata"]["uid"]
        node = get("node", machine["status"]["nodeRef"]["name"])
        expect_equal("name of the Node", node["metadata"]["name"], host)
        expect_equal("provider ID", node["spec"]["providerID"], f"metalform://{host}/{uid}")
        expect_equal("label", node["metadata"]["labels"].get("scenario"), "machines")
        taints = [(taint["key"], taint.get("value"), taint["effect"]) for taint in node["spec"].get("taints", [])]
        expect_equal("taints", taints, [("scenario", "machines", "PreferNoSchedule")])


@check("metalform machine list and describe, and host list show them")
def shown():
    listed = metalform("machine", "list").stdout
    machine = _machines()[0]
    expect(all(one["metadata"]["name"] in listed for one in _machines()), listed)
    text = metalform("machine", "describe", machine["metadata"]["name"]).stdout
    for part in ("Ready", "HostClaimed", machine["status"]["host"]):
        expect(part in text, f"{part} is not in:\n{text}")
    hosts = metalform("host", "list").stdout
    expect(hosts.count("InUse") == REPLICAS and hosts.count("Available") == len(POOL) - REPLICAS, hosts)


@check("a changed template rolls over all of them, and three are available all the time")
def rolled():
    _state["template"] = _restart()
    with _Watch() as watch:
        until("all are of the new template", ROLLED, _is_rolled)
    print(f"# {watch.looks} looks, at least {watch.least} available", flush=True)
    expect(watch.looks > 20 and watch.least >= REPLICAS, f"only {watch.least} were available")


@check("a rollout whose controller is killed again and again is completed")
def killed():
    _restart()
    for _ in range(count(20, 3)):
        # The instant itself is what is tested: there is no condition to wait for.
        time.sleep(_INSTANTS.uniform(0.5, 12))
        shell(BOOTSTRAP, 'systemctl kill --signal=KILL "$1"; systemctl reset-failed "$1"; systemctl start "$1"', UNIT)
    until("all are of the new template", ROLLED, _is_rolled)


@check("with more replicas than hosts one Machine waits, and says for what")
def exhausted():
    _scale(len(POOL) + 1)
    until("every host has a Machine", DEPLOYED, lambda: _available() == len(POOL))
    waiting = [machine for machine in _machines() if "nodeRef" not in machine.get("status", {})]
    expect_equal("Machines that wait", len(waiting), 1)
    reasons = {condition["type"]: condition["reason"] for condition in waiting[0]["status"]["conditions"]}
    expect_equal("reason", reasons.get("HostClaimed"), "NoHostAvailable")


@check("scaled to one: the other hosts are drained, reset and available again, and their Nodes are gone")
def shrunk():
    _scale(1)
    until("one Machine is left", ROLLED, lambda: len(_machines()) == 1)
    until("the others are available", ROLLED, lambda: list(_states().values()).count("Available") == len(POOL) - 1)
    nodes = {node["metadata"]["name"] for node in get("nodes")["items"]}
    expect_equal("nodes", nodes, set(NODES) | {_machines()[0]["status"]["host"]})
    free = next(host for host, state in _states().items() if state == "Available")
    shell(free, "! pgrep -x kubelet && ! test -e /etc/kubernetes && ! test -e /usr/bin/kubelet")


@check("without its MachineDeployment nothing is left but free hosts")
def deleted():
    kubectl("delete", "machinedeployment", NAME, "-n", NAMESPACE, "--wait=false")
    until("no Machine is left", ROLLED, lambda: not _machines())
    until("all hosts are available", ROLLED, lambda: _states() == dict.fromkeys(POOL, "Available"))


class _Watch:
    """Counts the Machines whose Node is Ready, several times a second."""

    def __init__(self):
        self.looks, self.least = 0, len(POOL)
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
            ready = sum(
                any(one["type"] == "Ready" and one["status"] == "True" for one in machine.get("status", {}).get("conditions", []))
                and "deletionTimestamp" not in machine["metadata"]
                for machine in _machines()
            )
            self.looks, self.least = self.looks + 1, min(self.least, ready)


def _deployment(replicas):
    labels = {"app": "pool"}
    return {
        "apiVersion": "cluster.k8s.io/v1alpha1",
        "kind": "MachineDeployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "metadata": {"labels": {"scenario": "machines"}},
                    "taints": [{"key": "scenario", "value": "machines", "effect": "PreferNoSchedule"}],
                    "versions": {"kubelet": _version()},
                    "providerSpec": {
                        "value": {
                            "cloudProvider": "metalform",
                            "cloudProviderSpec": {"hostSelector": {"matchLabels": {"pool": "lab"}}},
                            "operatingSystem": "debian",
                        }
                    },
                },
            },
        },
    }


def _version():
    return get("node", BOOTSTRAP)["status"]["nodeInfo"]["kubeletVersion"].removeprefix("v")


def _restart():
    """A change of the template that every client makes the same way."""
    stamp = str(time.time_ns())
    patch = {"spec": {"template": {"metadata": {"annotations": {RESTARTED_AT: stamp}}}}}
    kubectl("patch", "machinedeployment", NAME, "-n", NAMESPACE, "--type=merge", "-p", json.dumps(patch))
    return stamp


def _scale(replicas):
    kubectl("scale", "machinedeployment", NAME, "-n", NAMESPACE, f"--replicas={replicas}")


def _is_rolled():
    object_ = get("machinedeployment", NAME, "-n", NAMESPACE)
    status = object_.get("status", {})
    observed = status.get("observedGeneration") == object_["metadata"]["generation"]
    numbers = {status.get(name) for name in ("replicas", "updatedReplicas", "availableReplicas")}
    return observed and numbers == {object_["spec"]["replicas"]}


def _available():
    return get("machinedeployment", NAME, "-n", NAMESPACE).get("status", {}).get("availableReplicas", 0)


def _machines():
    return get("machines.cluster.k8s.io", "-n", NAMESPACE)["items"]


def _states():
    return {host["metadata"]["name"]: host.get("status", {}).get("state") for host in get("hosts.metalform.dev")["items"]}
