"""What a scenario is made of: checks, each one line of the report.

A scenario is a module of this directory. Its functions under `@check` run in the
order in which they stand there; `set_up` and `tear_down`, where it has them, run
around them. A check fails by raising; that of one check stops no other.
"""

import time
import traceback

_PAUSE = 0.2


class Failed(Exception):
    """A check failed; the message contains what was seen instead."""


class Final(Failed):
    """A failure that waiting cannot change: `until` does not try again."""


class Check:
    def __init__(self, name, function, arguments):
        self.name, self.function, self.arguments = name, function, arguments


class Tally:
    """Runs checks and counts them."""

    def __init__(self):
        self.passed = self.failed = 0

    def run(self, name, function, *arguments):
        """One line; whether it went well."""
        began = time.monotonic()
        try:
            function(*arguments)
            complaint = None
        except Failed as failure:
            complaint = str(failure)
        except Exception:  # a defect of the scenario itself is a failure like any other
            complaint = traceback.format_exc(limit=-3)
        seconds = time.monotonic() - began
        print(f"{'not ok' if complaint else 'ok'} {name} ({seconds:.1f} s)", flush=True)
        if complaint is not None:
            self.failed += 1
            print("    " + complaint.strip().replace("\n", "\n    "), flush=True)
            return False
        self.passed += 1
        return True

    def miss(self, name, why):
        self.failed += 1
        print(f"not ok {name} (not run: {why})", flush=True)


def check(name, each=None):
    """Registers a check; with `each`, one for every item, whose text takes the place of `{}`."""

    def register(function):
        registered = function.__globals__.setdefault("CHECKS", [])
        for item in each or [None]:
            arguments = () if each is None else (item,)
            registered.append(Check(name.format(item), function, arguments))
        return function

    return register


def expect(holds, otherwise):
    if not holds:
        raise Failed(otherwise)


def expect_equal(what, seen, wanted):
    expect(seen == wanted, f"{what}: seen {seen!r}, wanted {wanted!r}")


def until(sentence, seconds, probe):
    """Waits for a named condition; returns what `probe` returned once it was true.

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
        time.sleep(_PAUSE)
