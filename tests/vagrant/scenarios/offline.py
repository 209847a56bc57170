"""Hosts talk to the bootstrap host and to each other, and have tried no other address."""

import re

from checks import check, expect, expect_equal
from cluster import BOOTSTRAP, NODES, address, lab, on, shell, succeed

# The name of the bootstrap host and of its mirrors, of which the demo has none.
MIRROR = "mirror.metalform.internal"


@check("{} takes packages from the bootstrap host alone", each=NODES)
def package_sources(node):
    written = shell(node, 'grep -rhv "^ *#" /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null || true')
    places = set(re.findall(r"\b[a-z][a-z0-9+]*:/[^\s\]]*", written))
    expect(places, "there is no package source at all")
    others = {place for place in places if not re.match(rf"https://{re.escape(MIRROR)}[:/]", place)}
    expect(not others, f"{others}")
    used = succeed(node, "apt-get", "indextargets", "--format", "$(SITE)").split()
    expect(used and all(MIRROR in site for site in used), f"apt uses {set(used)}")
    resolved = {line.split()[0] for line in succeed(node, "getent", "ahosts", MIRROR).splitlines()}
    expect_equal(f"addresses of {MIRROR}", resolved, {address(BOOTSTRAP)})


@check("{} has no default route", each=NODES)
def no_default_route(node):
    expect_equal("default route", shell(node, "ip route show default; ip -6 route show default"), "")


@check("{} refuses what is sent to a pod of no node", each=NODES)
def pod_of_no_node(node):
    # A host with a default route would send it there; so it is while BIRD has not learned a new node's pods.
    told = on(node, "ip", "route", "get", "10.233.250.1")
    expect("No route to host" in told.stderr, f"{told.stdout}{told.stderr}")


@check("no host has tried to reach another address")
def no_escape():
    lab("escapes")
