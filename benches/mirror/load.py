"""100 clients at once: wrk, one for each peer's address, each connection kept and used again.

wrk is C with OpenSSL and receives into one small buffer. Servers and clients have processors of their own, so that what is
measured is the server as long as its processor is the one that is busy, which is measured too.
"""

import os
import subprocess

from checks import Failed
from network import PEERS

CLIENTS = 100
_MANIFESTS = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json"
_REPORT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "report.lua")


def processors():
    """Those of servers, and those of clients."""
    every = sorted(os.sched_getaffinity(0))
    half = max(1, len(every) // 2)
    return every[:half], every[half:] or every


def on(cpus, *command):
    return ["taskset", "--cpu-list", ",".join(map(str, cpus)), *command]


def throughput(port, path, seconds):
    """Bytes a second of all clients together, all of one path."""
    each = ["--threads=1", f"--connections={CLIENTS // len(PEERS)}", f"--duration={seconds}", "--timeout=60", f"--script={_REPORT}"]
    commands = [on(processors()[1], "wrk", *each, f"https://{peer}:{port}{path}") for peer in PEERS]
    running = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) for command in commands]
    outputs = [each.communicate(timeout=seconds + 60)[0] for each in running]
    rate = 0.0
    for output in outputs:
        line = next((line for line in output.splitlines() if line.startswith("measured ")), None)
        if line is None:
            raise Failed(f"wrk reported nothing of {path}: {output}")
        size, _, microseconds, failed = map(int, line.split()[1:])
        if failed:
            raise Failed(f"{failed} requests of {path} on port {port} failed")
        rate += size / microseconds * 1e6
    return rate


def pull(link, authority, base, paths):
    """Begins what one of the five hosts does, from its address: every path in order, over one connection."""

    def begin(host):
        command = ["curl", "--silent", "--show-error", "--fail", "--fail-early", "--interface", host, "--cacert", authority]
        command += ["--header", f"Accept: {_MANIFESTS}"]
        for path in paths:
            command += ["--output", os.devnull, base + path]
        return subprocess.Popen(link.inside(*command), stdin=subprocess.DEVNULL)

    return begin
