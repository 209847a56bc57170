"""A new master updates the API server proxy of every other node, and changes nothing else there."""

from checks import Failed, State, check, expect, expect_equal
from cluster import NODES, address, metalform, shell, succeed
from control_plane_node import MASTER, forget, introduce

NODE = "spare-2"
TOUCHED = "node-1"
PARAMETER = "net.ipv4.conf.all.rp_filter"
PROXY = "/etc/haproxy/haproxy.cfg"
_state = State()


def set_up():
    introduce(NODE, MASTER)
    # What differs from the states of a node, and belongs to no proxy.
    shell(TOUCHED, 'apt-mark unhold kubelet >/dev/null; sysctl -qw "$1=2"', PARAMETER)
    _state["before"] = _things(TOUCHED)


def tear_down():
    forget(NODE)
    done = metalform("deploy-node", TOUCHED)
    if done.returncode != 0:
        raise Failed(f"{TOUCHED}: exit {done.returncode}: {done.stderr}")


@check("it is deployed")
def deployed():
    done = metalform("deploy-node", NODE)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)


@check("the proxy on {} has its API server", each=[*NODES, NODE])
def proxies(node):
    expect(f"{address(NODE)}:6443" in succeed(node, "cat", PROXY), "it has not")


@check(f"haproxy on {TOUCHED} was reloaded, not restarted, and nothing else is changed there")
def nothing_else():
    expect_equal("state", _things(TOUCHED), _state["before"])


def _things(node):
    """Package states, a parameter, every file below /etc but the proxy's, and the main processes of units."""
    return shell(
        node,
        'dpkg --get-selections; sysctl "$1"; find /etc -xdev -type f ! -path "$2" -printf "%p %T@ %m %U\\n" | sort;'
        " systemctl show -p Id,MainPID haproxy kubelet containerd kube-proxy bird",
        PARAMETER,
        PROXY,
    )
