"""What processes have used: of the processors, of memory, of the network. Read from the kernel, never sampled by name."""

import contextlib
import json
import os
import re
import subprocess

from nspawn import cgroup, network

_TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(group):
    """Of all processes that are or were in one of the lab's cgroups."""
    for directory in cgroup.directories(group):
        legacy, unified = (os.path.join(directory, name) for name in ("cpuacct.usage", "cpu.stat"))
        if os.path.exists(legacy):
            return int(_read(legacy)) / 1e9
        if os.path.exists(unified) and (usage := re.search(r"^usage_usec (\d+)", _read(unified), re.MULTILINE)):
            return int(usage[1]) / 1e6
    return 0.0


def machine_seconds():
    """Of the whole machine: all but idling and waiting, time that its own host took away included."""
    user, nice, system, _idle, _wait, *rest = (int(word) for word in _read("/proc/stat").splitlines()[0].split()[1:9])
    return (user + nice + system + sum(rest)) / _TICKS


def interface_bytes(station):
    """Sent and received by a station's first card, frames and all."""
    command = ["ip", "-n", network.name_of(station), "-json", "-statistics", "link", "show", "eth0"]
    counters = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[0]["stats64"]
    return counters["tx"]["bytes"], counters["rx"]["bytes"]


class Memory:
    """The peaks that were seen in the processes of a cgroup, in KiB."""

    def __init__(self):
        self.together = self.largest = self.processes = 0

    def sample(self, group):
        """`together` is the proportional set size: what processes share is counted once."""
        together = processes = 0
        for pid in cgroup.direct_processes(group):
            # A process may end while it is read.
            with contextlib.suppress(OSError, TypeError):
                together += int(re.search(r"^Pss:\s+(\d+)", _read(f"/proc/{pid}/smaps_rollup"), re.MULTILINE)[1])
                peak = int(re.search(r"^VmHWM:\s+(\d+)", _read(f"/proc/{pid}/status"), re.MULTILINE)[1])
                self.largest = max(self.largest, peak)
                processes += 1
        self.together, self.processes = max(self.together, together), max(self.processes, processes)


def _read(path):
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read()
