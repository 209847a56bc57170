"""A node whose ssh-host is a name that only a bastion resolves is deployed through that bastion."""

import copy
import re

from checks import check, expect, expect_equal
from cluster import (
    BOOTSTRAP,
    address,
    apply,
    both_planes,
    delete_node,
    discard,
    fingerprint,
    fresh,
    get,
    internal_ips,
    manifest,
    metalform,
    on,
    ready,
    shell,
    succeed,
)

NODE = "spare-1"
BASTION = "node-1"
NAME = "rack-7.lab.invalid"
KNOWN_HOSTS = "/var/lib/metalform/known_hosts"


def set_up():
    fresh(NODE)
    key = succeed(BOOTSTRAP, "cat", "/etc/metalform/pki/ssh.pub").strip()
    # The host accepts the key from the bastion alone.
    shell(NODE, 'echo "from=\\"$1\\" $2" >> /root/.ssh/authorized_keys', address(BASTION), key)
    shell(BASTION, 'echo "$1 $2" >> /etc/hosts', address(NODE), NAME)
    node = copy.deepcopy(manifest(NODE))
    node["metadata"]["annotations"] = {
        "metalform.dev/ssh-host": NAME,
        "metalform.dev/ssh-bastion": f"root@{address(BASTION)}",
    }
    apply(node)


def tear_down():
    shell(BASTION, 'cp /etc/hosts /run/hosts && sed "/ $1\\$/d" /run/hosts > /etc/hosts', NAME)
    shell(BOOTSTRAP, 'sed -i "/^$1 /d" "$2"', NAME, KNOWN_HOSTS)
    discard(NODE)
    delete_node(NODE)


@check("the bootstrap node cannot resolve the name, the bastion can")
def only_the_bastion_resolves():
    expect_equal("exit code on the bootstrap node", on(BOOTSTRAP, "getent", "hosts", NAME).returncode, 2)
    expect_equal("address", succeed(BASTION, "getent", "hosts", NAME).split()[0], address(NODE))


@check("node check accepts the host's key through the bastion")
def key_is_accepted():
    done = metalform("node", "check", NODE, "--accept-host-key", fingerprint(NODE))
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    expect(re.search(rf"^{NODE}: OK", done.stdout, re.M), done.stdout)


@check("deploy-node --dry-run reaches it too")
def planned():
    done = metalform("deploy-node", NODE, "--dry-run")
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)


@check("it is deployed, with its control-plane address from facts")
def deployed():
    done = metalform("deploy-node", NODE)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)
    expect(ready(NODE), "not Ready")
    expect_equal("InternalIP", internal_ips(get("node", NODE)), both_planes(NODE))


@check("again, and nothing changes")
def unchanged():
    done = metalform("deploy-node", NODE)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    expect("(changed=0)" in done.stdout, done.stdout)


@check("a deployment of another node updates its proxy through the bastion too, and warns of nothing")
def other_node():
    done = metalform("deploy-node", "node-2")
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    expect(NODE not in done.stderr and NAME not in done.stderr, done.stderr)
