"""A control-plane node whose ssh-host is on the workload plane gets its control-plane address from facts."""

from checks import check, expect, expect_equal
from cluster import (
    BOOTSTRAP,
    NODES,
    address,
    both_planes,
    get,
    internal_ips,
    metalform,
    ready,
    shell,
    succeed,
)
from control_plane_node import ETCD, MASTER, forget, introduce, member_of

NODE = "spare-2"
WORKLOAD = "workload-plane"
SSH_HOST = {"metalform.dev/ssh-host": address(NODE, WORKLOAD)}
# etcd's clients and peers, the API server, the controller manager, the scheduler, the kubelet.
PORTS = [2379, 2380, 6443, 10250, 10257, 10259]
KNOWN_HOSTS = "/var/lib/metalform/known_hosts"


def set_up():
    introduce(NODE, MASTER, ETCD, annotations=SSH_HOST)


def tear_down():
    forget(NODE)
    shell(BOOTSTRAP, 'sed -i "/^$1 /d" "$2"', address(NODE, WORKLOAD), KNOWN_HOSTS)


@check("it is deployed")
def deployed():
    done = metalform("deploy-node", NODE)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)
    expect(ready(NODE), "not Ready")


@check("its Node has the control-plane address, in its status and in its annotation")
def node_has_it():
    node = get("node", NODE)
    expect_equal("InternalIP", internal_ips(node), both_planes(NODE))
    annotations = node["metadata"]["annotations"]
    expect_equal("annotation", annotations.get("metalform.dev/control-plane-ip"), address(NODE))
    expect_equal("annotation", annotations.get("metalform.dev/workload-plane-ip"), address(NODE, WORKLOAD))


@check("port {} listens on the control plane, and not on the workload plane", each=PORTS)
def listens(port):
    own = succeed(NODE, "ss", "-Hltn", f"sport = :{port}").split("\n")
    local = {line.split()[3].rpartition(":")[0] for line in own if line}
    expect_equal(f"addresses of port {port} beside loopback", local - {"127.0.0.1"}, {address(NODE)})


@check("its etcd member's URLs are on the control plane, and it votes")
def member():
    found = member_of(NODE)
    expect(found, "it has no member")
    expect_equal("peer URLs", found["peerURLs"], [f"https://{address(NODE)}:2380"])
    expect_equal("client URLs", found["clientURLs"], [f"https://{address(NODE)}:2379"])
    expect(not found.get("isLearner"), "it is a learner")


@check("the proxy on {} has its API server's control-plane address", each=[*NODES, NODE])
def proxies(node):
    lines = succeed(node, "cat", "/etc/haproxy/haproxy.cfg").splitlines()
    servers = [line.split()[2] for line in lines if line.split()[:1] == ["server"]]
    expect(f"{address(NODE)}:6443" in servers, f"servers: {servers}")
    expect(not [server for server in servers if server.startswith(address(NODE, WORKLOAD))], f"servers: {servers}")


@check("again, and nothing changes")
def unchanged():
    done = metalform("deploy-node", NODE)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    expect("(changed=0)" in done.stdout, done.stdout)
