"""The demo cluster as the scenarios see it: its hosts, its API, and metalform on its bootstrap host."""

import contextlib
import json
import os
import subprocess
import sys

import yaml

from checks import Failed

LAB_DIRECTORY = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
MANIFESTS = os.path.join(LAB_DIRECTORY, "manifests")
sys.path.insert(0, LAB_DIRECTORY)

from nspawn import disk, fleet, topology  # noqa: E402  (needs the path set above)

LAB = os.path.join(LAB_DIRECTORY, "lab")
CACHE = os.environ.get("METALFORM_CACHE", "/var/cache/metalform")
BOOTSTRAP = "bootstrap"
ADMIN = "/etc/kubernetes/admin.conf"
_COPY = "/run/scenario-admin.conf"
# Where kubectl runs, and its kubeconfig.
_kubectl = (BOOTSTRAP, ADMIN)

_HOSTS = {host.name: host for host in topology.load().hosts}
NODES = [name for name, host in _HOSTS.items() if host.default]
# The hosts of a pool, and those of them that have a manifest: with them the cluster grows to nine.
POOL = [name for name in _HOSTS if name.startswith("spare-")]
SPARES = [name for name in POOL if os.path.exists(os.path.join(MANIFESTS, f"{name}.yaml"))]


def address(host, plane="control-plane"):
    return _HOSTS[host].addresses[plane]


def manifest(node):
    """The Node that the demo applies; the bootstrap host's, which metalform makes itself, as the seeds have it."""
    if node == BOOTSTRAP:
        labels = {f"node-role.kubernetes.io/{role}": "" for role in ("bootstrap", "master", "etcd", "infra")}
        return {"metadata": {"name": node, "labels": labels}}
    with open(os.path.join(MANIFESTS, f"{node}.yaml"), encoding="utf-8") as file:
        return yaml.safe_load(file)


def roles(node):
    prefix = "node-role.kubernetes.io/"
    labels = manifest(node)["metadata"]["labels"]
    return sorted(label.removeprefix(prefix) for label in labels if label.startswith(prefix))


def with_role(role):
    return [node for node in NODES if role in roles(node)]


def lab(*words, timeout=120):
    done = _run([LAB, *words], None, timeout)
    if done.returncode != 0:
        raise Failed(f"lab {' '.join(words)}: exit {done.returncode}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def power_off(host):
    """As `lab power-off`, within milliseconds: no command has to be started for it."""
    fleet.power_off([_HOSTS[host]])


def on(host, *command, stdin=None, timeout=60):
    """Run a command in a host as root; the result has returncode, stdout and stderr."""
    return _run([LAB, "exec", host, "--", *command], stdin, timeout)


def begin(host, *command):
    """Start a command in a host and return at once; stdout can be read, stderr goes with it."""
    return subprocess.Popen(
        [LAB, "exec", host, "--", *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def succeed(host, *command, stdin=None, timeout=60):
    """What a command that must go well prints."""
    done = on(host, *command, stdin=stdin, timeout=timeout)
    if done.returncode != 0:
        output = (done.stderr.strip() or done.stdout.strip())[-1500:]
        raise Failed(f"{host}: {' '.join(command)}: exit {done.returncode}: {output}")
    return done.stdout


def shell(host, script, *arguments, stdin=None, timeout=60):
    return succeed(host, "sh", "-euc", script, "sh", *arguments, stdin=stdin, timeout=timeout)


def kubectl(*words, stdin=None, timeout=60):
    host, kubeconfig = _kubectl
    return succeed(host, "kubectl", f"--kubeconfig={kubeconfig}", *words, stdin=stdin, timeout=timeout)


@contextlib.contextmanager
def kubectl_on(host):
    """Runs kubectl on another node meanwhile, with the administrator's kubeconfig."""
    global _kubectl
    shell(host, "umask 077; cat > $1", _COPY, stdin=succeed(BOOTSTRAP, "cat", ADMIN))
    before, _kubectl = _kubectl, (host, _COPY)
    try:
        yield
    finally:
        _kubectl = before
        shell(host, "rm $1", _COPY)


def get(*words):
    return json.loads(kubectl("get", *words, "-o", "json"))


def apply(*objects):
    # As JSON: YAML that Python writes has strings (`12e456`) that Go reads as numbers.
    kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))


def copy(path, source, target):
    """A program from one host to another, through this machine."""
    reading = subprocess.Popen([LAB, "exec", source, "--", "cat", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    script = 'mkdir -p "$(dirname "$1")" && cat > "$1" && chmod 0755 "$1"'
    writing = [LAB, "exec", target, "--", "sh", "-euc", script, "sh", path]
    done = subprocess.run(writing, stdin=reading.stdout, capture_output=True, text=True, check=False, timeout=60)
    reading.stdout.close()
    if reading.wait() != 0 or done.returncode != 0:
        raise Failed(f"{path} was not copied from {source} to {target}: {done.stderr.strip()}")


def delete_node(node):
    kubectl("delete", "node", node, "--ignore-not-found", "--wait=true")


def metalform(*words, timeout=300):
    return on(BOOTSTRAP, "metalform", *words, timeout=timeout)


def fingerprint(host):
    """The host key's, read on the host itself."""
    return succeed(host, "ssh-keygen", "-lf", "/etc/ssh/ssh_host_ed25519_key.pub").split()[1]


def authorise(host, user="root"):
    """Adds metalform's key to authorized_keys, as the owner of the machine does."""
    key = succeed(BOOTSTRAP, "cat", "/etc/metalform/pki/ssh.pub").strip()
    shell(host, 'echo "$2" >> "$(getent passwd "$1" | cut -d: -f6)/.ssh/authorized_keys"', user, key)


def fresh(host):
    """A host with a new disk: nothing that any run left there."""
    discard(host)
    lab("up", host)


def discard(host):
    lab("power-off", host)
    disk.remove(host)
    # Its next disk has another host key.
    shell(BOOTSTRAP, 'f=/var/lib/metalform/known_hosts; [ ! -e $f ] || sed -i "/^$1 /d" $f', address(host))


def introduce(node):
    """A fresh host whose Node is described, whose key is accepted, and where metalform's key is authorised."""
    fresh(node)
    authorise(node)
    apply(manifest(node))
    accept_host_key(node)


def accept_host_key(node):
    done = metalform("node", "check", node, "--accept-host-key", fingerprint(node))
    if done.returncode != 0:
        raise Failed(f"node check {node}: exit {done.returncode}: {done.stderr}")


def forget(node):
    """Removes the Node and the disk."""
    # Off first: a kubelet that starts meanwhile would register its Node again.
    discard(node)
    delete_node(node)


def internal_ips(node):
    """The addresses that a Node lists, in order: those on which its NodePorts can answer."""
    return [entry["address"] for entry in node["status"]["addresses"] if entry["type"] == "InternalIP"]


def both_planes(name):
    """Its address on the control plane, which the API server connects to, and that on the workload plane."""
    return [address(name), address(name, "workload-plane")]


def ready(node):
    """The Ready condition of a node is true; raises with the reason where it is not."""
    conditions = {c["type"]: c for c in get("node", node)["status"].get("conditions", [])}
    state = conditions.get("Ready", {"status": "Unknown", "message": "it has no such condition"})
    if state["status"] != "True":
        raise Failed(f"{node}: Ready is {state['status']}: {state.get('message')}")
    return True


def _run(command, stdin, timeout):
    source = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout, **source)
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(command[1:])}: still running after {timeout} s") from None
