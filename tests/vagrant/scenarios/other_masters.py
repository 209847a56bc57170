"""The bootstrap node is off: the controllers of Machines work on another master, and return with it."""

import contextlib

import machine_pool as pool
from checks import check, expect, until
from cluster import BOOTSTRAP, SPARES, apply, get, kubectl, kubectl_on, lab, succeed, with_role

HOSTS = SPARES[:2]
OTHER = next(node for node in with_role("master") if node != BOOTSTRAP)
# Seconds. A lease is another's 40 s after its last renewal, and is asked for every 5 s.
MOVED, RETURNED, RESET = 75, 60, 120
_LEASE = "metalform-machine-controller"
_SECRET = "scenario-login"
_stack = contextlib.ExitStack()


def set_up():
    key = succeed(BOOTSTRAP, "cat", "/etc/metalform/pki/ssh")
    secret = {"type": "kubernetes.io/ssh-auth", "stringData": {"ssh-privatekey": key}}
    metadata = {"name": _SECRET, "namespace": pool.NAMESPACE}
    apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, **secret})
    reference = f'{{"spec": {{"ssh": {{"keySecretRef": {{"name": "{_SECRET}", "namespace": "{pool.NAMESPACE}"}}}}}}}}'
    for host in HOSTS:
        pool.add(host)
        kubectl("patch", "hosts.metalform.dev", host, "--type=merge", "-p", reference)
    until("both are available", pool.INSPECTED, lambda: pool.states() == dict.fromkeys(HOSTS, "Available"))
    pool.create(1)
    until("one is a node", pool.DEPLOYED, _ready)
    _stack.enter_context(kubectl_on(OTHER))
    lab("power-off", BOOTSTRAP)


def tear_down():
    lab("power-on", BOOTSTRAP)
    _stack.close()
    pool.end(HOSTS)
    kubectl("delete", "secret", _SECRET, "-n", pool.NAMESPACE)


@check("another master has the controllers")
def moved():
    until("it has the lease", MOVED, lambda: _leader() not in ("", BOOTSTRAP))


@check("it drains the node of a Machine that is deleted, and resets its host")
def freed():
    pool.scale(0)
    until("the hosts are free", RESET, lambda: not pool.machines() and pool.states() == dict.fromkeys(HOSTS, "Available"))


@check("it claims a host for a new one")
def claimed():
    pool.scale(1)
    until("it has a host", MOVED, lambda: [one.get("status", {}).get("host") in HOSTS for one in pool.machines()] == [True])


@check("they return to the bootstrap node when it is on again")
def returned():
    expect(_leader() != BOOTSTRAP, "the bootstrap node has the lease")
    lab("power-on", BOOTSTRAP)
    until("it has the lease", RETURNED, lambda: _leader() == BOOTSTRAP)


@check("and the new Machine is a node")
def ready():
    until("it is Ready", pool.DEPLOYED, _ready)


def _ready():
    return pool.available() == 1 and sum(map(pool.is_ready, pool.machines())) == 1


def _leader():
    """The node of the process that has the lease; nothing where none has."""
    spec = get("lease", _LEASE, "-n", pool.NAMESPACE)["spec"]
    return spec.get("holderIdentity", "").partition("/")[0]
