"""A machine on the workload plane without the cluster's key announces routes, and no host takes one."""

import ipaddress

from checks import Failed, check, expect, expect_equal, until
from cluster import NODES, address, copy, discard, fresh, get, shell, succeed

# The same system as the node that BIRD is copied from.
ROUTER = "spare-2"
SOURCE = "node-1"
WORKLOAD = "workload-plane"
BIRD, CLIENT = "/usr/sbin/bird", "/usr/sbin/birdcl"
SOCKET = "/run/hostile-bird.ctl"
CONFIGURATION = "/etc/hostile-bird.conf"
UNIT = "hostile-bird.service"


def set_up():
    fresh(ROUTER)
    libraries = shell(SOURCE, "ldd \"$1\" | awk '$2 == \"=>\" { print $3 }'", BIRD).split()
    for path in [BIRD, CLIENT, *(library for library in libraries if shell(ROUTER, 'test -e "$1" || echo no', library))]:
        copy(path, SOURCE, ROUTER)
    shell(ROUTER, 'cat > "$1"', CONFIGURATION, stdin=_configuration())
    succeed(ROUTER, "systemd-run", f"--unit={UNIT}", BIRD, "-f", "-c", CONFIGURATION, "-s", SOCKET)


def tear_down():
    discard(ROUTER)


@check("it hears every node: their messages reach it, so its own reach them")
def hears():
    def heard():
        shown = succeed(ROUTER, CLIENT, "-s", SOCKET, "show", "babel", "neighbors")
        neighbours = sum(line.startswith("fe80:") for line in shown.splitlines())
        if neighbours < len(NODES):
            raise Failed(f"{neighbours} neighbours of {len(NODES)}\n{shown}")
        return True

    until("every node to be its neighbour", 20, heard)


@check("{} has one route to each other node's pods, and no other", each=NODES)
def takes_nothing(node):
    own = _pod_networks()
    expected = {network: address(other, WORKLOAD) for other, network in own.items() if other != node}
    expect_equal("routes", _routes(node), expected)


@check("the key on {} is readable by BIRD and root alone", each=NODES)
def key(node):
    expect_equal("mode", succeed(node, "stat", "-c", "%a %U %G", "/etc/bird/bird.conf").strip(), "640 bird bird")


@check("BIRD on {} reports why it drops the messages", each=NODES)
def reported(node):
    lines = shell(node, "journalctl --no-pager --output=cat -u bird --since=-10min | grep -ci auth || true")
    expect(int(lines) > 0, "nothing about authentication in the journal of bird.service")


def _pod_networks():
    """Of each node of the cluster: its own /24."""
    return {node["metadata"]["name"]: node["spec"]["podCIDR"] for node in get("nodes")["items"]}


def _routes(host):
    """Destination to gateway, of all that BIRD has put into the kernel."""
    lines = (line.split() for line in shell(host, "ip -4 route show proto bird").splitlines())
    return {words[0]: words[words.index("via") + 1] for words in lines if "via" in words}


def _configuration():
    """It announces a pod of each node, half of its network, all of it, one of no node, and the services."""
    routes = ["10.233.250.0/24", "10.96.0.0/12"]
    for network in map(ipaddress.ip_network, _pod_networks().values()):
        routes += [f"{network[7]}/32", str(next(network.subnets())), str(network)]
    static = "\n".join(f"    route {route} unreachable;" for route in routes)
    return f"""\
router id {address(ROUTER, WORKLOAD)};
protocol device {{
}}
protocol static {{
    ipv4;
{static}
}}
protocol kernel {{
    ipv4 {{ import none; export where source = RTS_BABEL; }};
}}
protocol babel {{
    ipv4 {{ import all; export all; }};
    interface "eth1" {{ type wired; hello interval 500 ms; }};
}}
"""
