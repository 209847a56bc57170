"""The registry goes down while a node is deployed: one line names the cause, and the same command resumes afterwards."""

import re

from checks import check, expect, expect_equal
from cluster import BOOTSTRAP, forget, introduce, metalform, ready, succeed
from deployment import Deployment
from refusal import expect_refusal

NODE = "spare-2"
UNIT = "metalform-registry.service"


def set_up():
    introduce(NODE)


def tear_down():
    succeed(BOOTSTRAP, "systemctl", "start", UNIT)
    forget(NODE)


@check("when the registry goes away in the middle, the deployment ends at the next image, with one line")
def without_registry():
    with Deployment(NODE) as running:
        running.until_line("apply base system", pause=0.01)
        succeed(BOOTSTRAP, "systemctl", "stop", UNIT)
        running.finish()
        expect_refusal(running, 4, NODE, "image")


@check("with registry the same command converges")
def with_registry():
    succeed(BOOTSTRAP, "systemctl", "start", UNIT)
    done = metalform("deploy-node", NODE)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    expect(ready(NODE), "not Ready")


@check("and once more changes nothing")
def unchanged():
    done = metalform("deploy-node", NODE)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    expect(re.search(r"^Succeeded: .*\(changed=0\)", done.stdout, re.M), done.stdout)
