"""Hosts that are slower than they look: a processor share, a line rate.

Both are set from outside, where nothing in the host can see or undo them. They
stay until they are lifted or the host is powered off. There is no added delay
or loss: not every kernel has netem, and this one has not.
"""

import os
import subprocess

from . import cgroup, network
from .failure import LabError

_PERIOD_US = 100_000


def limit_processor(host_name, percent):
    """Let a host have so many percent of one processor; None lifts the limit."""
    for directory in cgroup.directories(host_name):
        legacy, unified = (os.path.join(directory, name) for name in ("cpu.cfs_quota_us", "cpu.max"))
        quota = percent * _PERIOD_US // 100 if percent else None
        if os.path.exists(legacy):
            # The period is the kernel's default, 100 ms.
            return _write(legacy, str(quota or -1))
        if os.path.exists(unified):
            return _write(unified, f"{quota or 'max'} {_PERIOD_US}")
    raise LabError(f"{host_name}: no processor controller to limit it with")


def limit_line(host_name, plane_names, megabits):
    """Let so much reach a host over each plane; None lifts the limit."""
    for plane_name in plane_names:
        line = ["nsenter", f"--net={network.path_of('switch')}", "tc", "qdisc"]
        device = ["dev", network.cable(plane_name, host_name), "root"]
        # Deleting what does not exist fails, which is fine.
        subprocess.run([*line, "delete", *device], capture_output=True, check=False)
        if megabits:
            rate = ["tbf", "rate", f"{megabits}mbit", "burst", "64kb", "latency", "200ms"]
            done = subprocess.run([*line, "add", *device, *rate], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise LabError(f"{host_name}: {done.stderr.strip()}")


def _write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
