"""`-o json` of deploy-node and bootstrap: one JSON object with phases, actions and outcome."""

from checks import check, expect, expect_equal
from cluster import BOOTSTRAP, forget, introduce, lab, metalform
from reports import Report, expect_complete

NODE = "spare-1"


def set_up():
    introduce(NODE)


def tear_down():
    forget(NODE)


@check("deploy-node of a new node reports its phases and actions")
def deployed():
    report = _report(0, "deploy-node", NODE)
    expect_complete(report, NODE)
    expect_equal("outcome", report.hosts[NODE]["outcome"], "changed")
    expect(report.actions(NODE), "there are no actions")
    expect(sum(phase["changed"] for phase in report.phases(NODE)) > 10, f"changed: {report.phases(NODE)}")


@check("again: the same phases, no action, unchanged")
def unchanged():
    report = _report(0, "deploy-node", NODE)
    expect_complete(report, NODE)
    expect_equal("outcome", report.hosts[NODE]["outcome"], "unchanged")
    expect_equal("changed", sum(phase["changed"] for phase in report.phases(NODE)), 0)


@check("bootstrap on a bootstrap node that needs nothing")
def bootstrap():
    report = _report(0, "bootstrap")
    expect_complete(report, BOOTSTRAP)
    expect_equal("outcome", report.hosts[BOOTSTRAP]["outcome"], "unchanged")


@check("two nodes are one document; one that fails is in it, with its error and exit code")
def failed():
    lab("power-off", NODE)
    try:
        report = _report(3, "deploy-node", NODE, "node-1")
    finally:
        lab("power-on", NODE)
    expect_equal("hosts", sorted(report.hosts), sorted([NODE, "node-1"]))
    expect_equal("outcome of node-1", report.hosts["node-1"]["outcome"], "unchanged")
    entry = report.hosts[NODE]
    expect(entry["outcome"] not in ("changed", "unchanged"), f"outcome of {NODE}: {entry['outcome']}")
    expect(NODE in " ".join(entry.get("errors", [])), f"the errors do not name it: {entry}")


def _report(code, *words):
    done = metalform(*words, "-o", "json")
    expect_equal(f"exit code\n{done.stdout[:2000]}{done.stderr[-2000:]}", done.returncode, code)
    return Report(done.stdout)
