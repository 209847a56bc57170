"""What listens on each host is what the table in README.md lists, and nothing in the table is missing."""

import os
import re

from checks import check, expect
from cluster import LAB_DIRECTORY, NODES, address, roles, shell

README = os.path.join(os.path.dirname(os.path.dirname(LAB_DIRECTORY)), "README.md")
HEADING = "## What listens where"
# A port that the kernel assigns.
ANY = "any"


def _table():
    """The rows of README.md: (role, address, port, process)."""
    with open(README, encoding="utf-8") as file:
        section = file.read().partition(HEADING)[2].partition("\n## ")[0]
    rows = [[cell.strip(" `") for cell in line.strip("| ").split("|")] for line in section.splitlines() if line.startswith("|")]
    expect(len(rows) > 10, f"README.md has no table below {HEADING!r}")
    return [tuple(row[:4]) for row in rows[2:]]


def _expected(node):
    own = {"every node", *roles(node)}
    if "master" in own and "bootstrap" not in own:
        own.add("other masters")
    return {row[1:] for row in _table() if row[0] in own}


def _place(node, local):
    """An address as the table names it."""
    planes = {address(node): "control plane", address(node, "workload-plane"): "workload plane", "127.0.0.1": "loopback"}
    if local in planes:
        return planes[local]
    if re.match(r"\[?(fe80|ff02)?:.*%eth1", local):
        return "workload plane"
    return "all" if local in ("*", "0.0.0.0", "[::]") else local


def _listening(node):
    found = set()
    for line in shell(node, "ss -H -ltnup").splitlines():
        protocol, _, _, _, local, _, *process = line.split()
        place, port = local.rsplit(":", 1)
        name = re.search(r'"([^"]+)"', " ".join(process))
        found.add((_place(node, place), f"{port}/{protocol}", name.group(1) if name else "the kernel"))
    return found


def _fits(row, seen):
    place, port, process = row
    return (place, process) == (seen[0], seen[2]) and (port == seen[1] or port == f"{ANY}/{seen[1].split('/')[1]}")


@check("on {} nothing listens that is not in the table", each=NODES)
def nothing_more(node):
    expected = _expected(node)
    others = sorted(seen for seen in _listening(node) if not any(_fits(row, seen) for row in expected))
    expect(not others, f"not in README.md: {others}")


@check("on {} everything in the table listens", each=NODES)
def nothing_less(node):
    listening = _listening(node)
    missing = sorted(row for row in _expected(node) if not any(_fits(row, seen) for seen in listening))
    expect(not missing, f"in README.md, but not on the host: {missing}")
