"""The state engine as an operator uses it: metalform on this machine, a roster, hosts without a cluster."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile

from checks import Failed, expect, expect_equal
from cluster import CACHE, LAB, LAB_DIRECTORY

METALFORM = os.environ.get("METALFORM_PROGRAM") or os.path.join(
    os.environ.get("CARGO_TARGET_DIR", os.path.join(CACHE, "target")), "release", "metalform"
)
ROSTER = os.path.join(LAB_DIRECTORY, "roster.yaml")
SSH, HOST = 3, 4


def command(*words):
    """A command line of metalform at the operator's place."""
    return [LAB, "run", "--", METALFORM, *words]


def start(*words):
    """Start metalform and return at once; both streams can be read."""
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command(*words), text=True, **streams)


def run(*words, timeout=180):
    """Run metalform to its end; the result has returncode, stdout and stderr."""
    try:
        return subprocess.run(command(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Failed(f"metalform {' '.join(words)}: still running after {timeout} s") from None


class Tree:
    """A directory with one state, `it`, for one host of the roster."""

    def __init__(self, host, resources, templates=()):
        self.host = host
        self.directory = tempfile.mkdtemp(prefix="metalform-tree-")
        self.state(resources)
        self._write("states/top.yaml", "node: { states: [it] }\n")
        for name, text in dict(templates).items():
            self._write(f"templates/{name}", text)

    def state(self, resources):
        # JSON is YAML, and leaves no doubt about quoting.
        lines = [f"  - {json.dumps(resource)}\n" for resource in resources]
        self._write("states/it.yaml", "about: A state of a scenario.\nresources:\n" + "".join(lines))

    def words(self, verb, *more):
        return (verb, "--tree", self.directory, "--roster", ROSTER, "--on", self.host, *more, "it")

    def run(self, verb, *more, timeout=180):
        return run(*self.words(verb, *more), timeout=timeout)

    def start(self, verb="apply"):
        return start(*self.words(verb))

    def converge(self):
        """Applies the state; a plan then has no change."""
        done = self.run("apply")
        expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)
        plan = self.run("plan", "--detailed-exitcode")
        expect_equal(f"exit code of the plan after it\n{plan.stdout}{plan.stderr}", plan.returncode, 0)

    def remove(self):
        shutil.rmtree(self.directory, ignore_errors=True)

    def _write(self, path, text):
        path = os.path.join(self.directory, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


@contextlib.contextmanager
def tree(host, *resources):
    made = Tree(host, resources)
    try:
        yield made
    finally:
        made.remove()


def expect_failure(done, code, host, *patterns):
    """One line that begins with the host and matches every pattern, and advice."""
    shown = f"\nexit {done.returncode}\n{done.stdout}{done.stderr}"
    expect_equal(f"exit code{shown}", done.returncode, code)
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    expect_equal(f"number of error lines{shown}", len(lines), 1)
    expect(lines[0].startswith(f"error: {host}: "), f"it does not begin with the host{shown}")
    for pattern in patterns:
        expect(re.search(pattern, lines[0]), f"the error does not match {pattern!r}{shown}")
    expect("\nhint: " in f"\n{done.stderr}", f"there is no hint{shown}")


def changed(done):
    """How much was changed on each host."""
    return {host: int(count) for host, count in re.findall(r"^(\S+): +changed=(\d+)", done.stdout, re.M)}
