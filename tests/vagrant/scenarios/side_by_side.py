"""Scenarios shared out over several labs of this machine, each with a demo cluster of its own.

An idle demo cluster takes 0.4 of a processor: it pays from two processors a lab on. The first lab is the caller's and
stays up; the others are brought up for the run and taken down after it.
"""

import os
import re
import subprocess
import sys
import threading
import time

from cluster import LAB, LAB_DIRECTORY

_PREFIX = os.environ.get("METALFORM_LAB", "mfl")
_DEMO = os.path.join(LAB_DIRECTORY, "demo")
_RUN = os.path.join(LAB_DIRECTORY, "scenarios", "run")
_COUNTS = re.compile(r"^(\d+) passed, (\d+) failed$")


class Queue:
    """The scenarios in their order, the parts of one as several; one of `alone` runs while no other does. None begins after
    the deadline, if there is one."""

    def __init__(self, names, alone, deadline):
        self._names, self._alone, self._deadline = list(names), alone, deadline
        self._running, self._exclusive = 0, False
        self._changed = threading.Condition()

    def take(self):
        """The next scenario, once it may begin; None when there is none left."""
        with self._changed:
            while True:
                if not self._names or (self._deadline is not None and time.monotonic() >= self._deadline):
                    return None
                if not self._exclusive:
                    break
                self._changed.wait()
            name = self._names.pop(0)
            if name in self._alone:
                self._exclusive = True
                self._changed.wait_for(lambda: self._running == 0)
            self._running += 1
            return name

    def give_back(self, name):
        with self._changed:
            self._running -= 1
            if name in self._alone:
                self._exclusive = False
            self._changed.notify_all()

    def left(self):
        with self._changed:
            return list(self._names)

    def end(self):
        """No further scenario begins."""
        with self._changed:
            self._names.clear()
            self._changed.notify_all()


class Lab:
    """One lab, by the prefix of its names, and what it has counted."""

    def __init__(self, prefix):
        self.prefix = prefix
        self.passed = self.failed = 0
        self.seconds = {}

    def play(self, name):
        """One scenario (`NAME`, or `NAME 2/4` for a part of it) in a process of its own; its lines come with the lab's name."""
        began = time.monotonic()
        counted = False
        scenario, _, part = name.partition(" ")
        for line, code in self._lines([sys.executable, _RUN, scenario], METALFORM_PART=part or "1/1"):
            if counts := line is not None and _COUNTS.match(line):
                self.passed, self.failed = self.passed + int(counts[1]), self.failed + int(counts[2])
                counted = True
            elif line is not None and not line.startswith("# seed "):
                print(f"{self.prefix}: {line}", flush=True)
            elif code not in (None, 0) and not counted:
                self.miss(f"{name}: exit {code}")
        self.seconds[name] = time.monotonic() - began

    def miss(self, what):
        self.failed += 1
        print(f"{self.prefix}: not ok {what}", flush=True)

    def bring_up(self):
        """The demo cluster; says only that it is there, or how it failed."""
        began = time.monotonic()
        kept, code = [], None
        for line, code in self._lines([_DEMO]):
            kept = [*kept[-40:], line]
        if code != 0:
            print("\n".join(f"{self.prefix}: {line}" for line in kept if line is not None), flush=True)
            self.miss("its demo cluster")
            return False
        print(f"{self.prefix}: # its demo cluster took {time.monotonic() - began:.0f} s", flush=True)
        return True

    def take_down(self):
        subprocess.run([LAB, "down"], env=self._environment(), stderr=subprocess.DEVNULL, check=False)

    def _environment(self, **more):
        return {**os.environ, "METALFORM_LAB": self.prefix, **more}

    def _lines(self, command, **more):
        """Each line of its output with None, and at the end None with its exit code."""
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with subprocess.Popen(command, env=self._environment(**more), text=True, errors="replace", **streams) as running:
            for line in running.stdout:
                yield line.rstrip("\n"), None
        yield None, running.returncode


def play(names, *, labs, times, alone, last, parts, deadline=None):
    """Plays all scenarios `times` times, on that many labs; returns how many checks passed and failed.

    `last` are played in every lab after all others. A scenario of `parts` is played in so many parts, wherever a lab is free.
    A round in which a check failed is the last one. After the deadline only those of `last` begin.
    """
    names = [part for name in names for part in _in_parts(name, parts.get(name, 1))]
    crew = [Lab(_PREFIX), *(Lab(f"{_PREFIX}{number}") for number in range(2, labs + 1))]
    up = {crew[0].prefix}
    try:
        for number in range(1, times + 1):
            began = time.monotonic()
            queue = Queue([name for name in names if name not in last], alone, deadline)
            workers = [threading.Thread(target=_work, args=(lab, queue, last, up)) for lab in crew]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            _report(crew, number, time.monotonic() - began)
            report_late(queue.left())
            if any(lab.failed for lab in crew):
                break
    finally:
        for lab in reversed(crew[1:]):
            lab.take_down()
    return sum(lab.passed for lab in crew), sum(lab.failed for lab in crew)


def _in_parts(name, count):
    return [name] if count == 1 else [f"{name} {number}/{count}" for number in range(1, count + 1)]


def _work(lab, queue, last, up):
    try:
        if lab.prefix not in up:
            if not lab.bring_up():
                return
            up.add(lab.prefix)
        while name := queue.take():
            try:
                lab.play(name)
            finally:
                queue.give_back(name)
        for name in last:
            lab.play(name)
    except BaseException as error:
        lab.miss(f"its scenarios ended: {error}")
        queue.end()
        raise


def report_late(names):
    if names:
        print(f"# not run, the minutes are over: {', '.join(names)}", flush=True)


def _report(crew, number, seconds):
    print(f"# round {number}: {seconds:.0f} s", flush=True)
    for lab in crew:
        slowest = sorted(lab.seconds.items(), key=lambda item: -item[1])
        print(f"# {lab.prefix}: " + ", ".join(f"{name} {taken:.0f} s" for name, taken in slowest), flush=True)
        lab.seconds = {}
