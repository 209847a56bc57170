"""Five nodes, three etcd voters, three API servers: all present, healthy and as described."""

import json

from checks import check, expect, expect_equal, until
from cluster import (
    ADMIN,
    NODES,
    address,
    both_planes,
    get,
    internal_ips,
    kubectl,
    lab,
    manifest,
    metalform,
    roles,
    succeed,
    with_role,
)

MASTERS = with_role("master")


@check("{} is Ready, with its address and the cluster's version", each=NODES)
def node_is_ready(name):
    node = get("node", name)
    conditions = {condition["type"]: condition["status"] for condition in node["status"]["conditions"]}
    expect_equal("Ready", conditions["Ready"], "True")
    expect_equal("InternalIP", internal_ips(node), both_planes(name))
    server = json.loads(kubectl("version", "-o", "json"))["serverVersion"]["gitVersion"]
    expect_equal("kubelet's version", node["status"]["nodeInfo"]["kubeletVersion"], server)


@check("{} has the roles and taints of its manifest, and no other", each=NODES)
def node_is_as_described(name):
    node = get("node", name)
    prefix = "node-role.kubernetes.io/"
    found = sorted(label.removeprefix(prefix) for label in node["metadata"]["labels"] if label.startswith(prefix))
    expect_equal("roles", found, roles(name))
    if "spec" in manifest(name):
        expected = sorted((taint["key"], taint["effect"]) for taint in manifest(name)["spec"]["taints"])
        found = sorted((taint["key"], taint["effect"]) for taint in node["spec"].get("taints", []))
        expect_equal("taints", found, expected)


@check("no node but the five")
def no_other_node():
    expect_equal("nodes", sorted(node["metadata"]["name"] for node in get("nodes")["items"]), sorted(NODES))


@check("metalform node list shows both addresses, roles and status of {}", each=NODES)
def node_list_shows(name):
    done = metalform("node", "list", "-o", "wide")
    expect_equal("exit code", done.returncode, 0)
    lines = [line.split() for line in done.stdout.splitlines()]
    line = next((words for words in lines[1:] if words[0] == name), [])
    expected = {"Ready", address(name), address(name, "workload-plane")}
    expect(expected <= set(line), f"{expected - set(line)} not in {' '.join(line)!r}")
    expect(set(roles(name)) <= set(",".join(line).split(",")), f"not {roles(name)} in {' '.join(line)!r}")


@check("etcd has three healthy voters and one leader")
def etcd_is_whole():
    done = metalform("etcd", "members", "-o", "json")
    expect_equal("exit code", done.returncode, 0)
    members = json.loads(done.stdout)
    expect_equal("members", {m["name"]: m["status"] for m in members}, {n: "voter" for n in with_role("etcd")})
    expect_equal("number of leaders", sum(bool(member["leader"]) for member in members), 1)
    healthy = metalform("etcd", "health")
    expect_equal("exit code of etcd health", healthy.returncode, 0)


@check("every part of the API server of {} is ready", each=MASTERS)
def api_server_is_ready(master):
    server = f"--server=https://{address(master)}:6443"
    lines = until("readyz is ok", 20, lambda: kubectl(server, "get", "--raw", "/readyz?verbose")).splitlines()
    bad = [line for line in lines if line.startswith("[") and not (line.startswith("[+]") and line.endswith(" ok"))]
    expect(not bad and lines[-1] == "readyz check passed", "\n".join(bad or lines))


@check("every pod of the cluster's own is ready")
def own_pods_are_ready():
    waiting = []
    for pod in get("pods", "--namespace=kube-system")["items"]:
        conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions", [])}
        if conditions.get("Ready") != "True":
            waiting.append(f"{pod['metadata']['name']} is {pod['status']['phase']}")
    expect(not waiting, ", ".join(waiting))


@check("the proxy on {} knows all three API servers", each=NODES)
def proxy_knows_every_api_server(node):
    lines = succeed(node, "cat", "/etc/haproxy/haproxy.cfg").splitlines()
    servers = sorted(line.split()[2] for line in lines if line.split()[:1] == ["server"])
    expect_equal("servers", servers, sorted(f"{address(master)}:6443" for master in MASTERS))
    expect_equal("haproxy", succeed(node, "systemctl", "is-active", "haproxy").strip(), "active")


@check("kubectl on the bootstrap host needs no option")
def kubectl_is_set_up():
    output = lab("exec", "bootstrap", "--", "kubectl", "get", "nodes", "--no-headers")
    expect_equal("lines", len(output.splitlines()), len(NODES))
    expect_equal("mode of admin.conf", succeed("bootstrap", "stat", "-c", "%a", ADMIN).strip(), "600")
