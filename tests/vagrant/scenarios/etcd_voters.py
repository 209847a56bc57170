"""The members of etcd, as `metalform etcd health` lists them."""

import json

from checks import expect_equal
from cluster import metalform


def expect_voters(names):
    """The members are voters on these nodes, and no others."""
    done = metalform("etcd", "health", "-o", "json")
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)
    members = {member["name"]: member["status"] for member in json.loads(done.stdout)}
    expect_equal("members", members, dict.fromkeys(names, "voter"))
