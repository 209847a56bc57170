"""A `metalform deploy-node`, or another operation, in progress: its lines as they are printed, signals to it, and its table."""

import contextlib
import re
import signal
import subprocess
import threading
import time

from checks import Failed, Final, expect_equal, until
from cluster import BOOTSTRAP, LAB, on
from processes import descendants, send

# `Base system   7.80 s  44 changed`, or with the offset of its start before the duration.
_ROW = re.compile(r"^(\S.*?) {2,}((?:\+?[0-9.]+ s *)+)(?: ([0-9]+) changed)?")
_TOTAL = re.compile(r"^Total(?: run time)?:? +([0-9.]+) s", re.M)
_NOT_PHASES = ("total", "sum of")
# By a signal, and as the shell of the lab's host reports it.
_KILLED = (-9, 137)


class Deployment:
    """Started when it is made. `expand` and such have no node."""

    def __init__(self, node, *options, program="metalform", prefix=(), verb="deploy-node"):
        self.node, self.verb = node, verb
        command = [*prefix, program, verb, *([node] if node else []), *options]
        words = [LAB, "exec", BOOTSTRAP, "--", "sh", "-c", 'echo $$; exec "$@"', "sh", *command]
        self._process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._pid = self._process.stdout.readline().strip()
        self.began = time.monotonic()
        self._out, self._err = [], []
        self._readers = [
            threading.Thread(target=lambda stream=stream, lines=lines: lines.extend(stream), daemon=True)
            for stream, lines in ((self._process.stdout, self._out), (self._process.stderr, self._err))
        ]
        for reader in self._readers:
            reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            on(BOOTSTRAP, "kill", "-KILL", self._pid)
            self._process.kill()
            self._process.wait()

    @property
    def stdout(self):
        return "".join(self._out)

    @property
    def stderr(self):
        return "".join(self._err)

    def until_line(self, pattern, seconds=120, **how):
        """Waits until standard error has a line that matches."""
        self.until(f"a line that matches {pattern!r}", lambda: re.search(pattern, self.stderr, re.M), seconds, **how)

    def until(self, sentence, probe, seconds=120, **how):
        """Waits for a condition that must come true before the run ends."""

        def probed():
            seen = probe()
            if not seen and self._process.poll() is not None:
                self._join()
                raise Final(f"{self.verb} ended with {self._process.returncode} before that:\n{self.stdout}{self.stderr}")
            return seen

        until(sentence, seconds, probed, **how)

    def signal(self, name):
        on(BOOTSTRAP, "kill", f"-{name}", self._pid)

    def kill(self):
        """SIGKILL within milliseconds: no command has to be started for it."""
        send(descendants(self._process.pid))

    def kill_within(self, seconds, instants):
        """Kills it up to so many seconds from now; returns whether it still ran. One that has failed by itself is a failure."""
        # The instant itself is what is tested: there is no condition to wait for.
        time.sleep(instants.uniform(0, seconds))
        self.kill()
        code = self.finish(10)
        if code not in (*_KILLED, 0):
            raise Failed(f"{self.verb} ended with {code} before it was killed:\n{self.stdout}{self.stderr}")
        return code in _KILLED

    def killed_at_line(self, pattern):
        """Kills it as soon as standard error has a line that matches; a run that ended before that is a failure."""
        self.until_line(pattern, pause=0.01)
        self.kill()
        code = self.finish(10)
        if code not in _KILLED:
            raise Failed(f"{self.verb} ended with {code} before it was killed:\n{self.stdout}{self.stderr}")

    @contextlib.contextmanager
    def stopped_at_line(self, pattern):
        """It stands still (SIGSTOP) from such a line to the end of the block."""
        self.until_line(pattern, pause=0.01)
        # With nsenter, which stops by itself once its child has stopped, and which nobody would continue.
        running = [self._process.pid, *descendants(self._process.pid)]
        send(running, signal.SIGSTOP)
        try:
            yield
        finally:
            send(reversed(running), signal.SIGCONT)

    def killed_after(self, seconds):
        """Whether it still ran so many seconds after its start, and was killed then."""
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            self.finish(10)
            return True
        self._join()
        return False

    def finish(self, seconds=180):
        """Waits for its end; returns its exit code."""
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Failed(f"{self.verb} {self.node or ''}: still running after {seconds} s\n{self.stderr}") from None
        self.ended = time.monotonic()
        self._join()
        return self.returncode

    @property
    def returncode(self):
        return self._process.returncode

    def succeed(self, seconds=180):
        code = self.finish(seconds)
        expect_equal(f"exit code\n{self.stdout}{self._shown()}", code, 0)
        return self

    def errors(self):
        return [line.rstrip("\n") for line in self._err if line.startswith("error: ")]

    def hints(self):
        return [line.rstrip("\n") for line in self._err if line.startswith("hint: ")]

    def table(self):
        return Table(self.stdout)

    def _shown(self):
        return self.stderr[-3000:]

    def _join(self):
        for reader in self._readers:
            reader.join(timeout=10)


class Table:
    """The summary that deploy-node prints: seconds by phase, and in total."""

    def __init__(self, text):
        self.phases, self.starts = {}, {}
        lines = text.partition("Summary for")[2].splitlines()[1:]
        for line in lines:
            row = _ROW.match(line)
            if not row or row[1].lower().startswith(_NOT_PHASES):
                continue
            seconds = [float(number) for number in re.findall(r"([0-9.]+) s", row[2])]
            self.phases[row[1]] = seconds[-1]
            if len(seconds) > 1:
                self.starts[row[1]] = seconds[0]
        total = _TOTAL.search(text)
        if not self.phases or not total:
            raise Failed(f"no table of phases in:\n{text}")
        self.total = float(total[1])

    @property
    def sum(self):
        return sum(self.phases.values())
