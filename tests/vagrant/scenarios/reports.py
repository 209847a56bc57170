"""The one JSON document that `bootstrap` and `deploy-node` print with `-o json`."""

import json
import re

from checks import Failed, expect, expect_equal

VERSION = "metalform.dev/v1alpha1"


class Report:
    """`{"apiVersion", "kind", "hosts": [{"host", "outcome", "phases": [...], ...}]}`."""

    def __init__(self, text):
        try:
            self.document = json.loads(text)
        except ValueError as error:
            raise Failed(f"standard output is not one JSON document: {error}\n{text[:2000]}") from None
        expect(isinstance(self.document, dict), f"not an object: {text[:200]}")
        expect_equal("apiVersion", self.document.get("apiVersion"), VERSION)
        expect(self.document.get("kind"), "there is no kind")
        self.hosts = {host["host"]: host for host in self.document.get("hosts", [])}

    def phases(self, host):
        """In order: `{"phase", "start", "seconds", "changed", "actions": [...]}`."""
        return self.hosts[host]["phases"]

    def actions(self, host):
        """The sentences of all actions of a host."""
        return [action["action"] for phase in self.phases(host) for action in phase["actions"]]

    def files(self):
        """Every path that the document lists as written: see `_paths`."""
        return set(_paths(self.document))


# Kinds whose name is a path, and the header of a unified diff.
_ID = re.compile(r"[a-z_]+:(/.*)")
_DIFF = re.compile(r"^\+\+\+ (/\S.*)$", re.M)


def _paths(value, key=None):
    """Fields `path`, lists `paths` and `files`, resource ids such as `file:/etc/motd`, and headers of diffs."""
    if isinstance(value, dict):
        for name, child in value.items():
            yield from _paths(child, name)
    elif isinstance(value, list):
        for child in value:
            yield from _paths(child, key)
    elif isinstance(value, str):
        if key in ("path", "paths", "files") and value.startswith("/"):
            yield value
        elif key == "resource" and (found := _ID.fullmatch(value)):
            yield found[1]
        elif key == "diff":
            yield from _DIFF.findall(value)


def expect_unchanged(done):
    """An `expand -o json` that found every node as it should be."""
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    outcomes = {host["outcome"] for host in Report(done.stdout).hosts.values()}
    expect_equal("outcomes", outcomes, {"unchanged"})


def expect_complete(report, host):
    """What every report of a run has."""
    expect_equal("hosts", list(report.hosts), [host])
    entry = report.hosts[host]
    expect_equal("outcome", entry.get("outcome") in ("changed", "unchanged"), True)
    expect(isinstance(entry.get("seconds"), (int, float)), f"seconds: {entry.get('seconds')!r}")
    expect(report.phases(host), "there are no phases")
    for phase in report.phases(host):
        missing = {"phase", "start", "seconds", "changed", "actions"} - phase.keys()
        expect(not missing, f"{phase.get('phase')}: no {', '.join(sorted(missing))}")
