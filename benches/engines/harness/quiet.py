"""Whether the machine does nothing else: other work would falsify the figures."""

import os
import time

from . import usage

PROCESSORS = os.cpu_count()
_CALM = 0.12
# Short runs are few ticks of the kernel's accounting, which is not exact.
_SHORT, _CALM_WHEN_SHORT = 1.0, 0.35


class Patience:
    """How long a whole benchmark waits for others; when that is over its runs are made all the same, and are marked."""

    def __init__(self, seconds, say):
        self.seconds, self.say = seconds, say

    def wait(self):
        """Until little has run for a second."""
        began, calm, reported = time.monotonic(), 0, False
        while calm < 2 and (waited := time.monotonic() - began) < self.seconds:
            load = _load()
            calm = calm + 1 if load < _CALM else 0
            if not reported and waited > 20:
                reported = True
                self.say(f"waiting until the machine is quiet (load {load:.0%})")
        # The second that it takes to see a quiet machine is no waiting.
        self.seconds -= max(0.0, time.monotonic() - began - 2)


def _load():
    """The share of the machine that is taken, over the next half second."""
    busy, began = usage.machine_seconds(), time.monotonic()
    time.sleep(0.5)
    return (usage.machine_seconds() - busy) / (time.monotonic() - began) / PROCESSORS


def is_noisy(run):
    """Whether others took so much that the run does not count."""
    return run.foreign(PROCESSORS) > (_CALM if run.wall > _SHORT else _CALM_WHEN_SHORT)
