"""Nodes that exist in the API alone: their leases are renewed and their status says Ready, as a kubelet keeps them."""

import datetime
import threading

from checks import Failed
from cluster import apply, kubectl

import yaml

_LABEL = "bench.metalform.dev/hollow"
# The kubelet's own interval.
_RENEWAL = 10


def _name(number):
    return f"hollow-{number:02}"


def _now(form="%Y-%m-%dT%H:%M:%SZ"):
    return datetime.datetime.now(datetime.timezone.utc).strftime(form)


class Hollow:
    """So many of them, from its beginning to its end."""

    def __init__(self, count):
        self._names = [_name(number) for number in range(count)]
        self._ended = threading.Event()
        self._renewing = threading.Thread(target=self._renew_until_the_end, daemon=True)

    def __enter__(self):
        apply(*(_node(name) for name in self._names))
        statuses = yaml.safe_dump_all({**_node(name), "status": _status()} for name in self._names)
        kubectl("apply", "--server-side", "--force-conflicts", "--subresource=status", "-f", "-", stdin=statuses)
        self._renew()
        self._renewing.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._renewing.join()
        kubectl("delete", "nodes", f"--selector={_LABEL}", "--wait=true")
        kubectl("delete", "leases", "--namespace=kube-node-lease", f"--selector={_LABEL}")

    def _renew_until_the_end(self):
        while not self._ended.wait(_RENEWAL):
            try:
                self._renew()
            except Failed:
                # The next one is in time.
                continue

    def _renew(self):
        leases = yaml.safe_dump_all(_lease(name) for name in self._names)
        kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=leases)


def _node(name):
    metadata = {"name": name, "labels": {_LABEL: "", "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}}
    taint = {"effect": "NoExecute", "key": _LABEL}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": [taint]}}


def _status():
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    return {"conditions": [{**condition, "lastHeartbeatTime": _now(), "lastTransitionTime": _now()}]}


def _lease(name):
    spec = {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": _now("%Y-%m-%dT%H:%M:%S.%fZ")}
    metadata = {"name": name, "namespace": "kube-node-lease", "labels": {_LABEL: ""}}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
