"""Which long tests run: all of them in `make test-long`, else a sample by a seed that is printed."""

import os
import random
import time

LONG = os.environ.get("METALFORM_LONG") == "1"
# `2/4`: of what runs whole, the second of four parts; the others run elsewhere.
_PART, _PARTS = map(int, os.environ.get("METALFORM_PART", "1/1").split("/"))
SEED = int(os.environ.get("METALFORM_SEED") or time.time_ns() % 1_000_000_007)


def sample(name, items, size):
    """`size` of the items, in their order; the same ones for the same seed and name."""
    items = list(items)
    if LONG or size >= len(items):
        return items[_PART - 1 :: _PARTS]
    chosen = random.Random(f"{SEED} {name}").sample(range(len(items)), size)
    return [items[index] for index in sorted(chosen)]


def count(whole, sampled):
    """How often a test is repeated."""
    return whole if LONG else sampled
