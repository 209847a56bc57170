"""A cluster shrinks to one host and grows to nine with five voters, each in one command; then all nine lose power at once."""

import os
import tempfile
import time

import etcd_join_faults as faults
from api_writer import ApiWriter
from checks import State, check, expect, expect_equal, until
from cluster import (
    BOOTSTRAP,
    LAB,
    NODES,
    SPARES,
    accept_host_key,
    address,
    apply,
    authorise,
    discard,
    fresh,
    get,
    kubectl,
    lab,
    manifest,
    metalform,
    with_role,
)
from control_plane_node import ETCD, described, etcdctl
from etcd_voters import expect_voters
from etcd_writer import PREFIX, Writer, key
from power_return import all_is_back, now

SUCCESS = 0
OTHERS = [node for node in NODES if node != BOOTSTRAP]
VOTERS = ["spare-1", "spare-2"]
CONFIGMAP = "scenario-grow"
# Seconds without a confirmed write, to etcd itself and through the API: an election takes 1 to 2, and a writer 1 or 2 to turn
# to another member.
GAP = 5
PATIENCE = 580
_LIMIT = 90
_state = State()


def set_up():
    for node in SPARES:
        fresh(node)
        authorise(node)
    directory = tempfile.TemporaryDirectory(prefix="metalform-grow-")
    _state["directory"] = directory
    for name, text in faults.credentials().items():
        with open(os.open(os.path.join(directory.name, name), os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write(text)
    # The one member that stays.
    _state["writer"] = Writer(LAB, directory.name, [f"https://{address(BOOTSTRAP)}:2379"])
    until("the first write is confirmed", 10, _state["writer"].confirmed)
    _state["api"] = ApiWriter([BOOTSTRAP])


def tear_down():
    if "writer" in _state:
        _state["writer"].end()
        _state["directory"].cleanup()
    if "api" in _state:
        _state["api"].end()
    kubectl("delete", "configmap", CONFIGMAP, "--namespace=default", "--ignore-not-found")
    leaving = sorted(set(SPARES) & _nodes())
    if leaving:
        _run("remove-node", *leaving)
    for node in SPARES:
        discard(node)
    if not set(NODES) <= _nodes():
        _describe(OTHERS)
        _run("expand")
    etcdctl("del", "--prefix", PREFIX)


@check("all but the bootstrap node are removed in one command: one voter, and no pause for those who write")
def shrinks():
    _timed("from five nodes to one", lambda: _run("remove-node", *OTHERS))
    expect_equal("nodes", _nodes(), {BOOTSTRAP})


@check("eight Nodes are described, and deployed in one command: nine nodes, five voters, and no pause for those who write")
def grows():
    _describe(OTHERS + SPARES)
    for node in SPARES:
        accept_host_key(node)
    _timed("from one node to nine with five voters", lambda: _run("expand"))
    expect_equal("nodes", _nodes(), set(NODES + SPARES))
    expect_voters(_voters())


@check("two of five voters are removed in one command, and join again, without a pause for those who write")
def two_voters_leave():
    _timed("from five voters to three", lambda: _run("remove-node", *VOTERS))
    expect_voters(with_role(ETCD))
    _describe(VOTERS)
    _timed("from three voters to five", lambda: _run("expand"))
    expect_voters(_voters())


@check("every confirmed write is in each voter's data")
def no_write_is_lost():
    writer = _state["writer"]
    writer.end()
    confirmed = writer.confirmed()
    expect_equal("numbers", sorted(confirmed), list(range(1, len(confirmed) + 1)))
    print(f"# {len(confirmed)} writes were confirmed, with a gap of at most {writer.gap(0):.2f} s", flush=True)
    for node in _voters():
        endpoint = f"https://{address(node)}:2379"
        found = set(etcdctl("get", "--prefix", PREFIX, "--keys-only", endpoint=endpoint).split())
        expect_equal(f"confirmed writes that {node} does not have", [each for each in confirmed if key(each) not in found], [])


@check("what a pod and a program outside have read and appended through the API is linearizable")
def api_history():
    _state["api"].check(GAP)


@check(f"all nine lose power at the same instant: every node is Ready again within {_LIMIT} s, and every pod runs again")
def blackout():
    kubectl("create", "configmap", CONFIGMAP, "--namespace=default", "--from-literal=acknowledged=yes")
    lab("power-off", *NODES, *SPARES)
    began, since = time.monotonic(), now()
    lab("power-on", *NODES, *SPARES, timeout=_LIMIT)
    until("every node and pod is as before", _LIMIT - (time.monotonic() - began), lambda: all_is_back(since))
    took = time.monotonic() - began
    print(f"# all is back after {took:.0f} s", flush=True)
    expect(took <= _LIMIT, f"all was back after {took:.0f} s")
    expect_equal("what was acknowledged", get("configmap", CONFIGMAP, "--namespace=default").get("data"), {"acknowledged": "yes"})
    expect_voters(_voters())


@check("and nothing is left to do")
def nothing_to_do():
    _run("expand", "--dry-run", "--detailed-exitcode")


def _describe(nodes):
    """Their Nodes, as the demo has them; two of the spares with etcd alone, the others as workers."""
    apply(*(described(node, ETCD) if node in VOTERS else manifest(node) for node in nodes))


def _run(*words):
    done = metalform(*words, timeout=PATIENCE)
    expect_equal(f"exit code\n{done.stdout[-3000:]}{done.stderr[-3000:]}", done.returncode, SUCCESS)


def _timed(what, action):
    began = time.monotonic()
    action()
    gap = _state["writer"].gap(began)
    print(f"# {what} took {time.monotonic() - began:.0f} s; no write was confirmed for at most {gap:.2f} s", flush=True)
    expect(_state["writer"].runs(), "the writer has ended")
    expect(gap <= GAP, f"no write was confirmed for {gap:.2f} s")


def _nodes():
    return {node["metadata"]["name"] for node in get("nodes")["items"]}


def _voters():
    return [*with_role(ETCD), *VOTERS]
