"""`kubeadm join` of a host on which everything is installed, beside which deployments are shown; it is built from
Kubernetes' own module.
"""

import json
import os
import shutil
import subprocess
import tempfile

import yaml

from cluster import CACHE, apply, kubectl, lab, succeed
from floor import over_ssh, script

_MODULE = "k8s.io/kubernetes"
_PATH = f"{_MODULE}/cmd/kubeadm"
_TARGET, _DISCOVERY, _JOIN = "/usr/bin/kubeadm", "/root/discovery.conf", "/root/join.yaml"
_GROUP = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:bootstrappers"}


def build(version):
    """The program of this version, `v1.35.4`; kept in the cache."""
    made = os.path.join(CACHE, "bench", f"kubeadm-{version}")
    if os.path.exists(made):
        return made
    os.makedirs(os.path.dirname(made), exist_ok=True)
    published = f"v0.{version.partition('.')[2]}"
    with tempfile.TemporaryDirectory(prefix="metalform-kubeadm-") as work:
        _write(work, "tools.go", f'//go:build tools\n\npackage tools\n\nimport _ "{_PATH}"\n')
        _write(work, "go.mod", f"module metalform.dev/bench\n\ngo 1.25.0\n\nrequire {_MODULE} {version}\n")
        module = json.loads(_go(work, "mod", "download", "-json", f"{_MODULE}@{version}"))
        with open(module["GoMod"], encoding="utf-8") as file:
            words = [line.split() for line in file]
        staged = [each[0] for each in words if len(each) > 1 and each[0].startswith("k8s.io/") and each[1] == "v0.0.0"]
        _go(work, "mod", "edit", *(f"-replace={path}={path}@{published}" for path in staged))
        _go(work, "mod", "tidy")
        _go(work, "build", "-trimpath", "-o", os.path.join(work, "kubeadm"), _PATH)
        shutil.move(os.path.join(work, "kubeadm"), f"{made}.part")
    os.replace(f"{made}.part", made)
    return made


class Joinable:
    """A host of which nothing is missing but the join."""

    def __init__(self, prepared):
        """`prepared` is introduced, and its host is new."""
        self._node = prepared.name
        version = kubectl("get", "nodes", "--output=jsonpath={.items[0].status.nodeInfo.kubeletVersion}")
        # Without a kubeconfig its kubelet does not register.
        over_ssh(self._node, script("install-node.sh"), prepared.pause, stdin=prepared.files)
        config = succeed(self._node, "cat", "/var/lib/kubelet/config.yaml")
        over_ssh(self._node, "systemctl stop kubelet && rm -r /var/lib/kubelet/config.yaml /etc/kubernetes/pki")
        lab("push", self._node, build(version), _TARGET)
        authority = {
            "certificate-authority-data": kubectl("config", "view", "--raw", "--output=jsonpath={.clusters[0].cluster.certificate-authority-data}")
        }
        apply(*_cluster_objects(version, config, _cluster_info(prepared.kubeconfig(authority))))
        self._put(_DISCOVERY, prepared.kubeconfig(authority))
        self._put(_JOIN, _join_configuration(self._node))

    def join(self):
        """Ends when the API shows the node Ready."""
        over_ssh(self._node, f"kubeadm join --config {_JOIN}")
        kubectl("wait", f"node/{self._node}", "--for=condition=Ready", "--timeout=180s", timeout=190)

    def _put(self, path, document):
        succeed(self._node, "sh", "-c", 'umask 077 && cat > "$1"', "sh", path, stdin=json.dumps(document))


def _join_configuration(node):
    socket = "unix:///run/containerd/containerd.sock"
    registration = {"name": node, "criSocket": socket, "ignorePreflightErrors": ["all"], "taints": []}
    document = {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "JoinConfiguration"}
    return {**document, "discovery": {"file": {"kubeConfigPath": _DISCOVERY}}, "nodeRegistration": registration}


def _cluster_info(kubeconfig):
    """The part of a kubeconfig that anyone may read."""
    (cluster,) = kubeconfig["clusters"]
    public = {"clusters": [{**cluster, "name": ""}], "contexts": [], "users": [], "current-context": ""}
    return {"apiVersion": "v1", "kind": "Config", **public}


def _cluster_objects(version, kubelet_config, cluster):
    """What kubeadm reads in a cluster that it has made itself, and its permission to."""
    clustered = {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", "kubernetesVersion": version}
    yield _config_map("kubeadm-config", {"ClusterConfiguration": yaml.safe_dump(clustered)})
    yield _config_map("kubelet-config", {"kubelet": kubelet_config})
    yield _config_map("cluster-info", {"kubeconfig": yaml.safe_dump(cluster)}, "kube-public")
    rules = [{"apiGroups": [""], "resources": ["nodes", "configmaps"], "verbs": ["get"]}]
    named = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "bench-kubeadm"}}
    yield {**named, "kind": "ClusterRole", "rules": rules}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "bench-kubeadm"}
    yield {**named, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": [_GROUP]}


def _config_map(name, data, namespace="kube-system"):
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def _go(work, *words):
    return subprocess.run(["go", *words], cwd=work, env={**os.environ, "CGO_ENABLED": "0"}, stdout=subprocess.PIPE, check=True).stdout


def _write(directory, name, text):
    with open(os.path.join(directory, name), "w", encoding="ascii") as file:
        file.write(text)
