"""Private keys are where they must be, readable by root alone (the file server's by its group too), and printed nowhere."""

import base64
import json

from checks import check, expect, expect_equal
from cluster import BOOTSTRAP, NODES, kubectl, on, shell, succeed, with_role

# Places where metalform, or what it starts, may keep a key.
PLACES = "/etc/kubernetes /etc/metalform /var/lib/kubelet/pki /var/lib/metalform /root"


@check("private keys on {} are root's, 0600, but for those of the two servers", each=NODES)
def modes(node):
    script = (
        f"for place in {PLACES}; do [ ! -e $place ] || echo $place; done |"
        " xargs grep -rlIE -e '-----BEGIN [A-Z ]*PRIVATE KEY' -e '^ *(client-key-data|token):' |"
        " xargs --no-run-if-empty stat -Lc '%a %U %G %n'"
    )
    lines = shell(node, script).splitlines()
    expect(lines, "no key was found, so nothing was checked")
    # The file server and the push server are no root: the key of each is readable by its group, which has no other member.
    of_servers = [f"640 root metalform-{name} /var/lib/metalform/{name}/tls.key" for name in ("serve", "push")]
    wrong = [
        line
        for line in lines
        if line.split()[:2] not in (["600", "root"], ["400", "root"]) and not (node == BOOTSTRAP and line in of_servers)
    ]
    expect(not wrong, "\n".join(wrong))


@check("CA keys are on the bootstrap host alone: not on {}", each=[n for n in NODES if n != BOOTSTRAP])
def ca_keys(node):
    found = shell(node, "find / -xdev -path /proc -prune -o -name '*ca.key' -type f -print")
    expect_equal("keys", found, "")


@check("etcd's data on {} is root's, 0700", each=with_role("etcd"))
def etcd_data(node):
    expect_equal("mode", succeed(node, "stat", "-c", "%a %U", "/var/lib/etcd").strip(), "700 root")


@check("no join token is left in the API")
def no_token():
    tokens = kubectl("get", "secrets", "-A", "--field-selector=type=bootstrap.kubernetes.io/token", "-o", "name")
    expect_equal("tokens", tokens, "")


@check("no join token is left on {}", each=NODES)
def no_bootstrap_kubeconfig(node):
    expect(on(node, "test", "!", "-e", "/etc/kubernetes/bootstrap-kubelet.conf").returncode == 0, "it is there")


@check("no secret is in the journal of {}, nor in any argument or environment there", each=NODES)
def printed_nowhere(node):
    # The secrets are passed by stdin: as arguments they would be found themselves.
    script = (
        "cat > /run/scenario-secrets; trap 'rm -f /run/scenario-secrets' EXIT;"
        " journalctl --no-pager --all --output cat | grep -cFf /run/scenario-secrets || true;"
        " cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' |"
        " grep -cFf /run/scenario-secrets || true"
    )
    secrets = _secrets()
    expect(len(secrets) >= 6, f"only {len(secrets)} secrets are known to this check")
    expect_equal("lines with a secret", shell(node, script, stdin="\n".join(secrets) + "\n").split(), ["0", "0"])


@check("secrets are encrypted in etcd")
def encrypted_at_rest():
    name, value = "scenario-encrypted", "not-to-be-read-4711"
    kubectl("create", "secret", "generic", name, "--namespace=default", f"--from-literal=key={value}")
    try:
        found = shell(BOOTSTRAP, f"sync; grep -rlaF '{value}' /var/lib/etcd || true")
        expect_equal("files of etcd with the value", found, "")
        read = json.loads(kubectl("get", "secret", name, "--namespace=default", "-o", "json"))
        expect_equal("value", base64.b64decode(read["data"]["key"]).decode(), value)
    finally:
        kubectl("delete", "secret", name, "--namespace=default")


def _secrets():
    """The first lines of each private key of the bootstrap host, and the keys of the encryption at rest and of routes."""
    keys = shell(
        BOOTSTRAP,
        f"for place in {PLACES}; do [ ! -e $place ] || echo $place; done |"
        " xargs grep -rhIE -A 2 -e '-----BEGIN [A-Z ]*PRIVATE KEY' | grep -vE -e '-----' -e '^--$'",
    ).split()
    at_rest = shell(BOOTSTRAP, "sed -n 's/^.* secret: *//p' /etc/kubernetes/encryption.yaml").split()
    routes = succeed(BOOTSTRAP, "cat", "/etc/kubernetes/pki/routing.key").split()
    return sorted({line.strip('"') for line in keys + at_rest + routes if len(line) > 20})
