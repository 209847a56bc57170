"""A network of the benchmark's own, which leaves the machine's alone: its loopback interface, and one link of a known rate."""

import os
import subprocess

# A connection to each of them comes from the same address: as many peers for the server, each with a part of the clients.
PEERS = [f"127.1.0.{number}" for number in range(1, 5)]
SERVER = "10.99.0.1"
HOSTS = [f"10.99.0.{number}" for number in range(11, 16)]
# What a machine on a rack's switch has.
LINK_BITS = 1_000_000_000
_INSIDE = "METALFORM_BENCH_NETWORK"
# Ethernet with TCP timestamps (RFC 7323): payload and length of a full frame, as the kernel counts it.
_SEGMENT, _FRAME = 1448, 1514
# TLS 1.3 with an AEAD: plain bytes of a full record, and header, type and tag.
_RECORD, _OVERHEAD = 16_384, 22


def enter(command):
    """Runs this program again in a network namespace; returns in that one alone."""
    if os.environ.get(_INSIDE) != "1":
        os.environ[_INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--net", *command])
    _ip("link", "set", "lo", "up")
    for address in PEERS:
        _ip("address", "add", f"{address}/32", "dev", "lo")


def wire_bytes(payload):
    """What so many bytes over HTTPS take on the link."""
    return payload * (_RECORD + _OVERHEAD) / _RECORD * _FRAME / _SEGMENT


class Link:
    """From here to a second namespace, in which the five hosts have their addresses. The kernel limits its rate."""

    def __init__(self):
        # It reports that it is in its namespace, and ends with its input.
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._holder.stdout.readline()
        _ip("link", "add", "bench0", "type", "veth", "peer", "name", "bench1", "netns", str(self._holder.pid))
        _ip("address", "add", f"{SERVER}/24", "dev", "bench0")
        _ip("link", "set", "bench0", "up")
        limit = ["rate", str(LINK_BITS), "burst", "256kb", "latency", "50ms"]
        subprocess.run(["tc", "qdisc", "add", "dev", "bench0", "root", "tbf", *limit], check=True)
        for host in HOSTS:
            self.run("ip", "address", "add", f"{host}/24", "dev", "bench1")
        self.run("ip", "link", "set", "bench1", "up")

    def inside(self, *command):
        """The command line that runs one of the hosts' commands."""
        return ["nsenter", f"--net=/proc/{self._holder.pid}/ns/net", *command]

    def run(self, *command):
        subprocess.run(self.inside(*command), stdin=subprocess.DEVNULL, check=True)

    def close(self):
        # The kernel removes a namespace, and this end with it, some time after its last process has ended.
        _ip("link", "delete", "bench0")
        self._holder.stdin.close()
        self._holder.wait()


def _ip(*words):
    subprocess.run(["ip", *words], stdin=subprocess.DEVNULL, check=True)
