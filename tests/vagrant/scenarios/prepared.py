"""Hosts are prepared from the roster before there is a cluster; a second run changes nothing; one file is corrected alone."""

from checks import check, expect, expect_equal
from cluster import NODES, shell, succeed
from engine import ROSTER, changed, run

WORDS = ["--roster", ROSTER, "--on", "*", "node-base"]
HOST = "node-2"
FILE = "/etc/modules-load.d/metalform-overlay.conf"


@check("node-base is applied to every host of the roster")
def applied():
    done = run("apply", *WORDS)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)
    expect_equal("hosts", sorted(changed(done)), sorted(NODES))


@check("a second time nothing changes on any host")
def nothing_changes():
    done = run("apply", *WORDS)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    expect_equal("changed", changed(done), dict.fromkeys(NODES, 0))
    plan = run("plan", "--detailed-exitcode", *WORDS)
    expect_equal(f"exit code of plan\n{plan.stdout}", plan.returncode, 0)


@check("a file that was touched by hand is the one difference that plan shows")
def one_difference():
    shell(HOST, f"echo by-hand >> {FILE}")
    plan = run("plan", "--detailed-exitcode", *WORDS)
    expect_equal(f"exit code of plan\n{plan.stdout}{plan.stderr}", plan.returncode, 2)
    counts = [line for line in plan.stdout.splitlines() if " to change, " in line]
    expect_equal("hosts with a difference", [line for line in counts if ": 0 to change" not in line], [f"{HOST}: 1 to change, 14 unchanged"])
    diff = plan.stdout.partition("@@")[2].splitlines()[1:]
    moved = [line.strip() for line in diff if line.strip().startswith(("+", "-"))]
    expect_equal(f"lines of the unified diff\n{plan.stdout}", moved, ["-by-hand"])


@check("apply corrects that file alone")
def corrected_alone():
    done = run("apply", *WORDS)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    expect_equal("changed", changed(done), {**dict.fromkeys(NODES, 0), HOST: 1})
    expect_equal("the file", succeed(HOST, "cat", FILE), "overlay\n")
    expect(set(changed(run("apply", *WORDS)).values()) == {0}, "a third apply changed something")
