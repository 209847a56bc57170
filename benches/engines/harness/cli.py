"""`bench`: the options, and the order of a run. Tables go to stdout, what is going on to stderr."""

import argparse
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from nspawn.failure import LabError

from . import figures, session, tables, venvs
from .about import about
from .bounds import verdicts
from .column import columns
from .failure import BenchError
from .place import CACHE, PUBLISHED, RESULTS, STATE, TARGET, TOP, write
from .selection import choose

_FLEET = "fleet"


def main(words):
    arguments = _parser().parse_args(words)
    # SIGTERM must not leave the hosts up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if os.geteuid() != 0:
            raise BenchError("the hosts are namespaces and mounts, which only root may make", "run it with sudo")
        with _alone():
            if arguments.down:
                session.lab("down")
                return 0
            return _bench(arguments)
    except (BenchError, LabError) as error:
        print(f"error: {error}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser():
    parser = argparse.ArgumentParser(prog="bench", description="Measures metalform beside other agentless engines.")
    parser.add_argument("--columns", type=str.split, default=[], metavar="'NAME...'", help="only these, and the floor")
    parser.add_argument("--scenarios", type=str.split, default=[], metavar="'NAME...'", help="only these")
    parser.add_argument("--repetitions", type=_positive, default=5, metavar="N", help="runs of each, 5 by default")
    parser.add_argument("--full", action="store_true", help="every engine in every scenario: more than an hour")
    parser.add_argument("--publish", action="store_true", help="write results/ of the checkout, from a run of everything")
    parser.add_argument("--binary", metavar="FILE", help="the metalform to measure, instead of building it")
    parser.add_argument("--hasty", action="store_true", help="do not mind what else runs here; the figures mean little")
    parser.add_argument("--down", action="store_true", help="only clear away what a killed run left")
    return parser


def _positive(word):
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _say(line):
    print(line, file=sys.stderr, flush=True)


def _alone():
    """One benchmark at a time; the lock goes with the process that holds it."""
    os.makedirs(CACHE, exist_ok=True)
    lock = open(os.path.join(CACHE, "lock"), "w", encoding="ascii")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise BenchError("another benchmark is running on this machine") from None
    return lock


def _bench(arguments):
    binary = arguments.binary or os.path.join(TARGET, "release", "metalform")
    table = columns(os.path.abspath(binary))
    selection = choose(
        table,
        names=arguments.columns,
        scenarios=arguments.scenarios,
        repetitions=arguments.repetitions,
        full=arguments.full,
    )
    if arguments.publish and (selection.partial or selection.repetitions < 5 or arguments.hasty):
        raise BenchError("what is published is a run of everything, five times or more")
    has_metalform = any(column.name == "metalform" for column in selection.columns)
    if has_metalform and not arguments.binary:
        _cargo("build", "--release", "--locked", "--quiet", "--bin", "metalform")
    venvs.ensure(sorted({column.venv for column in selection.columns if column.venv}), _say)
    os.makedirs(STATE, exist_ok=True)
    began = time.monotonic()
    with session.hosts():
        one = session.Session(table, selection, arguments.hasty, _say)
        one.prepare()
        seen = about(selection, binary, arguments.hasty)
        runs, memory = one.run()
    measured = figures.document(selection.columns, runs, memory, seen)
    measured["fleet"] = _fleet() if has_metalform and not arguments.scenarios else None
    return _tell(measured, arguments.publish, time.monotonic() - began)


def _fleet():
    """The benchmark of simulated hosts, where this checkout has it."""
    if not os.path.exists(os.path.join(TOP, "benches", f"{_FLEET}.rs")):
        return None
    path = os.path.join(STATE, "fleet.json")
    _cargo("bench", "--locked", "--quiet", "--bench", _FLEET, "--", "--json", path)
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def _tell(measured, publish, seconds):
    measured["bounds"] = [vars(bound) for bound in verdicts(measured)]
    text = tables.markdown(measured)
    path = os.path.join(RESULTS, time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()))
    write(f"{path}.json", json.dumps(measured, indent=1) + "\n")
    write(f"{path}.md", text)
    if publish:
        for kind in ("json", "md"):
            os.makedirs(PUBLISHED, exist_ok=True)
            shutil.copy(f"{path}.{kind}", os.path.join(PUBLISHED, f"results.{kind}"))
    print(text)
    _say(f"{seconds / 60:.0f} minutes; {path}.md and .json")
    return 0


def _cargo(*words):
    done = subprocess.run(["cargo", *words], cwd=TOP, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False)
    if done.returncode != 0:
        raise BenchError(f"cargo {words[0]} ended with {done.returncode}")
