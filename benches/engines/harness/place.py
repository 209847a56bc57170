"""Where the benchmark keeps its things: all outside the checkout, so that a fresh clone is as warm as an old one."""

import os

HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
TOP = os.path.dirname(os.path.dirname(HERE))
LAB = os.path.join(TOP, "tests", "vagrant", "lab")
WORKLOAD = os.path.join(HERE, "workload")
# Results of a complete run that the project publishes.
PUBLISHED = os.path.join(HERE, "results")

CACHE = os.path.join(os.environ["METALFORM_CACHE"], "engines")
VENVS = os.path.join(CACHE, "venvs")
RESULTS = os.path.join(CACHE, "results")
# Made again for each run of the benchmark: inventories, the floor's scripts, logs.
STATE = os.path.join(CACHE, "state")
TARGET = os.environ.get("CARGO_TARGET_DIR", os.path.join(os.environ["METALFORM_CACHE"], "target"))


def state(*parts):
    return os.path.join(STATE, *parts)


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
