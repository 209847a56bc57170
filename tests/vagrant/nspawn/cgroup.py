"""One cgroup a host in every hierarchy, which is also how its processes are found.

Two kubelets in one cgroup would share `kubepods` and delete each other's pods,
so nspawn is started from inside a cgroup of its own, and what it then shows
the host as the root is that cgroup. The machine's own cgroups are only read.
"""

import contextlib
import os
import signal
import time

from .failure import LabError
from .place import PREFIX, name_of

PATIENCE = 10


def hierarchies():
    """Mount points of every cgroup hierarchy: many with v1, one with v2."""
    points = []
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        for line in mounts:
            fields, _, kind = line.partition(" - ")
            point = fields.split()[4]
            if kind.split()[0] in ("cgroup", "cgroup2") and point.startswith("/sys/fs/cgroup"):
                points.append(point)
    return sorted(set(points))


def is_legacy():
    """Whether the machine has v1 controllers, which systemd 257 uses only with an option."""
    return len(hierarchies()) > 1


def directories(host):
    return [os.path.join(point, name_of(host)) for point in hierarchies()]


def make(host):
    """The host's cgroups, ready to be entered; returns their directories."""
    for directory in directories(host):
        os.makedirs(directory, exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):
            # A v1 cpuset starts empty, and takes no process until it is filled.
            target = os.path.join(directory, setting)
            parent = os.path.join(os.path.dirname(directory), setting)
            if os.path.exists(target) and os.path.exists(parent):
                _write(target, _read(parent))
    return directories(host)


def processes(host):
    """Every process of a host, its containers' too."""
    found = set()
    for directory in directories(host):
        for path, _, _ in os.walk(directory):
            found.update(_members(path))
    return found


def direct_processes(host):
    """The host's processes outside its containers, from one hierarchy only: fast.

    systemd does not use the freezer controller, so there everything but pods
    stays in the host's own directory. (v2 has one hierarchy: walk it all.)
    """
    freezer = os.path.join("/sys/fs/cgroup/freezer", name_of(host))
    return _members(freezer) if os.path.isdir("/sys/fs/cgroup/freezer") else processes(host)


def kill(host):
    """SIGKILL to all of them, again until none is left: the power cut itself."""
    deadline = time.monotonic() + PATIENCE
    while alive := processes(host):
        for pid in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise LabError(f"{host}: processes {sorted(alive)} do not die")
        time.sleep(0.01)


def remove(host):
    """The host's cgroups, deepest first. Only empty ones can be removed, so nothing is lost."""
    deadline = time.monotonic() + PATIENCE
    for directory in directories(host):
        while os.path.isdir(directory):
            for path, _, _ in os.walk(directory, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(path)
            if os.path.isdir(directory):
                # A killed process leaves its cgroup a moment after it is gone.
                if time.monotonic() > deadline:
                    raise LabError(f"{directory} cannot be removed")
                time.sleep(0.02)


def known():
    """Every host that has a cgroup of this lab, also where the topology no longer has it."""
    found = set()
    for point in hierarchies():
        found.update(entry.name for entry in os.scandir(point) if entry.name.startswith(f"{PREFIX}-"))
    return sorted(name[len(PREFIX) + 1 :] for name in found)


def enter(host):
    """Put this process under the host's power switch, before it enters the host."""
    for directory in directories(host):
        # Where nspawn manages the hierarchy, the host's root is one level down.
        payload = os.path.join(directory, "payload")
        inner = payload if os.path.isdir(payload) else directory
        _write(os.path.join(inner, "cgroup.procs"), str(os.getpid()))


def _members(directory):
    try:
        return {int(pid) for pid in _read(os.path.join(directory, "cgroup.procs")).split()} - {0}
    except OSError:
        # The cgroup went away, or (threaded v2) has no processes of its own.
        return set()


def _read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def _write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
