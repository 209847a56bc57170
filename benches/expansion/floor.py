"""What it takes by hand: one shell script over one SSH connection, with the files that metalform would write.

The files are taken from a host that metalform has deployed, before any clock runs; a host that the script has made is
judged by metalform, which must find nothing to change.
"""

import io
import json
import os
import re
import secrets
import shlex
import subprocess
import tarfile

from checks import Failed, until
from cluster import LAB, address, apply, get, kubectl, metalform, succeed
from control_plane_node import etcdctl

_HERE = os.path.dirname(os.path.realpath(__file__))
_FILES = """
/etc/apt/apt.conf.d/90metalform-metalform /etc/apt/keyrings/metalform.asc /etc/apt/sources.list.d/metalform.sources
/etc/bird/bird.conf /etc/cni /etc/containerd /etc/default/kubelet /etc/haproxy/haproxy.cfg /etc/hosts /etc/kubernetes
/etc/metalform /etc/modules-load.d /etc/sysctl.d /etc/systemd/system/kube-proxy.service /etc/systemd/system/kubelet.service
/etc/systemd/system/metalform-pod-network.service /var/lib/kubelet/config.yaml
""".split()
# The kubelet writes it, once it has a certificate.
_EXCLUDED = ["/etc/kubernetes/kubelet.conf"]
_KUBECONFIG = "/etc/kubernetes/bootstrap-kubelet.conf"
_PATIENCE = 180
# A resource in a dry run's plan.
_RESOURCE = re.compile(r"^    ([a-z_]+:\S+)$", re.M)


class Prepared:
    """All that a person has at hand for a host of this name: its files, and its Node without what a kubelet reports."""

    def __init__(self, node):
        self.name = node
        excluded = [f"--exclude={path}" for path in _EXCLUDED]
        command = [LAB, "exec", node, "--", "tar", "--create", "--numeric-owner", "--absolute-names", *excluded, *_FILES]
        self.files = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=60).stdout
        images = succeed(node, "ctr", "--namespace=k8s.io", "images", "list", "--quiet").split()
        self.pause = next(image for image in images if "/pause" in image)
        found = get("node", node)
        metadata = {key: found["metadata"][key] for key in ("name", "labels", "annotations")}
        spec = {key: found["spec"][key] for key in ("podCIDR", "podCIDRs", "taints") if key in found["spec"]}
        # Without it a kubelet refuses the static pods of a Node that exists before it does.
        self.capacity = {key: found["status"][key] for key in ("capacity", "allocatable")}
        self.node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec}

    def introduce(self):
        """The Node, and a kubelet's token for it."""
        apply(self.node, _secret(self.name, identity := secrets.token_hex(3), secret := secrets.token_hex(8)))
        status = json.dumps({"status": self.capacity})
        kubectl("patch", "node", self.name, "--subresource=status", "--type=merge", f"--patch={status}")
        self._token = f"{identity}.{secret}"

    def archive(self):
        """Its files and, in a second archive, the kubelet's kubeconfig with that token."""
        content = json.dumps(self.kubeconfig({"certificate-authority": "/etc/kubernetes/pki/ca.crt"})).encode()
        member = tarfile.TarInfo(_KUBECONFIG)
        member.size, member.mode = len(content), 0o600
        written = io.BytesIO()
        with tarfile.open(fileobj=written, mode="w") as archive:
            archive.addfile(member, io.BytesIO(content))
        return self.files + written.getvalue()

    def kubeconfig(self, authority):
        """With the token, by the proxy of the host."""
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "metalform", "cluster": {"server": "https://127.0.0.1:7443", **authority}}],
            "users": [{"name": "join", "user": {"token": self._token}}],
            "contexts": [{"name": "join", "context": {"cluster": "metalform", "user": "join"}}],
            "current-context": "join",
        }

    def install(self):
        """Ends when the API shows the node Ready."""
        over_ssh(self.name, script("install-node.sh"), self.pause, stdin=self.archive())
        kubectl("wait", f"node/{self.name}", "--for=condition=Ready", f"--timeout={_PATIENCE}s", timeout=_PATIENCE + 10)

    def install_with_control_plane(self):
        """Ends when its API server is ready too."""
        peer = f"https://{address(self.name)}:2380"
        etcdctl("member", "add", self.name, f"--peer-urls={peer}")
        self.install()
        server = f"https://{address(self.name)}:6443"
        until(f"{server} is ready", _PATIENCE, lambda: kubectl("get", "--raw=/readyz", f"--server={server}") == "ok")

    def judge(self):
        """metalform has nothing to change on it, but for the token, which it removes."""
        done = metalform("deploy-node", self.name, "--dry-run")
        differs = set(_RESOURCE.findall(done.stdout)) - {f"file:{_KUBECONFIG}"}
        if done.returncode != 0 or differs:
            raise Failed(f"the floor's {self.name} is not as metalform has it: {sorted(differs)}\n{done.stderr}")


def script(name):
    """One of the floor's, as it is sent."""
    with open(os.path.join(_HERE, "floor", name), encoding="utf-8") as file:
        return file.read()


def over_ssh(node, command_text, *arguments, stdin=b""):
    """One connection from the operator's place, as root."""
    command = [LAB, "ssh", f"root@{node}", "sh", "-c", *map(shlex.quote, (command_text, "sh", *arguments))]
    done = subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=_PATIENCE)
    if done.returncode != 0:
        raise Failed(f"{node}: exit {done.returncode}: {done.stderr.decode()[-1500:]}")


def remove(node):
    """A worker: drained, uninstalled and deleted."""
    kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force", timeout=_PATIENCE)
    over_ssh(node, script("uninstall-node.sh"))
    kubectl("delete", "node", node)


def _secret(node, identity, secret):
    data = {
        "token-id": identity,
        "token-secret": secret,
        "usage-bootstrap-authentication": "true",
        "auth-extra-groups": f"system:bootstrappers:metalform:{node}",
    }
    metadata = {"name": f"bootstrap-token-{identity}", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "bootstrap.kubernetes.io/token", "stringData": data}
