"""Hosts of the pool that fail: without power, with a reset that fails, too late, or with a Node that someone deletes."""

import json

import machine_pool as pool
from checks import check, expect, expect_equal, until
from cluster import BOOTSTRAP, NODES, SPARES, begin, get, kubectl, lab, metalform, on, ready, shell
from kubelet_request import CLIENT, certificate_request, denied, node_subject
from sampling import sample

FIRST, SECOND, LATE = SPARES[:3]
# Seconds. A silent host is unreachable after one minute; a missing Node is created again after one.
SILENT, MISSING, RESET, UNHEALTHY = 150, 240, 240, 120
_HOOK = "/etc/metalform/power.d/scenario"
_ALWAYS_OFF = '#!/bin/sh\n[ "$1" != status ] || echo off\n'
# A mount below what a reset removes: it cannot be removed while this is there.
_MOUNT = 'mkdir -p "$1"; mount -t tmpfs scenario "$1"'
_MOUNT_POINT = "/etc/kubernetes/scenario"
_REQUEST = """
    until cp /etc/kubernetes/bootstrap-kubelet.conf /run/scenario.conf 2>/dev/null; do sleep 0.02; done
    printf '%s' "$1" | kubectl --kubeconfig=/run/scenario.conf create --validate=false -f -
    rm /run/scenario.conf
"""


def set_up():
    pool.add(FIRST)
    pool.add(SECOND)
    until("both are available", pool.INSPECTED, lambda: pool.states() == dict.fromkeys([FIRST, SECOND], "Available"))
    pool.create(1)
    _until_available()


def tear_down():
    lab("power-on", FIRST, SECOND)
    pool.end([FIRST, SECOND, LATE])


def _power_cut_while_deploying():
    kubectl("delete", "machine", _machine()["metadata"]["name"], "-n", pool.NAMESPACE, "--wait=false")
    machine = until("another one is being deployed", 60, _deploying)
    host, uid = machine["status"]["host"], machine["metadata"]["uid"]
    lab("power-off", host)
    until("the host is silent", SILENT, lambda: pool.conditions(_of_host(host))["Deployed"]["status"] == "False")
    lab("power-on", host)
    _until_available()
    expect_equal("the Machine and its host", (_machine()["metadata"]["uid"], _machine()["status"]["host"]), (uid, host))


def _power_cut_in_use():
    machine = _machine()
    host = machine["status"]["host"]
    lab("power-off", host)
    until("the host is unreachable", SILENT, lambda: pool.states()[host] == "Unreachable")
    expect_equal("Machines", [one["metadata"]["uid"] for one in pool.machines()], [machine["metadata"]["uid"]])
    lab("power-on", host)
    until("it is in use again", SILENT, lambda: pool.states()[host] == "InUse")
    _until_available()


def _node_deleted():
    machine = _machine()
    host = machine["status"]["host"]
    before = get("node", host)["metadata"]["uid"]
    kubectl("delete", "node", host)
    until("it has a Node again", MISSING, lambda: _node_uid(host) not in (None, before) and ready(host))
    _until_available()
    expect_equal("the Machine", _machine()["metadata"]["uid"], machine["metadata"]["uid"])


def _late_host():
    pool.scale(3)
    _until_available(2)
    waiting = [one for one in pool.machines() if "nodeRef" not in one.get("status", {})]
    expect_equal("reason", pool.conditions(waiting[0])["HostClaimed"]["reason"], "NoHostAvailable")
    pool.add(LATE)
    _until_available(3)
    pool.scale(1)
    until("one Machine is left", pool.DEPLOYED, lambda: len(pool.machines()) == 1)


def _reset_fails():
    machine = _machine()
    host = machine["status"]["host"]
    shell(host, _MOUNT, _MOUNT_POINT)
    kubectl("delete", "machine", machine["metadata"]["name"], "-n", pool.NAMESPACE, "--wait=false")
    until("it is quarantined", RESET, lambda: pool.states()[host] == "Quarantined")
    described = kubectl("describe", "hosts.metalform.dev", host)
    expect("the reset of the host failed, attempts: 3" in described and _MOUNT_POINT in described, described)
    _until_available()
    expect(_machine()["status"]["host"] != host, f"{host} serves a Machine again")
    shell(host, 'umount "$1"', _MOUNT_POINT)
    done = metalform("host", "release", host)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    until("it is available", RESET, lambda: pool.states()[host] == "Available")


def _node_is_unhealthy():
    machine = _machine()
    conditions = [{"type": "Ready", "status": status, "timeout": "5s"} for status in ("False", "Unknown")]
    pool.patch({"remediation": {"unhealthyConditions": conditions}})
    shell(machine["status"]["host"], "systemctl stop kubelet.service")
    until("another Machine has taken its place", UNHEALTHY, lambda: machine["metadata"]["uid"] not in _uids(pool.staying()))
    _until_available()
    until("its host is free again", RESET, lambda: pool.states()[machine["status"]["host"]] == "Available")
    pool.patch({"remediation": None})


def _hook_confirms():
    machine = _machine()
    host = machine["status"]["host"]
    shell(BOOTSTRAP, 'mkdir -p "$(dirname "$1")" && printf "%s" "$2" > "$1" && chmod 0755 "$1"', _HOOK, _ALWAYS_OFF)
    kubectl("patch", "hosts.metalform.dev", host, "--type=merge", "-p", json.dumps({"spec": {"power": {"hook": "scenario"}}}))
    lab("power-off", host)
    kubectl("delete", "machine", machine["metadata"]["name"], "-n", pool.NAMESPACE, "--wait=false")
    until("the hook has confirmed that it is off", SILENT, lambda: pool.states()[host] == "Quarantined")
    until("its Machine is gone", SILENT, lambda: machine["metadata"]["uid"] not in _uids(pool.machines()))
    _until_available()
    expect(host not in {node["metadata"]["name"] for node in get("nodes")["items"]}, f"{host} has a Node")
    lab("power-on", host)
    kubectl("patch", "hosts.metalform.dev", host, "--type=merge", "-p", '{"spec": {"power": null}}')
    shell(BOOTSTRAP, 'rm "$1"', _HOOK)
    done = metalform("host", "release", host)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    until("it is available", RESET, lambda: pool.states()[host] == "Available")


def _uids(machines):
    return {machine["metadata"]["uid"] for machine in machines}


def _controllers_lose_power():
    before = _machine()["metadata"]["uid"]
    pool.restart()
    until("another one is being deployed", 60, _deploying)
    lab("power-off", BOOTSTRAP)
    lab("power-on", BOOTSTRAP)
    until("the rollout is completed", pool.ROLLED, pool.is_rolled)
    _until_available()
    expect(_machine()["metadata"]["uid"] != before, "the Machine was not replaced")


# Each begins and ends with one available Machine.
FAULTS = {
    "the host of the controllers loses power in the middle of a rollout: it is completed once it has power again": _controllers_lose_power,
    "a node that is not Ready for longer than its MachineDeployment allows is replaced, and its host is reset": _node_is_unhealthy,
    "a power hook confirms that a host is off: its Machine is replaced, and the host is in quarantine until it is released": _hook_confirms,
    "a host loses power while it is deployed: its Machine keeps it, and is a node once the host has power": _power_cut_while_deploying,
    "a host without power keeps its Machine, and no other host is claimed in its place": _power_cut_in_use,
    "a Node that is deleted by hand is created again by the same Machine": _node_deleted,
    "a third replica waits for a host, and has it once one is added": _late_host,
    "a host whose reset fails three times is quarantined and serves no Machine; release makes it free": _reset_fails,
}


@check("{}", each=sample("machine_faults", FAULTS, 1))
def fault(what):
    FAULTS[what]()


@check("a kubelet of a Machine changes neither its Machine nor its Host")
def kubelet_is_refused():
    host = _machine()["status"]["host"]
    for kind, name, scope in (("machine", _machine()["metadata"]["name"], ["-n", pool.NAMESPACE]), ("host.metalform.dev", host, [])):
        patch = json.dumps({"metadata": {"annotations": {"scenario": "hostile"}}})
        words = ["kubectl", "--kubeconfig=/etc/kubernetes/kubelet.conf", "patch", kind, name, *scope, "--type=merge", "-p", patch]
        done = on(host, *words)
        expect(done.returncode != 0 and "orbidden" in done.stderr, f"{kind}: exit {done.returncode}: {done.stdout}{done.stderr}")


@check("the join token of a Machine gets no certificate of another node, nor of one of the control plane")
def token_is_pinned():
    requests = [
        certificate_request(f"scenario-{node}", BOOTSTRAP, CLIENT, node_subject(node)) for node in (NODES[-1], BOOTSTRAP)
    ]
    objects = json.dumps({"apiVersion": "v1", "kind": "List", "items": requests})
    # The host of the Machine before may be in its reset still.
    free = until("a host is free", RESET, lambda: next((host for host, state in pool.states().items() if state == "Available"), None))
    # On the host itself: the token is there for a second or two.
    waiting = begin(free, "sh", "-euc", _REQUEST, "sh", objects)
    kubectl("delete", "machine", _machine()["metadata"]["name"], "-n", pool.NAMESPACE, "--wait=false")
    output, _ = waiting.communicate(timeout=pool.DEPLOYED)
    expect_equal(f"exit code\n{output}", waiting.returncode, 0)
    try:
        for request in requests:
            reason = denied(request["metadata"]["name"])
            expect("may not request a certificate for node" in reason, reason)
    finally:
        kubectl("delete", "csr", *(request["metadata"]["name"] for request in requests))
    _until_available()


def _until_available(count=1):
    until(f"{count} are available, and no other Machine is there", pool.DEPLOYED, lambda: pool.available() == count and sum(map(pool.is_ready, pool.machines())) == count)


def _machine():
    (machine,) = pool.staying()
    return machine


def _of_host(host):
    return next(one for one in pool.staying() if one.get("status", {}).get("host") == host)


def _deploying():
    for machine in pool.machines():
        if pool.conditions(machine).get("Deployed", {}).get("reason") == "InProgress":
            return on(machine["status"]["host"], "pgrep", "-x", "dpkg").returncode == 0 and machine
    return None


def _node_uid(name):
    done = on(BOOTSTRAP, "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "get", "node", name, "-o", "jsonpath={.metadata.uid}")
    return done.stdout.strip() or None
