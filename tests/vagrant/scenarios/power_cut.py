"""One of three masters loses power: the others work on, and it recovers by itself."""

import datetime
import json
import subprocess
import time

from checks import Failed, check, expect, expect_equal, until
from cluster import LAB, NODES, address, get, kubectl, lab, metalform, on, ready, with_role

VICTIM = "master-3"
WORKER = "node-1"
_KUBECTL = ["kubectl", "--kubeconfig=/etc/kubernetes/kubelet.conf", "get", "node", WORKER, "-o", "name"]
_PATIENCE = 10
# Connections through the worker's proxy, spread over all API servers. At a line of input each begins a TLS handshake
# that it never ends, which a live server waits for. Prints how many have ended after that time.
_CONNECTIONS = r"""
for each in 1 2 3 4 5 6 7 8 9; do exec {fd}<>/dev/tcp/127.0.0.1/7443; fds="$fds $fd"; done
echo open
read -r _
for fd in $fds; do printf '\026' >&$fd; done
sleep "$1"
ended=0
for fd in $fds; do read -r -t 0.1 -N 1 -u $fd _; [ $? -gt 128 ] || ended=$((ended + 1)); done
echo $ended
"""
_state = {}


def set_up():
    words = [LAB, "exec", WORKER, "--", "bash", "-c", _CONNECTIONS, "bash", str(_PATIENCE)]
    _state["connections"] = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    expect_equal("the connections", _state["connections"].stdout.readline(), "open\n")
    lab("power-off", VICTIM)
    _state["cut"] = time.monotonic()


def tear_down():
    lab("power-on", VICTIM)


@check(f"kubectl on a worker answers within {_PATIENCE} s of the cut")
def worker_answers():
    done = on(WORKER, *_KUBECTL, timeout=_PATIENCE)
    since = time.monotonic() - _state["cut"]
    expect(done.returncode == 0 and since < _PATIENCE, f"exit {done.returncode} after {since:.1f} s: {done.stderr}")


@check("and twenty more times, each within that time")
def answers_again():
    for _ in range(20):
        done = on(WORKER, *_KUBECTL, timeout=_PATIENCE)
        expect(done.returncode == 0, f"exit {done.returncode}: {done.stderr}")


@check(f"requests under way to its API server end within {_PATIENCE} s, while others go on")
def connections_end():
    ended, _ = _state["connections"].communicate("now\n", timeout=3 * _PATIENCE)
    expect(0 < int(ended) < 9, f"{ended.strip()} of 9 connections ended")


@check("the API takes writes: etcd has two of three")
def takes_writes():
    kubectl("create", "configmap", "scenario-power-cut", "--namespace=default", timeout=_PATIENCE)
    kubectl("delete", "configmap", "scenario-power-cut", "--namespace=default", timeout=_PATIENCE)


@check("metalform etcd health reports the missing member, with etcd's exit code")
def health_reports():
    done = metalform("etcd", "health", timeout=60)
    expect(done.returncode == 5 and VICTIM in done.stdout + done.stderr, f"exit {done.returncode}: {done.stderr}")


@check("with power again, all is as before without any command")
def comes_back():
    _state["on"] = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)
    lab("power-on", VICTIM)
    until(f"{VICTIM} renews its lease", 120, _lease_is_renewed)
    until("every node is Ready", 60, lambda: all(ready(node) for node in NODES))
    until(f"the static pods of {VICTIM} are ready again", 120, _static_pods_are_ready)
    until("etcd has three healthy voters", 60, _etcd_is_healthy)
    server = f"--server=https://{address(VICTIM)}:6443"
    until("its API server is ready", 60, lambda: kubectl(server, "get", "--raw", "/readyz"))


def _lease_is_renewed():
    """Else the node might still be called Ready from before the cut."""
    renewed = get("lease", VICTIM, "--namespace=kube-node-lease")["spec"]["renewTime"]
    return _time(renewed) > _state["on"]


def _static_pods_are_ready():
    for pod in get("pods", "--namespace=kube-system", f"--field-selector=spec.nodeName={VICTIM}")["items"]:
        name = pod["metadata"]["name"]
        for container in pod["status"].get("containerStatuses", []):
            started = container["state"].get("running", {}).get("startedAt")
            if not container["ready"] or not started or _time(started) < _state["on"]:
                raise Failed(f"{name} is not ready, or runs since {started}")
    return True


def _etcd_is_healthy():
    done = metalform("etcd", "health", timeout=60)
    if done.returncode != 0:
        raise Failed(done.stderr or done.stdout)
    members = json.loads(metalform("etcd", "members", "-o", "json").stdout)
    return {m["name"]: m["status"] for m in members} == {name: "voter" for name in with_role("etcd")}


def _time(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
