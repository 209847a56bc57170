"""Which long tests run: all of them in `make test-long`, else a sample by a seed that is printed."""

import os
import random
import time

LONG = os.environ.get("METALFORM_LONG") == "1"
SEED = int(os.environ.get("METALFORM_SEED") or time.time_ns() % 1_000_000_007)


def sample(name, items, size):
    """`size` of the items, in their order; the same ones for the same seed and name."""
    items = list(items)
    if LONG or size >= len(items):
        return items
    chosen = random.Random(f"{SEED} {name}").sample(range(len(items)), size)
    return [items[index] for index in sorted(chosen)]


def count(whole, sampled):
    """How often a test is repeated."""
    return whole if LONG else sampled
