"""Every operation is recorded: a failed one alone shows what to do, and a running one is followed from elsewhere."""

import json

from checks import check, expect, expect_equal
from cluster import BOOTSTRAP, forget, introduce, lab, metalform, shell
from deployment import Deployment

SUCCESS, SSH, REFUSED = 0, 3, 7
NODE = "spare-1"


def set_up():
    introduce(NODE)


def tear_down():
    forget(NODE)


@check("a failed operation shows its command, phases, errors, hints and log")
def failed():
    lab("power-off", NODE)
    done = metalform("deploy-node", NODE)
    lab("power-on", NODE)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, SSH)
    shown = metalform("operations", "show").stdout
    error = next(line for line in done.stderr.splitlines() if line.startswith("error: "))
    for part in (f"metalform deploy-node {NODE}", "failed, exit code 3", "Reachable", error.removeprefix("error: ")):
        expect(part in shown, f"{part!r} is not in:\n{shown}")


@check("a dry run is none")
def dry_run():
    before = _list()
    metalform("deploy-node", NODE, "--dry-run")
    expect_equal("operations", _list(), before)


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


@check("one that is killed is listed as killed, with the command that resumes it")
def killed():
    script = 'metalform deploy-node "$1" >/dev/null 2>&1 & sleep 0.5; kill -KILL $!; wait $! || true'
    shell(BOOTSTRAP, script, NODE)
    expect_equal("status", _list()[-1]["status"], "killed")
    shown = metalform("operations", "show").stdout
    expect(f"run `metalform deploy-node {NODE}` again; it resumes" in shown, shown)


def _list():
    done = metalform("operations", "list", "-o", "json")
    expect_equal(f"exit code\n{done.stderr}", done.returncode, SUCCESS)
    return json.loads(done.stdout)
