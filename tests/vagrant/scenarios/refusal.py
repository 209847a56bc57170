"""What a refusal must be: the right exit code, one error line for each reason, a hint, and nothing changed."""

import json
import re

from checks import expect, expect_equal
from cluster import BOOTSTRAP, get, shell, succeed

# Where metalform could change something. What hosts write of their own accord is left out: logs, leases, caches.
_PLACES = "/etc /opt /root /srv /usr /var/lib/containerd /var/lib/kubelet /var/lib/metalform /var/lib/dpkg"
_OURS = ("metalform.dev/", "metalk8s.scality.com/")


def expect_refusal(done, code, *patterns, errors=1):
    """`patterns` are regular expressions that the error lines, taken together, must all match."""
    output = done.stderr.splitlines()
    lines = [line for line in output if line.startswith("error: ")]
    shown = f"\nexit {done.returncode}\n{done.stdout}{done.stderr}"
    expect_equal(f"exit code{shown}", done.returncode, code)
    expect_equal(f"number of error lines{shown}", len(lines), errors)
    for pattern in patterns:
        expect(re.search(pattern, "\n".join(lines)), f"no error matches {pattern!r}{shown}")
    expect(any(line.startswith("hint: ") for line in output), f"there is no hint{shown}")


class Unchanged:
    """A context at whose end a host, and the cluster, must be as they were at its beginning."""

    def __init__(self, host, in_cluster=True):
        self.host, self.in_cluster = host, in_cluster

    def __enter__(self):
        self.before = self._observe()
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            after = self._observe()
            gone, new = self.before - after, after - self.before
            expect(not gone and not new, f"something changed: gone {sorted(gone)[:5]}, new {sorted(new)[:5]}")

    def _observe(self):
        return files(self.host) | (cluster() if self.in_cluster else set())


def files(host):
    """One line a file: where, how large, whose, and when it was last changed in any way.

    Without the record of operations: what was refused is recorded too.
    """
    script = (
        f"for place in {_PLACES}; do [ ! -e $place ] || echo $place; done |"
        " xargs -I{} find {} -xdev -type f -not -path '/var/lib/metalform/operations/*' -printf '%p %s %m %U %C@\\n'"
    )
    return set(shell(host, script).splitlines())


def cluster():
    """What of the cluster only an operator, or metalform, changes."""
    found = set()
    for node in get("nodes")["items"]:
        meta = node["metadata"]
        # Controllers write annotations and taints of their own, some a moment after the Node appears.
        annotations = {key: text for key, text in meta.get("annotations", {}).items() if key.startswith(_OURS)}
        taints = [taint for taint in node["spec"].get("taints", []) if not taint["key"].startswith("node.kubernetes.io/")]
        found.add(f"node {meta['name']} {meta['uid']} {meta.get('labels')} {annotations} {taints}")
    for member in json.loads(succeed(BOOTSTRAP, "metalform", "etcd", "members", "-o", "json")):
        found.add(f"member {member['name']} {member['status']}")
    found.update(
        f"{secret['type']} {secret['metadata']['namespace']}/{secret['metadata']['name']}"
        for secret in get("secrets", "--all-namespaces")["items"]
    )
    return found
