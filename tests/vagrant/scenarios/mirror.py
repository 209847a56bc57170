"""A mirror on an infra node: with it, nodes are repaired, pods start and a prepared worker comes while the bootstrap node is off."""

import json

import echo_image
from checks import Failed, check, expect, expect_equal, until
from cluster import (
    ADMIN,
    BOOTSTRAP,
    NODES,
    accept_host_key,
    address,
    apply,
    authorise,
    forget,
    fresh,
    get,
    introduce,
    kubectl,
    lab,
    metalform,
    on,
    ready,
    shell,
    succeed,
)
from control_plane_node import described
from reports import Report

MIRROR, PREPARED, WORKER, MASTER = "spare-2", "spare-1", "node-2", "master-2"
NAME = "mirror.metalform.internal"
LABEL = "metalform.dev/mirror"
NAMESPACE = "scenario-mirror"
IMAGE = "registry.example.org/team/echo:mirrored"
ARCHIVE = "/var/tmp/scenario-mirror.tar"
_UNITS = ["metalform-mirror.service", "metalform-mirror-sync.timer", "metalform-registry.service"]


def set_up():
    introduce(PREPARED)
    _metalform("deploy-node", PREPARED)
    fresh(MIRROR)
    authorise(MIRROR)
    node = described(MIRROR, "infra")
    node["metadata"]["labels"][LABEL] = ""
    apply(node)
    accept_host_key(MIRROR)
    # An administrator's own access, while the bootstrap node is off.
    succeed(MASTER, "sh", "-euc", "umask 077; cat > /run/scenario-admin.conf", stdin=succeed(BOOTSTRAP, "cat", ADMIN))
    apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})


def tear_down():
    on(MASTER, "rm", "-f", "/run/scenario-admin.conf")
    kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", timeout=120)
    metalform("image", "remove", IMAGE)
    on(WORKER, "ctr", "--namespace", "k8s.io", "images", "remove", IMAGE)
    succeed(BOOTSTRAP, "rm", "-f", ARCHIVE)
    for node in (MIRROR, PREPARED):
        forget(node)
    # Forgotten, and not removed: the others know the mirror still.
    _metalform("deploy-node", *(node for node in NODES if node != BOOTSTRAP))


@check("it is deployed, and whole when that ends")
def deployed():
    _metalform("deploy-node", MIRROR)
    _expect_whole()


@check("every other node knows it, beside the bootstrap node")
def known():
    for node in [*NODES, PREPARED]:
        expected = [address(BOOTSTRAP)] + ([] if node == BOOTSTRAP else [address(MIRROR)])
        expect_equal(f"addresses on {node}", _addresses(node), expected)


@check("and nothing is left to change on any node")
def no_change():
    report = Report(_metalform("expand", "-o", "json").stdout)
    outcomes = {name: host["outcome"] for name, host in report.hosts.items()}
    expect(MIRROR in outcomes and set(outcomes.values()) == {"unchanged"}, f"{outcomes}")


@check("an image that a user adds is on it within two minutes, without any command")
def follows():
    echo_image.write(BOOTSTRAP, ARCHIVE, echo_image.pack(echo_image.program() + b"mirrored"))
    _metalform("image", "add", ARCHIVE, "--as", IMAGE)
    until("the mirror is whole", 120, _expect_whole)


@check("without power on the bootstrap node, a pod starts with an image that its node has never had")
def pod_starts():
    lab("power-off", PREPARED)
    lab("power-off", BOOTSTRAP)
    _run("mirrored", WORKER)


@check("and a package is installed again from the mirror's repository")
def package_installed():
    for node in (WORKER, MASTER):
        shell(node, "apt-get clean; apt-get -q update; DEBIAN_FRONTEND=noninteractive apt-get -qy install --reinstall ethtool", timeout=120)


@check("and so are metalform's own package and its manual pages")
def own_package():
    # Of the distribution that is not older than this machine's, whose C library the program needs.
    shell(MASTER, "DEBIAN_FRONTEND=noninteractive apt-get -qy install metalform", timeout=120)
    expect("metalform " in succeed(MASTER, "/usr/bin/metalform", "--version"), "it does not run")
    succeed(MASTER, "test", "-s", "/usr/share/man/man1/metalform-deploy-node.1.gz")
    shell(MASTER, "DEBIAN_FRONTEND=noninteractive apt-get -qy purge metalform", timeout=120)


@check("and a worker that was deployed before comes, and runs such a pod")
def prepared_comes():
    lab("power-on", PREPARED)
    _run("prepared", PREPARED)


@check("with power again all is back, and the mirror is whole")
def power_returns():
    lab("power-on", BOOTSTRAP)
    until("the API answers on the bootstrap node", 180, lambda: get("nodes"))
    until("every node is Ready", 180, lambda: all(ready(node) for node in NODES))
    until("the mirror is whole", 120, _expect_whole)


@check("without its label it is no mirror any more, and the others have forgotten it")
def withdrawn():
    kubectl("label", "node", MIRROR, f"{LABEL}-")
    _metalform("deploy-node", MIRROR)
    for node in [*NODES, PREPARED, MIRROR]:
        expect_equal(f"addresses on {node}", _addresses(node), [address(BOOTSTRAP)])
    for unit in _UNITS:
        expect(on(MIRROR, "systemctl", "cat", unit).returncode != 0, f"{unit} is still there")
    done = on(MIRROR, "ss", "-Hltn", "sport = :8443 or sport = :5000")
    expect_equal("what listens", done.stdout, "")


@check("a mirror that is removed is forgotten too, and its host is as it was")
def removed():
    kubectl("label", "node", MIRROR, f"{LABEL}=")
    _metalform("deploy-node", MIRROR)
    _expect_whole()
    _metalform("remove-node", MIRROR)
    for node in [*NODES, PREPARED]:
        expect_equal(f"addresses on {node}", _addresses(node), [address(BOOTSTRAP)])
    there = on(MIRROR, "find", "/var/lib/metalform", "/usr/local/bin", "-mindepth", "1")
    expect_equal("left on the host", there.stdout, "")


def _metalform(*words):
    done = metalform(*words, timeout=600)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)
    return done


def _expect_whole():
    """Every server answers, and the mirror has everything."""
    done = metalform("mirror", "status", "-o", "json", timeout=60)
    states = {one["node"]: one["state"] for one in json.loads(done.stdout or "[]")}
    if (done.returncode, states) != (0, {BOOTSTRAP: "origin", MIRROR: "whole"}):
        raise Failed(f"exit {done.returncode}: {states}: {done.stderr}")
    return True


def _addresses(node):
    """Of the name of all mirrors, in the order of /etc/hosts."""
    return shell(node, "sed -n \"s/^\\([0-9.]*\\)\\t$1$/\\1/p\" /etc/hosts", NAME).split()


def _run(name, node):
    """Through another API server than the bootstrap node's."""
    kubeconfig = ["kubectl", "--kubeconfig=/run/scenario-admin.conf", "--server=https://127.0.0.1:7443", "-n", NAMESPACE]
    container = {"name": "echo", "image": IMAGE, "args": ["serve", node]}
    tolerations = [{"operator": "Exists"}]
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [container], "tolerations": tolerations}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    until("the API takes the pod", 60, lambda: succeed(MASTER, *kubeconfig, "apply", "-f", "-", stdin=json.dumps(pod)))

    def runs():
        found = json.loads(succeed(MASTER, *kubeconfig, "get", "pod", name, "-o", "json"))["status"]
        if found.get("phase") != "Running":
            raise Failed(f"{found}")
        return True

    until(f"the pod on {node} runs", 120, runs)
