"""What a scenario consists of: checks, each one line of the report.

A scenario is a module of this directory. Its functions under `@check` run in the order of the file;
`set_up` and `tear_down`, where it has them, run before and after. A check fails by raising an exception; the
others run all the same.
"""

import time
import traceback

_PAUSE = 0.2


class Failed(Exception):
    """A check failed; the message contains what was seen instead."""


class Final(Failed):
    """A failure that waiting cannot change: `until` does not try again."""


class State(dict):
    """What one check leaves for later ones. They fail where that one failed."""

    def __missing__(self, key):
        raise Failed(f"not checked: an earlier check has left no {key}")


class Check:
    def __init__(self, name, function, arguments):
        self.name, self.function, self.arguments = name, function, arguments


class Tally:
    """Runs checks and counts them."""

    def __init__(self):
        self.passed = self.failed = 0

    def run(self, name, function, *arguments):
        """Prints one line; returns whether it passed."""
        began = time.monotonic()
        try:
            function(*arguments)
            failure_text = None
        except Failed as failure:
            failure_text = str(failure)
        except Exception:  # a defect of the scenario itself is a failure like any other
            failure_text = traceback.format_exc(limit=-3)
        seconds = time.monotonic() - began
        print(f"{'ok' if failure_text is None else 'not ok'} {name} ({seconds:.1f} s)", flush=True)
        if failure_text is not None:
            self.failed += 1
            print("    " + failure_text.strip().replace("\n", "\n    "), flush=True)
            return False
        self.passed += 1
        return True

    def miss(self, name, why):
        self.failed += 1
        print(f"not ok {name} (not run: {why})", flush=True)


def check(name, each=None):
    """Registers a check; with `each`, one for every item, which replaces `{}` in the name."""

    def register(function):
        registered = function.__globals__.setdefault("CHECKS", [])
        for item in [None] if each is None else each:
            arguments = () if each is None else (item,)
            registered.append(Check(name.format(item), function, arguments))
        return function

    return register


def expect(holds, otherwise):
    if not holds:
        raise Failed(otherwise)


def expect_equal(what, seen, expected):
    expect(seen == expected, f"{what}: got {seen!r}, expected {expected!r}")


def until(sentence, seconds, probe, pause=_PAUSE):
    """Waits for a named condition, with a pause between two probes; returns what `probe` returned once it was true.

    What a probe's `Failed` contains is what was last seen.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            seen = probe()
            if seen:
                return seen
        except Final:
            raise
        except Failed as failure:
            seen = failure
        if time.monotonic() > deadline:
            raise Failed(f"not within {seconds} s: {sentence}; last seen: {seen}")
        time.sleep(pause)
