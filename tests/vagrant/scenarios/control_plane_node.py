"""A spare host as a control-plane node with etcd, and how the cluster forgets it completely."""

import copy
import json

from checks import Failed, until
from cluster import (
    accept_host_key,
    address,
    apply,
    authorise,
    delete_node,
    discard,
    fresh,
    get,
    kubectl,
    lab,
    manifest,
    metalform,
    with_role,
)

MASTER, ETCD = "master", "etcd"
_PKI = "/etc/kubernetes/pki/etcd"


def described(node, *roles, annotations=()):
    """The Node of a spare host, with these roles, and tainted as master-3 is."""
    described = copy.deepcopy(manifest(node))
    described["metadata"]["labels"] = {f"node-role.kubernetes.io/{role}": "" for role in roles}
    described["metadata"]["annotations"].update(dict(annotations))
    taints = [{"effect": "NoSchedule", "key": f"node-role.kubernetes.io/{role}"} for role in roles if role != "node"]
    if taints:
        described["spec"] = {"taints": taints}
    return described


def introduce(node, *roles, annotations=(), prepare=lambda: None):
    """A clean host with its Node, its key accepted and ours authorised; `prepare` runs before the Node exists."""
    fresh(node)
    authorise(node)
    prepare()
    apply(described(node, *roles, annotations=annotations))
    accept_host_key(node)


def forget(node):
    """No member, no Node, no disk; and no proxy has its API server any more."""
    # Off first: its API server without its etcd would still take requests, and not answer them.
    lab("power-off", node)
    remove_member(node)
    delete_node(node)
    discard(node)
    # Converging any node updates the proxies of all.
    done = metalform("deploy-node", with_role(MASTER)[-1])
    if done.returncode != 0:
        raise Failed(f"after {node} was removed: exit {done.returncode}: {done.stderr}")
    until("the API's endpoints are those of the masters alone", 60, _endpoints_are_right)


def members():
    """etcd's members as etcdctl lists them."""
    return json.loads(etcdctl("member", "list", "-w", "json"))["members"]


def member_of(node):
    """The node's member, started or not, on either plane; None where it has none."""
    urls = {f"https://{address(node, plane)}:2380" for plane in ("control-plane", "workload-plane")}
    return next((member for member in members() if urls & set(member["peerURLs"])), None)


def remove_member(node):
    """Its host may have led until its power was cut a moment ago: a change that was on its way to it is lost, and proposed again."""

    def removed():
        member = member_of(node)
        if member:
            etcdctl("member", "remove", f"{member['ID']:x}")
        return True

    until(f"{node} is no member of etcd", 30, removed)


def etcdctl(*words, endpoint="https://127.0.0.1:2379"):
    """Run in an etcd pod, of those that are Ready the first that takes it.

    One that is called Ready may be of a host that was off since its kubelet said so. And where a host was off and is on
    again within seconds, every kubelet that had its connection to the API there notices with its next request alone: it
    cannot ask whether the command is permitted, and refuses it once.
    """
    credentials = [f"--cacert={_PKI}/ca.crt", f"--cert={_PKI}/server.crt", f"--key={_PKI}/server.key"]
    command = ["--", "/usr/local/bin/etcdctl", f"--endpoints={endpoint}", *credentials, *words]
    output, failure = until("an etcd pod to take a command", 30, lambda: _exec_etcd(command))
    if failure:
        raise failure
    return output


def _exec_etcd(command):
    """The output and, where etcdctl itself has failed, its failure: another pod, or another time, is no remedy."""
    failures = []
    for pod in _ready_etcd_pods():
        try:
            return kubectl("exec", "--namespace=kube-system", pod, *command), None
        except Failed as failure:
            if "command terminated with exit code" in str(failure):
                return "", failure
            failures.append(str(failure))
    raise Failed("; ".join(failures) or "no etcd pod is ready")


def _ready_etcd_pods():
    for node in with_role(ETCD):
        conditions = get("pod", f"etcd-{node}", "--namespace=kube-system")["status"].get("conditions", [])
        if any(each["type"] == "Ready" and each["status"] == "True" for each in conditions):
            yield f"etcd-{node}"


def _endpoints_are_right():
    slices = get("endpointslices", "--namespace=default", "--selector=kubernetes.io/service-name=kubernetes")["items"]
    found = {address for each in slices for endpoint in each["endpoints"] for address in endpoint["addresses"]}
    expected = {address(master) for master in with_role(MASTER)}
    if found != expected:
        raise Failed(f"{sorted(found)}")
    return True
