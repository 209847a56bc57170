"""One run of the benchmark: clean hosts, every scenario in turns, then memory. One run is one set of figures."""

import contextlib
import shutil
import statistics
import subprocess

from . import floor, inventory, measure, quiet, wire
from .failure import BenchError
from .place import LAB, state
from .scenario import HOSTS

# A run that others disturbed is made again so often; then it counts, and is marked.
_ATTEMPTS = 6
# All engines must agree on what is right before a no-op can be measured. The second round is for what an engine
# writes in its own way once (the spacing of sysctl.d).
_ROUNDS = 3
_PATIENCE = 30 * 60
# Memory is looked at in these, so often and so closely.
_MEMORY, _MEMORY_RUNS, _SAMPLE_SECONDS = ("noop1", "noop4"), 3, 0.004


class Session:
    def __init__(self, columns, selection, hasty, say):
        self.selection, self.hasty, self.say = selection, hasty, say
        self.patience = quiet.Patience(0 if hasty else _PATIENCE, say)
        self.judge = next(column for column in columns if column.name == "floor")

    def prepare(self):
        """Inventories, the floor's scripts: all that is made before a clock runs."""
        inventory.write_inventories()
        inventory.write_known_hosts()
        floor.write_scripts()

    def run(self):
        """The runs of each cell: `{scenario: {column: [Run...]}}`, and the peaks of memory: `{scenario: {column: {...}}}`."""
        runs = {scenario.name: {} for scenario in self.selection.cells}
        # Byte code and the like, on the operator's side, is not what is measured.
        for column in self.selection.columns:
            self._apply(column, HOSTS[:1])
        self._rounds([scenario for scenario in self.selection.cells if scenario.clean], runs)
        converged = [scenario for scenario in self.selection.cells if not scenario.clean]
        if not converged:
            return runs, {}
        self._renew(HOSTS)
        self._agree(converged)
        self._rounds(converged, runs)
        memory = {scenario.name: self._memory(scenario) for scenario in converged if scenario.name in _MEMORY}
        return runs, memory

    def _rounds(self, scenarios, runs):
        """They take turns, scenarios and columns, so that the machine's moods fall on everybody."""
        for repetition in range(self.selection.repetitions):
            for scenario in scenarios:
                columns = self.selection.cells[scenario]
                first = repetition % len(columns)
                for column in columns[first:] + columns[:first]:
                    run = self._measured(scenario, column)
                    runs[scenario.name].setdefault(column.name, []).append(run)
                    self.say(
                        f"{scenario.name} {repetition + 1}/{self.selection.repetitions} {column.name}: {run.wall:.3f} s,"
                        f" processor {run.client_cpu:.2f} + {sum(run.host_cpu.values()):.2f} s,"
                        f" {(run.sent + run.received) / 1024:.0f} KiB"
                    )

    def _measured(self, scenario, column):
        best = None
        for _ in range(_ATTEMPTS):
            if scenario.clean:
                self._renew(scenario.hosts)
            with wire.stretched(scenario.delay) as station:
                if scenario.delay:
                    self._checked(self.judge, "check", scenario.hosts, station=station)
                self.patience.wait()
                run = self._checked(column, scenario.mode, scenario.hosts, station=station)
            self._verify(column, scenario, run)
            if best is None or run.foreign(quiet.PROCESSORS) < best.foreign(quiet.PROCESSORS):
                best = run
            if self.hasty or not quiet.is_noisy(run):
                break
            self.say(f"{scenario.name} {column.name}: others took {run.foreign(quiet.PROCESSORS):.0%} of the machine; again")
        return best

    def _verify(self, column, scenario, run):
        if column.name == "ssh-true":
            return
        changes = column.changes(run.output)
        if changes is None:
            raise BenchError(f"{column.name} does not report how much it changed:\n{run.output[-2000:]}")
        if changes and not scenario.clean:
            raise BenchError(f"{column.name} reports {changes} changes on hosts that match already:\n{run.output[-2000:]}")
        found = measure.run(self.judge.invoke("check", scenario.hosts), scenario.hosts)
        if found.code != 0 or found.output:
            raise BenchError(f"after {scenario.name} by {column.name} the hosts are not right:\n{found.output[-2000:]}")

    def _agree(self, scenarios):
        wanted = {column.name: (column, ()) for column in self.selection.columns if column.name != "ssh-true"}
        for scenario in scenarios:
            for column in self.selection.cells[scenario]:
                if column.name in wanted and len(scenario.hosts) > len(wanted[column.name][1]):
                    wanted[column.name] = (column, scenario.hosts)
        wanted["floor"] = (self.judge, HOSTS)
        for _ in range(_ROUNDS):
            counts = {name: column.changes(self._apply(column, hosts).output) for name, (column, hosts) in wanted.items() if hosts}
            self.say("before the no-ops, changes: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
            if not any(counts.values()):
                return
        raise BenchError("the engines do not agree on what is right")

    def _memory(self, scenario):
        peaks = {}
        for column in self.selection.cells[scenario]:
            seen = [
                self._checked(column, scenario.mode, scenario.hosts, sample_every=_SAMPLE_SECONDS).memory
                for _ in range(_MEMORY_RUNS)
            ]
            peaks[column.name] = {
                "together_kib": statistics.median(one.together for one in seen),
                "largest_kib": statistics.median(one.largest for one in seen),
                "processes": statistics.median(one.processes for one in seen),
            }
            self.say(f"memory, {scenario.name} {column.name}: {peaks[column.name]['together_kib'] / 1024:.0f} MiB")
        return peaks

    def _apply(self, column, hosts):
        return self._checked(column, "apply", hosts)

    def _checked(self, column, mode, hosts, **options):
        done = measure.checked(column.invoke(mode, hosts), hosts, f"{column.name} {mode}", **options)
        shutil.copy(state("last.log"), state(f"last-{column.name}.log"))
        return done

    def _renew(self, hosts):
        lab("renew", *hosts)
        inventory.write_known_hosts()


def lab(*words):
    """A command of the benchmark's own lab."""
    done = subprocess.run([LAB, *words], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"lab {' '.join(words)}: {done.stderr.strip()}")


@contextlib.contextmanager
def hosts():
    """The benchmark's hosts for as long as the block lasts; what a killed run left is cleared away first."""
    lab("down")
    try:
        lab("up")
        yield
    finally:
        lab("down")
