"""The pool of spare hosts as scenarios use it: one MachineDeployment over it, its Machines, and the controllers' unit."""

import json
import time

from checks import expect_equal, until
from cluster import BOOTSTRAP, address, apply, authorise, delete_node, discard, fingerprint, fresh, get, kubectl, metalform

NAMESPACE, NAME = "kube-system", "pool"
UNIT = "metalform-machine-controller.service"
# Seconds. A host is inspected within the first; the hosts share two processors.
INSPECTED, DEPLOYED, ROLLED = 90, 240, 480
# The annotation of `kubectl rollout restart`.
_RESTARTED_AT = "kubectl.kubernetes.io/restartedAt"


def add(host):
    """A fresh host that the operator adds to the pool."""
    fresh(host)
    authorise(host)
    options = ["--address", address(host), "--host-key", fingerprint(host), "--label", "pool=lab"]
    done = metalform("host", "add", host, *options)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)


def create_host(name, at):
    """As an operator does without metalform."""
    apply({"apiVersion": "metalform.dev/v1alpha1", "kind": "Host", "metadata": {"name": name}, "spec": {"address": at}})


def end(hosts):
    """No MachineDeployment, no Machine, no Host, and the disks of these are gone."""
    kubectl("delete", "machinedeployment,machine", NAME, "-n", NAMESPACE, "--ignore-not-found", "--wait=false")
    until("no Machine is left", ROLLED, lambda: not machines())
    kubectl("delete", "hosts.metalform.dev", "--all", "--wait=true", timeout=120)
    for host in hosts:
        discard(host)
        delete_node(host)


def create(replicas, kubelet=None):
    """A MachineDeployment of so many replicas; the kubelets are of the cluster's version unless one is given."""
    labels = {"app": "pool"}
    template = {"metadata": {"labels": labels}, "spec": _machine(kubelet or version())}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    _apply("MachineDeployment", spec)


def create_machine(kubelet):
    """One Machine that no MachineDeployment has."""
    _apply("Machine", _machine(kubelet))


def _machine(kubelet):
    value = {
        "cloudProvider": "metalform",
        "cloudProviderSpec": {"hostSelector": {"matchLabels": {"pool": "lab"}}},
        "operatingSystem": "debian",
    }
    return {
        "metadata": {"labels": {"scenario": "machines"}},
        "taints": [{"key": "scenario", "value": "machines", "effect": "PreferNoSchedule"}],
        "versions": {"kubelet": kubelet},
        "providerSpec": {"value": value},
    }


def _apply(kind, spec):
    metadata = {"name": NAME, "namespace": NAMESPACE}
    apply({"apiVersion": "cluster.k8s.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})


def version():
    return get("node", BOOTSTRAP)["status"]["nodeInfo"]["kubeletVersion"].removeprefix("v")


def patch(spec):
    kubectl("patch", "machinedeployment", NAME, "-n", NAMESPACE, "--type=merge", "-p", json.dumps({"spec": spec}))


def set_version(kubelet):
    patch({"template": {"spec": {"versions": {"kubelet": kubelet}}}})


def label_nodes(key, value):
    """A change of the template: a label of the Nodes."""
    patch({"template": {"spec": {"metadata": {"labels": {key: value}}}}})


def restart():
    """A change of the template, as every client makes it."""
    patch({"template": {"metadata": {"annotations": {_RESTARTED_AT: str(time.time_ns())}}}})


def scale(replicas):
    kubectl("scale", "machinedeployment", NAME, "-n", NAMESPACE, f"--replicas={replicas}")


def is_rolled():
    deployment = get("machinedeployment", NAME, "-n", NAMESPACE)
    status = deployment.get("status", {})
    observed = status.get("observedGeneration") == deployment["metadata"]["generation"]
    numbers = {status.get(name) for name in ("replicas", "updatedReplicas", "availableReplicas")}
    return observed and numbers == {deployment["spec"]["replicas"]}


def available():
    return get("machinedeployment", NAME, "-n", NAMESPACE).get("status", {}).get("availableReplicas", 0)


def machines():
    return get("machines.cluster.k8s.io", "-n", NAMESPACE)["items"]


def staying():
    """Those that are not being deleted."""
    return [machine for machine in machines() if "deletionTimestamp" not in machine["metadata"]]


def conditions(machine):
    """Type → condition."""
    return {condition["type"]: condition for condition in machine.get("status", {}).get("conditions", [])}


def is_ready(machine):
    return conditions(machine).get("Ready", {}).get("status") == "True" and "deletionTimestamp" not in machine["metadata"]


def states():
    """Host → state."""
    return {host["metadata"]["name"]: host.get("status", {}).get("state") for host in get("hosts.metalform.dev")["items"]}
