"""Whether the machine is ours: a figure that somebody else's work has made is none."""

import os
import time

from . import usage

PROCESSORS = os.cpu_count()
_CALM = 0.12
# Short runs are few ticks of the kernel's accounting, which is not exact.
_SHORT, _CALM_WHEN_SHORT = 1.0, 0.35


def wait(say, patience=1800):
    """Until little has run for a second, or until patience is over."""
    deadline, calm, told = time.monotonic() + patience, 0, False
    while calm < 2 and time.monotonic() < deadline:
        busy, began = usage.machine_seconds(), time.monotonic()
        time.sleep(0.5)
        load = (usage.machine_seconds() - busy) / (time.monotonic() - began) / PROCESSORS
        calm = calm + 1 if load < _CALM else 0
        if not told and time.monotonic() > deadline - patience + 20:
            told = True
            say(f"waiting until the machine is quiet (load {load:.0%})")


def is_noisy(run):
    """Whether others took so much that the run does not count."""
    return run.foreign(PROCESSORS) > (_CALM if run.wall > _SHORT else _CALM_WHEN_SHORT)
