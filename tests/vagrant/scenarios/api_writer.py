"""Two that append to one list through the API without pause: a pod, and a program outside of the cluster. The list is a key of
a ConfigMap; each append compares the version that was read.
"""

import json
import os
import subprocess
import tempfile
import time

import echo_image
from append_history import APPENDED, REFUSED, gap, parse, violations
from checks import expect, expect_equal, until
from cluster import BOOTSTRAP, LAB, address, apply, get, kubectl

NAMESPACE = "scenario-appends"
# What the entries of each begin with.
_POD, _OUTSIDE = "p", "o"
_PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps/list"
_SECRETS = "/var/run/secrets/kubernetes.io/serviceaccount"


class ApiWriter:
    """From its beginning to its end. `outside` are the masters by whose API servers the one outside goes."""

    def __init__(self, outside):
        self._directory = tempfile.TemporaryDirectory(prefix="metalform-appends-")
        echo_image.load([BOOTSTRAP])
        apply(*_objects())
        until("the pod runs", 60, lambda: get("pod", "writer", f"--namespace={NAMESPACE}")["status"].get("phase") == "Running")
        self._record = os.path.join(self._directory.name, "record")
        program = os.path.join(self._directory.name, "echo")
        with open(os.open(program, os.O_WRONLY | os.O_CREAT, 0o700), "wb") as file:
            file.write(echo_image.program())
        self._write("token", kubectl("create", "token", "writer", f"--namespace={NAMESPACE}", "--duration=2h").strip())
        self._write("ca.crt", get("configmap", "kube-root-ca.crt", f"--namespace={NAMESPACE}")["data"]["ca.crt"])
        urls = [f"https://{address(node)}:6443{_PATH}" for node in outside]
        command = [LAB, "run", "--", program, "append", _OUTSIDE, self._directory.name, *urls]
        with open(self._record, "wb") as record:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=record)

    def check(self, limit):
        """Ends both; the history is linearizable, and no pause was longer than this, in seconds."""
        expect(self._process.poll() is None, "the program outside has ended")
        pod = get("pod", "writer", f"--namespace={NAMESPACE}")["status"]["containerStatuses"][0]
        expect_equal("restarts of the pod", pod["restartCount"], 0)
        self._process.terminate()
        self._process.wait(timeout=10)
        lines = kubectl("logs", "writer", f"--namespace={NAMESPACE}", "--tail=-1").splitlines()
        ended = time.time_ns() // 1000
        with open(self._record, encoding="ascii") as record:
            lines += [line for line in record if line.endswith("\n")]
        failures = [line.strip() for line in lines if line.startswith("#")]
        history = [parse(line) for line in lines if not line.startswith("#")]
        # Of what is written after the logs were read, no operation is known.
        known = {one.entry for one in history if one.what != "read"}
        final = get("configmap", "list", f"--namespace={NAMESPACE}")["data"]["list"].split()
        while final and final[-1] not in known:
            final.pop()
        counts = {what: sum(one.what == what for one in history) for what in ("appended", "refused", "unknown", "read")}
        gaps = dict(_gaps(history, ended))
        shown = ", ".join(f"{_since(*found)} {what}" for what, found in gaps.items())
        print(f"# through the API: {json.dumps(counts)}; at most {shown}", flush=True)
        found = violations(history, final)
        expect(not found, f"the history is not linearizable: {len(found)}: {found[:5]}")
        for what, (seconds, began) in gaps.items():
            expect(seconds <= limit, "\n".join([f"{_since(seconds, began)} {what}", *failures]))

    def end(self):
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait(timeout=10)
        kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", timeout=120)
        echo_image.unload([BOOTSTRAP])
        self._directory.cleanup()

    def _write(self, name, text):
        with open(os.open(os.path.join(self._directory.name, name), os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write(text)


def _gaps(history, ended):
    """Of both together, and of each: they take two ways. Who is slower is refused more often, which is an answer, too: the
    versions were compared in etcd.
    """
    yield "without a confirmed append", gap(history, {APPENDED}, ended)
    for who, prefix in (("the pod", _POD), ("the program outside", _OUTSIDE)):
        own = [one for one in history if one.entry.startswith(prefix)]
        expect(any(one.what == APPENDED for one in own), f"no append of {who} was confirmed")
        yield f"without an answer to an append of {who}", gap(own, {APPENDED, REFUSED}, ended)


def _since(seconds, began):
    return f"{seconds:.2f} s (since {time.strftime('%H:%M:%S', time.gmtime(began / 1e6))} UTC)"


def _objects():
    where = {"namespace": NAMESPACE}
    named = {"metadata": {"name": "writer", **where}}
    rbac = "rbac.authorization.k8s.io"
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "list", **where}, "data": {"list": ""}}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", **named}
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "update"]}]
    yield {"apiVersion": f"{rbac}/v1", "kind": "Role", **named, "rules": rules}
    role, subject = {"apiGroup": rbac, "kind": "Role", "name": "writer"}, {"kind": "ServiceAccount", "name": "writer"}
    yield {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", **named, "roleRef": role, "subjects": [subject]}
    url = f"https://kubernetes.default.svc{_PATH}"
    container = {
        "name": "writer",
        "image": echo_image.REFERENCE,
        "imagePullPolicy": "Never",
        "args": ["append", _POD, _SECRETS, url],
    }
    spec = {
        "nodeName": BOOTSTRAP,
        "serviceAccountName": "writer",
        "tolerations": [{"operator": "Exists"}],
        # A lost datagram costs a resolver 5 s otherwise, more than the writer waits for an answer.
        "dnsConfig": {"options": [{"name": "timeout", "value": "1"}]},
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    yield {"apiVersion": "v1", "kind": "Pod", **named, "spec": spec}
