"""The timer's snapshots of etcd are on two hosts, private, whole, copied again where they are damaged, and not too many."""

import json
import time

from checks import State, check, expect, expect_equal, until
from cluster import BOOTSTRAP, NODES, begin, kubectl, metalform, on, shell, succeed, with_role

DIRECTORY = "/var/lib/metalform/etcd-snapshots"
RECORD = "/var/lib/metalform/nodes.json"
UNIT = "metalform-etcd-snapshot"
# The default of etcd.snapshots.keep.
KEEP = 5
SUCCESS, REFUSED = 0, 7
_state = State()


def set_up():
    # None but those of this scenario.
    succeed(BOOTSTRAP, "systemctl", "stop", f"{UNIT}.timer")
    _clear()


def tear_down():
    _clear()
    on(BOOTSTRAP, "systemctl", "reset-failed", f"{UNIT}.service")
    succeed(BOOTSTRAP, "systemctl", "start", f"{UNIT}.timer")


@check("the timer is enabled, and catches up after a machine was off")
def timer():
    expect_equal("enabled", succeed(BOOTSTRAP, "systemctl", "is-enabled", f"{UNIT}.timer").strip(), "enabled")
    persistent = succeed(BOOTSTRAP, "systemctl", "show", "-P", "Persistent", f"{UNIT}.timer").strip()
    expect_equal("Persistent", persistent, "yes")


@check("the service records the Nodes as well, as they are now")
def nodes_recorded():
    label = "scenario.metalform.dev/rack"
    kubectl("label", "node", NODES[-1], f"{label}=7")
    try:
        _start()
        recorded = {each["metadata"]["name"]: each["metadata"]["labels"] for each in json.loads(succeed(BOOTSTRAP, "cat", RECORD))}
    finally:
        kubectl("label", "node", NODES[-1], f"{label}-")
    expect_equal("Nodes", sorted(recorded), sorted(NODES))
    expect_equal("label", recorded[NODES[-1]].get(label), "7")
    _clear()


@check("the service saves one that is on two hosts with etcd, with one SHA-256, readable by root alone")
def saved():
    _start()
    (one,) = _listed()
    expect_equal("damaged", one["damaged"], [])
    expect_equal("nodes", len(one["nodes"]), 2)
    expect(BOOTSTRAP in one["nodes"] and set(one["nodes"]) <= set(with_role("etcd")), f"{one}")
    _state["name"] = one["name"]
    (_state["other"],) = set(one["nodes"]) - {BOOTSTRAP}
    for node in one["nodes"]:
        modes = succeed(node, "stat", "-c", "%a %U", DIRECTORY, f"{DIRECTORY}/{one['name']}").splitlines()
        expect_equal(f"modes on {node}", modes, ["700 root", "600 root"])
    expect_equal("SHA-256", _digest(_state["other"]), _digest(BOOTSTRAP))
    holders = [node for node in NODES if on(node, "test", "-e", DIRECTORY).returncode == 0]
    expect_equal("hosts with a directory", sorted(holders), sorted(one["nodes"]))


@check("the table has its revision, and the command without a timer saves another")
def by_hand():
    _next_second()
    done = _metalform(SUCCESS, "etcd", "save-snapshots")
    expect(f"on {BOOTSTRAP}, {_state['other']}" in done.stdout, done.stdout)
    table = _metalform(SUCCESS, "etcd", "snapshots").stdout.splitlines()
    expect_equal("lines", len(table), 3)
    for line, one in zip(table[1:], _listed()):
        name, time, revision, *_ = line.split()
        expect_equal("line", [name, time, int(revision)], [one["name"], one["time"], one["revision"]])
        expect(line.endswith("yes") and one["revision"] > 0, line)


@check("a truncated copy is listed as damaged, reported by the next run, and replaced")
def truncated():
    path = f"{DIRECTORY}/{_state['name']}"
    succeed(_state["other"], "truncate", "--size=-4096", path)
    (seen,) = [one for one in _listed() if one["name"] == _state["name"]]
    expect_equal("damaged", [seen["nodes"], seen["damaged"]], [[BOOTSTRAP], [_state["other"]]])
    journal = _start()
    expect(f"{_state['other']}: {_state['name']} was damaged" in journal, journal)
    (seen,) = [one for one in _listed() if one["name"] == _state["name"]]
    expect_equal("damaged", seen["damaged"], [])
    expect_equal("SHA-256", _digest(_state["other"]), _digest(BOOTSTRAP))


@check("a second run at the same time is refused, its unit has failed with the reason, and the next run succeeds")
def at_once():
    held = begin(BOOTSTRAP, "flock", DIRECTORY, "sh", "-c", "echo $$; exec sleep 300")
    holder = held.stdout.readline().strip()
    try:
        done = _metalform(REFUSED, "etcd", "save-snapshots")
        expect("another process is saving a snapshot" in done.stderr, done.stderr)
        cursor = _cursor()
        expect(on(BOOTSTRAP, "systemctl", "start", "--wait", f"{UNIT}.service").returncode != 0, "it did not fail")
        expect_equal("unit", on(BOOTSTRAP, "systemctl", "is-failed", f"{UNIT}.service").stdout.strip(), "failed")
        journal = _journal(cursor)
        expect("another process is saving a snapshot" in journal, journal)
    finally:
        succeed(BOOTSTRAP, "kill", holder)
        held.wait(timeout=10)
    _start()


@check("no more than those to keep are on either host, and files of others stay")
def retention():
    for node in (BOOTSTRAP, _state["other"]):
        succeed(node, "touch", f"{DIRECTORY}/before-upgrade.db")
    oldest = [one["name"] for one in _listed()]
    for _ in range(KEEP):
        _start()
    listed = _listed()
    expect_equal("number", len(listed), KEEP)
    expect(not set(oldest) & {one["name"] for one in listed}, f"{listed}")
    names = sorted([one["name"] for one in listed] + ["before-upgrade.db"])
    for node in (BOOTSTRAP, _state["other"]):
        expect_equal(f"files on {node}", sorted(shell(node, f"ls -A {DIRECTORY}").split()), names)


def _start():
    """Runs the service to its end; returns what it logged."""
    _next_second()
    cursor = _cursor()
    started = on(BOOTSTRAP, "systemctl", "start", "--wait", f"{UNIT}.service", timeout=120)
    journal = _journal(cursor)
    expect_equal(f"exit code\n{journal}", started.returncode, SUCCESS)
    return journal


def _next_second():
    """Two snapshots of one second and one revision would have one name."""
    now = int(time.time())
    until("the next second has begun", 5, lambda: int(time.time()) > now)


def _cursor():
    shown = succeed(BOOTSTRAP, "journalctl", "--lines=0", "--show-cursor")
    return shown.strip().splitlines()[-1].removeprefix("-- cursor: ")


def _journal(cursor):
    succeed(BOOTSTRAP, "journalctl", "--sync")
    return succeed(BOOTSTRAP, "journalctl", "-q", "-u", f"{UNIT}.service", "--output=cat", f"--after-cursor={cursor}")


def _listed():
    return json.loads(_metalform(SUCCESS, "etcd", "snapshots", "-o", "json").stdout)


def _digest(node):
    return succeed(node, "sha256sum", f"{DIRECTORY}/{_state['name']}").split()[0]


def _metalform(code, *words):
    done = metalform(*words)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, code)
    return done


def _clear():
    for node in NODES:
        succeed(node, "rm", "-rf", DIRECTORY)
