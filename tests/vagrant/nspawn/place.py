"""Where the lab keeps its things on this machine.

Two directories, because they have two lifetimes. What is under `run` means
something only while hosts run. What is under `state` is their disks, which a
power cut must not touch, and the key pair, which even `lab down` keeps.

Every name outside these directories (namespaces, cgroups) begins with the
lab's prefix, so two labs can run side by side and `down` finds its own.
"""

import contextlib
import fcntl
import os
import re
import time

from .failure import LabError

PREFIX = os.environ.get("METALFORM_LAB", "mfl")
if not re.fullmatch(r"[a-z][a-z0-9]{0,7}", PREFIX):
    raise SystemExit(f"lab: METALFORM_LAB={PREFIX!r} must be 1 to 8 lower-case letters and digits")

CACHE = os.path.join(os.environ.get("METALFORM_CACHE", "/var/cache/metalform"), "lab")
IMAGES = os.path.join(CACHE, "images")
STATE = os.path.join(CACHE, "run", PREFIX)
RUN_ROOT = "/run/metalform-lab"
RUN = os.path.join(RUN_ROOT, PREFIX)
KEY = os.path.join(STATE, "id_ed25519")


def name_of(thing):
    """The machine-wide name of a namespace, cgroup or nspawn machine of this lab."""
    return f"{PREFIX}-{thing}"


def run_directory(host):
    """Console log, pulled-cable marks and mount point of one host."""
    return os.path.join(RUN, host)


def disk_directory(host):
    """What a host has written, and nothing but."""
    return os.path.join(STATE, "hosts", host)


def prepare():
    """Make the directories, and note in `run` which state directory it belongs to.

    The note lets `down` remove the disks even when it is called with another
    METALFORM_CACHE than `up` was. The caller holds the lab's lock.
    """
    os.makedirs(os.path.join(STATE, "hosts"), mode=0o700, exist_ok=True)
    os.makedirs(RUN, mode=0o755, exist_ok=True)
    link = os.path.join(RUN, "state")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(link)
    os.symlink(STATE, link)


@contextlib.contextmanager
def locked(directory=STATE, patience=60):
    """Hold the lab while hosts are started or stopped; yields the lock's descriptor.

    A directory is locked, not a file made for it, so nothing is left over. A
    host's launcher inherits the descriptor until it is inside its cgroup. So
    a process that gets the lock after a killed `up` sees every process `up` began.
    """
    os.makedirs(directory, exist_ok=True)
    lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    deadline = time.monotonic() + patience
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise LabError(
                        f"another lab command has held {directory} for {patience} s",
                        f"find it with: fuser {directory}",
                    ) from None
                time.sleep(0.05)
        yield lock
    finally:
        os.close(lock)
