"""2,000 idle and 200 slow TLS clients of one peer: packages, images and certificates still reach the other hosts."""

import os
import select
import subprocess
import sys
import time

from checks import Failed, State, check, expect, expect_equal, until
from cluster import BOOTSTRAP, LAB, address, kubectl, shell, succeed

NODE = "node-1"
SERVER = f"{address(BOOTSTRAP)}:8443"
IDLE, SLOW = 2_000, 200
STARVE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "starve.py")
STATE = State()


def set_up():
    """The clients are a process of this machine in the operator's network namespace: one peer, 10.20.0.250."""
    index = shell(BOOTSTRAP, "cd /srv/metalform/bundle && find apt -name '*.deb' -size +4M | head -n 1").strip()
    expect(index, "the bundle has no large package")
    command = [LAB, "run", "--", sys.executable, STARVE, SERVER, str(IDLE), str(SLOW), f"/{index}"]
    STATE["clients"] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    if not select.select([STATE["clients"].stdout], [], [], 180)[0]:
        raise Failed("the clients have not all tried to connect within 180 s")
    expect(STATE["clients"].stdout.readline(), "the clients ended")


def tear_down():
    if "clients" in STATE:
        STATE["clients"].terminate()
        STATE["clients"].wait(timeout=30)


@check("apt updates its indexes and downloads a package")
def packages():
    script = "apt-get -q update && cd $(mktemp -d) && apt-get -q download socat && rm -r \"$PWD\""
    _soon(lambda: shell(NODE, script, timeout=120))


@check("an image is pulled")
def images():
    image = shell(NODE, "sed -n \"s/^ *sandbox = '\\(.*\\)'/\\1/p\" /etc/containerd/config.toml").strip()
    pull = "ctr -n scenario images pull --hosts-dir /etc/containerd/certs.d \"$1\""
    try:
        _soon(lambda: shell(NODE, pull, image, timeout=120))
    finally:
        shell(NODE, "ctr -n scenario images rm --sync \"$1\"", image)


@check("a kubelet gets a new serving certificate")
def certificates():
    before = _newest_request()
    shell(NODE, "rm -f /var/lib/kubelet/pki/kubelet-server-*; systemctl restart kubelet")
    until("a new certificate", 60, lambda: shell(NODE, "cat /var/lib/kubelet/pki/kubelet-server-current.pem"))
    expect(_newest_request() != before, "the kubelet has requested no certificate")


@check("the server has less than 100 MB, and few connections of that peer")
def bounded():
    pid = succeed(BOOTSTRAP, "systemctl", "show", "-P", "MainPID", "metalform.service").strip()
    peak = int(shell(BOOTSTRAP, 'awk "/^VmHWM:/ { print \\$2 }" "/proc/$1/status"', pid))
    expect(peak * 1024 < 100_000_000, f"{peak} kB")
    # The kernel establishes more than the server keeps: those are seen until it has refused them.
    until("at most 32 connections", 10, _few_connections)


@check("the server was not restarted")
def not_restarted():
    expect_equal("restarts", succeed(BOOTSTRAP, "systemctl", "show", "-P", "NRestarts", "metalform.service").strip(), "0")


def _few_connections():
    connections = shell(BOOTSTRAP, "ss -Htn state established 'sport = :8443' dst 10.20.0.250 | wc -l").strip()
    expect(int(connections) <= 32, f"{connections} connections")
    return True


def _newest_request():
    names = kubectl("get", "csr", "--sort-by=.metadata.creationTimestamp", "-o", "name").split()
    return names[-1] if names else None


def _soon(action):
    began = time.monotonic()
    action()
    seconds = time.monotonic() - began
    expect(seconds < 60, f"it took {seconds:.0f} s")
