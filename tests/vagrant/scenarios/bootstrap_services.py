"""The services of the bootstrap host: sandboxed, without keys that are not theirs, and images that no one replaces."""

import json
import re

from checks import check, expect, expect_equal
from cluster import BOOTSTRAP, NODES, kubectl, on, shell, succeed

USER, PUSH_USER = "metalform-serve", "metalform-push"
UNITS = {
    "metalform.service": USER,
    "metalform-signer.service": "root",
    "metalform-machine-controller.service": "root",
    "metalform-registry.service": USER,
    "metalform-registry-writer.service": "root",
    "metalform-push.service": PUSH_USER,
}
SOCKET = "/run/metalform-registry-writer/registry.sock"
# Begins the upload of a blob, and prints the first line of the response.
UPLOAD = (
    "printf 'POST /v2/registry.k8s.io/pause/blobs/uploads/ HTTP/1.0\\r\\nHost: a\\r\\nContent-Length: 0\\r\\n\\r\\n' |"
    ' socat -t 5 - "$1" | head -n 1'
)


@check("{} runs, and its exposure is at most 3.0", each=UNITS)
def sandboxed(unit):
    expect_equal("state", succeed(BOOTSTRAP, "systemctl", "is-active", unit).strip(), "active")
    table = succeed(BOOTSTRAP, "systemd-analyze", "security", "--no-pager", unit)
    exposure = re.search(r"Overall exposure level for \S+: ([0-9.]+)", table)
    expect(exposure and float(exposure.group(1)) <= 3.0, table)


@check("{} runs as its user, without capabilities", each=UNITS)
def user(unit):
    pid = succeed(BOOTSTRAP, "systemctl", "show", "-P", "MainPID", unit).strip()
    expect_equal("user", succeed(BOOTSTRAP, "stat", "-c", "%U", f"/proc/{pid}").strip(), UNITS[unit])
    capabilities = shell(BOOTSTRAP, f"sed -n 's/^Cap\\(Eff\\|Bnd\\):\\t//p' /proc/{pid}/status").split()
    expect_equal("capabilities", set(capabilities), {"0000000000000000"})


@check("the server of {} can read no key but its own", each=[USER, PUSH_USER])
def keys(user):
    own = {USER: "/var/lib/metalform/serve/tls.key", PUSH_USER: "/var/lib/metalform/push/tls.key"}[user]
    expect_equal("its key", succeed(BOOTSTRAP, "stat", "-c", "%a %U %G", own).strip(), f"640 root {user}")
    find = "find /etc /var/lib/metalform /root -type f \\( -name '*.key' -o -name '*.conf' -path '*kubernetes*' \\)"
    for path in shell(BOOTSTRAP, find).split():
        readable = on(BOOTSTRAP, "setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "cat", path)
        expect((readable.returncode == 0) == (path == own), f"{path}: exit status {readable.returncode}")


@check("a renewed key has the group of the server from its first instant")
def renewed_key():
    made = shell(BOOTSTRAP, 'f=$(mktemp -p /var/lib/metalform/serve); stat -c %G "$f"; rm "$f"')
    expect_equal("group", made.strip(), USER)


@check("the registry on loopback refuses writes, also of root")
def read_only():
    answer = shell(BOOTSTRAP, UPLOAD, "TCP:127.0.0.1:5000")
    expect(" 405 " in answer, answer)


@check("the registry is written by root and the push server only: not by {}", each=["nobody", USER])
def written_by_root(name):
    begin = ["sh", "-euc", UPLOAD, "sh", f"UNIX-CONNECT:{SOCKET}"]
    refused = on(BOOTSTRAP, "setpriv", f"--reuid={name}", "--clear-groups", *begin)
    expect("Permission denied" in refused.stderr and not refused.stdout, f"{refused.stdout}{refused.stderr}")
    answer = succeed(BOOTSTRAP, *begin)
    expect(" 202 " in answer, answer)


@check("every image of the cluster's own pods is named by its digest")
def by_digest():
    pods = json.loads(kubectl("get", "pods", "-n", "kube-system", "-o", "json"))["items"]
    images = {container["image"] for pod in pods for container in pod["spec"]["containers"]}
    expect(len(images) >= 5, f"{images}")
    by_tag = sorted(image for image in images if "@sha256:" not in image)
    expect(not by_tag, f"{by_tag}")


@check("the kubelet of {} finds each image that it runs without the registry", each=NODES)
def found_offline(node):
    script = "ctr -n k8s.io images ls -q | grep -c '@sha256:' || true; journalctl -q -u kubelet --grep 'ErrImagePull|ImagePullBackOff' | head -n 3"
    count, *failures = shell(node, script).splitlines()
    expect(int(count) > 0 and not failures, f"{count} images by digest; {failures}")


@check("the pause image of {} is pinned", each=NODES)
def pinned(node):
    labels = shell(node, "ctr -n k8s.io images ls 'name~=\"pause@\"'")
    expect("io.cri-containerd.pinned=pinned" in labels, labels)
