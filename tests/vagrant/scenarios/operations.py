"""Every operation is recorded: a failed one alone shows what to do, a running one is followed from elsewhere, and the
cluster has a copy of each, with Events on its Node."""

import json

from checks import check, expect, expect_equal
from cluster import BOOTSTRAP, forget, get, introduce, kubectl, lab, metalform, shell
from deployment import Deployment

SUCCESS, SSH, REFUSED = 0, 3, 7
NODE = "spare-1"
# Of a ConfigMap with a record.
_LABEL = "metalform.dev/operation"
_RECORDS = "/var/lib/metalform/operations"


def set_up():
    introduce(NODE)


def tear_down():
    forget(NODE)


@check("a failed operation shows its command, plan, phases, errors, hints and log")
def failed():
    lab("power-off", NODE)
    done = metalform("deploy-node", NODE)
    lab("power-on", NODE)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, SSH)
    shown = metalform("operations", "show").stdout
    error = next(line for line in done.stderr.splitlines() if line.startswith("error: "))
    hint = next(line for line in done.stderr.splitlines() if line.startswith("hint: "))
    told = (error.removeprefix("error: "), hint.removeprefix("hint: "))
    for part in (f"metalform deploy-node {NODE}", "failed, exit code 3", f"Plan:\n  {NODE}: node", "Reachable", "Errors:", "Hints:", "Log:", *told):
        expect(part in shown, f"{part!r} is not in:\n{shown}")


@check("the cluster has its record too, and a Warning on the Node")
def failed_in_cluster():
    newest = _list()[-1]
    data = _in_cluster()[newest["id"]]
    expect_equal("status in the cluster", (data["status"], data["exit"]), ("failed", str(SSH)))
    expect_equal("errors in the cluster", data["errors"].splitlines(), newest["errors"])
    expect_equal("plan in the cluster", data["plan"], f"{NODE}: node\n")
    events = _events("Warning")
    expect("DeploymentFailed" in events, events)
    expect(f"metalform operations show {newest['id']}" in _described(), _described())


@check("a dry run is none")
def dry_run():
    before, copies, described = _list(), sorted(_in_cluster()), _events()
    metalform("deploy-node", NODE, "--dry-run")
    expect_equal("operations", _list(), before)
    expect_equal("operations in the cluster", sorted(_in_cluster()), copies)
    expect_equal("Events", _events(), described)


@check("a running operation is followed to its end, and named to one that would conflict, which can wait")
def followed():
    with Deployment(NODE) as run:
        run.until_line("apply base system")
        done = metalform("deploy-node", NODE)
        expect_equal(f"exit code\n{done.stderr}", done.returncode, REFUSED)
        expect("metalform operations follow" in done.stderr, done.stderr)
        # By its id: without one, the newest is followed, and the one that waits may be recorded by then.
        own = next(operation["id"] for operation in _list() if operation["status"] == "running")
        script = """metalform deploy-node "$1" --wait 120 >/run/scenario-waited 2>&1 &
            metalform operations follow "$2"; wait $!"""
        lines = shell(BOOTSTRAP, script, NODE, own, timeout=240).splitlines()
        run.succeed()
    expect(lines[-1] == f"metalform deploy-node {NODE}: succeeded", "\n".join(lines[-5:]))
    expect(any("End state verified" in line for line in lines), "\n".join(lines))
    waited = shell(BOOTSTRAP, "cat /run/scenario-waited; rm /run/scenario-waited")
    expect("the other operation on this host to end" in waited, waited)


@check("kubectl describe node shows a deployment from its beginning to its end")
def described():
    events, shown = _events("Normal"), _described()
    for reason in ("DeploymentBegun", "DeploymentCompleted"):
        expect(reason in events and reason in shown, f"{reason} is not in:\n{shown}")
    copies = _in_cluster()
    for operation in _list()[-3:]:
        expect_equal(f"status of {operation['id']}", copies[operation["id"]]["status"], operation["status"])


@check("without the records on disk, list and show have the cluster's")
def disk_lost():
    before, shown = _list(), metalform("operations", "show").stdout
    shell(BOOTSTRAP, 'mv "$1" "$1.moved"', _RECORDS)
    try:
        copied, again = _list(), metalform("operations", "show").stdout
    finally:
        shell(BOOTSTRAP, 'rm -rf "$1"; mv "$1.moved" "$1"', _RECORDS)
    expect(copied, "the cluster has no records")
    expect_equal("operations", copied[-3:], before[-3:])
    expect_equal("the newest", again, shown)


@check("one that is killed is listed as killed, with the command that resumes it")
def killed():
    with Deployment(NODE) as running:
        running.killed_at_line(rf"^{NODE}: Reachable")
    expect_equal("status", _list()[-1]["status"], "killed")
    shown = metalform("operations", "show").stdout
    expect(f"run `metalform deploy-node {NODE}` again; it resumes" in shown, shown)


@check("the next operation records in the cluster that it was killed")
def killed_in_cluster():
    identifier = _list()[-1]["id"]
    done = metalform("deploy-node", NODE)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, SUCCESS)
    expect_equal("status in the cluster", _in_cluster()[identifier]["status"], "killed")


def _list():
    done = metalform("operations", "list", "-o", "json")
    expect_equal(f"exit code\n{done.stderr}", done.returncode, SUCCESS)
    return json.loads(done.stdout)


def _in_cluster():
    maps = get("configmaps", "--namespace=kube-system", "--selector", _LABEL)["items"]
    expect(len(maps) <= 50, f"{len(maps)} records are in the cluster")
    for one in maps:
        expect_equal(f"label of {one['metadata']['name']}", one["metadata"]["labels"][_LABEL], one["data"]["status"])
    return {one["data"]["id"]: one["data"] for one in maps}


def _events(*types):
    """The reasons of metalform's Events on the Node, in the order in which they happened."""
    events = get("events", "--namespace=default", "--field-selector", f"involvedObject.kind=Node,involvedObject.name={NODE}")
    own = [event for event in events["items"] if event["reportingComponent"] == "metalform"]
    own.sort(key=lambda event: event["eventTime"])
    return [event["reason"] for event in own if not types or event["type"] in types]


def _described():
    return kubectl("describe", "node", NODE)
