"""A key of a living cluster is lost: nothing makes it anew, the error says where it still is, and with it all goes on."""

from checks import check, expect, expect_equal
from cluster import BOOTSTRAP, NODES, metalform, ready, shell, succeed, with_role
from refusal import expect_refusal

PKI = "/etc/kubernetes/pki"
CONFIGURATION = 1
LOST = {
    # What is lost, and where the error says that it is.
    "the CA of Kubernetes": ([f"{PKI}/ca.crt", f"{PKI}/ca.key"], "a backup of this node"),
    "the private key of etcd's CA": ([f"{PKI}/etcd/ca.key"], "a backup of this node"),
    "the key that encrypts secrets": ([f"{PKI}/encryption.key"], "/etc/kubernetes/encryption.yaml of every master"),
    "the key of the routes": ([f"{PKI}/routing.key"], "/etc/bird/bird.conf of every node"),
}
ASIDE = "/root/scenario-lost-keys"


def tear_down():
    _restore()
    done = metalform("bootstrap")
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)


@check("without {} bootstrap and deploy-node are refused, and no file is made", each=LOST)
def lost(which):
    paths, where = LOST[which]
    before = _files()
    _set_aside(paths)
    try:
        left = _files()
        for command in (["bootstrap"], ["bootstrap", "--dry-run"], ["deploy-node", NODES[-1]]):
            expect_refusal(metalform(*command), CONFIGURATION, paths[-1], where)
            expect_equal(f"files after {' '.join(command)}", _files(), left)
    finally:
        _restore()
    expect_equal("files with the key again", _files(), before)


@check("the key that encrypts secrets is restored from another master, and nothing differs")
def restored_from_a_copy():
    path = f"{PKI}/encryption.key"
    _set_aside([path])
    script = "sed -n 's/^ *secret: *\"*\\([^\"]*\\)\"*$/\\1/p' /etc/kubernetes/encryption.yaml"
    key = shell(with_role("master")[-1], script).strip()
    shell(BOOTSTRAP, 'umask 077; printf %s "$1" >"$2"', key, path)
    done = metalform("bootstrap")
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    expect("(changed=0)" in done.stdout, done.stdout)
    _restore()


@check("with its keys the cluster is as before")
def whole():
    done = metalform("deploy-node", NODES[-1])
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    expect("(changed=0)" in done.stdout, done.stdout)
    expect_equal("Ready", [node for node in NODES if ready(node)], NODES)


def _files():
    """Every file that is a key, or made with one, and its digest."""
    script = "find /etc/kubernetes/pki /var/lib/metalform -type f -size -1M -exec sha256sum {} + | sort -k2"
    return shell(BOOTSTRAP, script)


def _set_aside(paths):
    for path in paths:
        succeed(BOOTSTRAP, "install", "-d", "-m", "0700", f"{ASIDE}{path.rpartition('/')[0]}")
        succeed(BOOTSTRAP, "mv", path, f"{ASIDE}{path}")


def _restore():
    shell(BOOTSTRAP, 'test ! -d "$1" || { cp -a "$1/." / && rm -rf "$1"; }', ASIDE)
