"""A package source that somebody adds to a node is reported by `node check`, and disabled by the next deployment."""

from checks import check, expect, expect_equal
from cluster import metalform, on, shell, succeed
from refusal import expect_refusal

NODE = "node-2"
SOURCE = "/etc/apt/sources.list.d/vendor.list"
HOST = 4


def set_up():
    _expect_checked()
    shell(NODE, 'echo "deb [trusted=yes] http://packages.example.org stable main" > "$1"', SOURCE)


def tear_down():
    succeed(NODE, "rm", "-f", SOURCE, f"{SOURCE}.metalform-disabled")


@check("node check names it, with the exit code of a host")
def named():
    expect_refusal(metalform("node", "check", NODE), HOST, f"{NODE}: {SOURCE} is a package source besides metalform's")
    expect_equal("the source after a check", on(NODE, "test", "-e", SOURCE).returncode, 0)


@check("deploy-node disables it, and node check is content again")
def disabled():
    done = metalform("deploy-node", NODE)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    expect(on(NODE, "test", "-e", SOURCE).returncode != 0, "the source is enabled still")
    _expect_checked()


def _expect_checked():
    done = metalform("node", "check", NODE)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
