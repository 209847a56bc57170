"""Two operations on one host at once: one runs, the other is refused and names the process that runs."""

import re

from checks import check, expect, expect_equal
from cluster import BOOTSTRAP, metalform, shell
from deployment import Deployment

NODE = "node-1"
SUCCESS, REFUSED = 0, 7
_TWICE = """
metalform deploy-node "$1" > /run/scenario-one 2>&1 & one=$!
metalform deploy-node "$1" > /run/scenario-other 2>&1 & other=$!
wait "$one" && first=0 || first=$?
wait "$other" && second=0 || second=$?
echo "$first $one"
echo "$second $other"
cat /run/scenario-one /run/scenario-other
rm /run/scenario-one /run/scenario-other
"""


@check("of two at once one succeeds, and the other is refused with the process of the first")
def refused():
    lines = shell(BOOTSTRAP, _TWICE, NODE, timeout=180).splitlines()
    ends = dict(line.split() for line in lines[:2])
    output = "\n".join(lines[2:])
    expect_equal(f"exit codes\n{output}", sorted(map(int, ends)), [SUCCESS, REFUSED])
    expected = rf"{NODE}: another operation is running on this host: process {ends[str(SUCCESS)]}, (since 20\S+|which has just begun): metalform deploy-node {NODE}, by root"
    expect(re.search(expected, output), output)


@check("a name that is given twice is deployed once")
def twice():
    done = metalform("deploy-node", NODE, NODE)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, SUCCESS)
    expect_equal(f"deployments\n{done.stdout}", done.stdout.count(f"Summary for {NODE}"), 1)


@check("a run that was killed holds nothing")
def killed():
    with Deployment(NODE) as running:
        running.killed_at_line(rf"^{NODE}: Reachable")
    done = metalform("deploy-node", NODE)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, SUCCESS)


@check("a dry run beside a run is not refused")
def dry_run():
    script = 'metalform deploy-node "$1" >/dev/null 2>&1 & run=$!; metalform deploy-node --dry-run "$1"; wait $run'
    shell(BOOTSTRAP, script, NODE, timeout=180)
