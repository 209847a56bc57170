"""A host that cannot be reached, or must not become a node, is refused with the reason and left alone."""

import contextlib
import re

from checks import check, expect_equal
from cluster import address, apply, authorise, fingerprint, forget, fresh, lab, manifest, metalform, shell
from refusal import Unchanged, cluster, expect_refusal

NODE = "spare-2"
SSH, HOST = 3, 4


def set_up():
    fresh(NODE)
    apply(manifest(NODE))


def tear_down():
    forget(NODE)


@check("a host key that was never accepted")
def unknown_host_key():
    _refused(SSH, r"10\.20\.0\.32", "host key", re.escape(fingerprint(NODE)))


@check("a key that the host refuses")
def key_refused():
    expect_equal("ssh key was authorised before", _accept_host_key().returncode, SSH)
    _refused(SSH, r"10\.20\.0\.32", "root", "/etc/metalform/pki/ssh")


@check("node check accepts the host key with the given fingerprint, and no other")
def accepts_given_fingerprint():
    authorise(NODE)
    expect_refusal(metalform("node", "check", NODE, "--accept-host-key", fingerprint("node-1")), SSH, "host key")
    done = _accept_host_key()
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)


@check("another host key than the pinned one")
def other_host_key():
    with _annotated({"metalform.dev/ssh-host-key": lab("host-key", "node-1").strip()}):
        _refused(SSH, re.escape(fingerprint(NODE)), re.escape(fingerprint("node-1")))


@check("a user to whom sudo is refused")
def sudo_refused():
    authorise(NODE, "nosudo")
    with _annotated({"metalform.dev/ssh-user": "nosudo", "metalform.dev/ssh-sudo": "true"}):
        _refused(SSH, r"10\.20\.0\.32", "sudo", "nosudo")


@check("a host that is off")
def off():
    lab("power-off", NODE)
    before = cluster()
    try:
        expect_refusal(metalform("deploy-node", NODE), SSH, NODE, r"10\.20\.0\.32")
        expect_equal("the cluster", cluster(), before)
    finally:
        lab("power-on", NODE)


@check("an operating system that the bundle does not support")
def unsupported_system():
    with _changed("mv /etc/os-release /etc/os-release.true; printf 'ID=plan9\\nVERSION_ID=4\\n' > /etc/os-release",
                  "mv -f /etc/os-release.true /etc/os-release"):
        _refused(HOST, NODE, "plan9")


@check("a clock that is 31 s ahead")
def clock_ahead():
    program = "#!/bin/sh\nexec /usr/bin/date --date='+31 seconds' \"$@\"\n"
    with _changed("cat > /usr/local/bin/date; chmod 755 /usr/local/bin/date", "rm /usr/local/bin/date", stdin=program):
        _refused(HOST, NODE, r"the clock is 3[12] s ahead of that of this machine")


@check("a host with another name than the Node")
def other_name():
    with _changed("hostname elsewhere; echo elsewhere > /etc/hostname",
                  f"hostname {NODE}; echo {NODE} > /etc/hostname"):
        _refused(HOST, NODE, "elsewhere")


@check("two reasons are reported at once")
def all_at_once():
    with _changed("hostname elsewhere; mkdir -p /etc/kubernetes/pki; echo another > /etc/kubernetes/pki/ca.crt",
                  f"hostname {NODE}; rm -r /etc/kubernetes"):
        _refused(HOST, "elsewhere", "another cluster", errors=2)


@check("the address of another node")
def address_of_another():
    # It is that node: its name, its machine id and its address on each plane are each a reason.
    reasons = [address("node-1"), address("node-1", "workload-plane"), "node-1"]
    with _annotated({"metalform.dev/ssh-host": address("node-1")}), Unchanged("node-1"):
        expect_refusal(metalform("deploy-node", NODE), HOST, *reasons, errors=4)


@check("a host that belongs to another cluster")
def other_cluster():
    with _changed("mkdir -p /etc/kubernetes/pki; echo another > /etc/kubernetes/pki/ca.crt", "rm -r /etc/kubernetes"):
        _refused(HOST, NODE, "another cluster", r"/etc/kubernetes/pki/ca\.crt")


@check("a conflicting package of Docker's")
def conflicting_package():
    entry = "\nPackage: docker.io\nStatus: install ok installed\nArchitecture: all\nMaintainer: lab\nVersion: 1\nDescription: -\n"
    with _changed("cp /var/lib/dpkg/status /root/status; cat >> /var/lib/dpkg/status",
                  "mv /root/status /var/lib/dpkg/status", stdin=entry):
        _refused(HOST, NODE, "docker.io")


def _refused(code, *patterns, errors=1):
    with Unchanged(NODE):
        expect_refusal(metalform("deploy-node", NODE), code, *patterns, errors=errors)


def _accept_host_key():
    return metalform("node", "check", NODE, "--accept-host-key", fingerprint(NODE))


@contextlib.contextmanager
def _annotated(annotations):
    """The Node with these annotations as well; kubectl apply removes them again."""
    node = manifest(NODE)
    node["metadata"]["annotations"] = {**node["metadata"]["annotations"], **annotations}
    apply(node)
    try:
        yield
    finally:
        apply(manifest(NODE))


@contextlib.contextmanager
def _changed(change, back, stdin=None):
    """The host with something wrong on it."""
    shell(NODE, change, stdin=stdin)
    try:
        yield
    finally:
        shell(NODE, back)
