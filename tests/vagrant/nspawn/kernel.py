"""Kernel settings that all hosts and this machine share, restored when the lab goes down.

A host may write /proc/sys, as root may on a real machine: the kubelet requires it. Network settings belong
to the host, but these belong to no namespace, so the last host to write one wins and the machine would keep it.
"""

import contextlib
import json
import os

from .place import RUN

# What Debian's own sysctl.d, the kubelet and the usual advice for Kubernetes set.
SHARED = [
    "fs/aio-max-nr",
    "fs/file-max",
    "fs/inotify/max_queued_events",
    "fs/inotify/max_user_instances",
    "fs/inotify/max_user_watches",
    "fs/nr_open",
    "fs/protected_fifos",
    "fs/protected_hardlinks",
    "fs/protected_regular",
    "fs/protected_symlinks",
    "fs/suid_dumpable",
    "kernel/core_pattern",
    "kernel/core_uses_pid",
    "kernel/dmesg_restrict",
    "kernel/keys/maxbytes",
    "kernel/keys/maxkeys",
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/kptr_restrict",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/printk",
    "kernel/sysrq",
    "kernel/threads-max",
    "vm/dirty_background_ratio",
    "vm/dirty_ratio",
    "vm/max_map_count",
    "vm/min_free_kbytes",
    "vm/overcommit_memory",
    "vm/overcommit_ratio",
    "vm/panic_on_oom",
    "vm/swappiness",
]

# Limits that a real machine has for itself, and that here are one for all hosts. A control-plane node alone takes
# 25 of the kernel's default of 128 inotify instances; the containerd of a seventh host would not start.
_RAISED = {"fs/inotify/max_user_instances": 2048, "fs/inotify/max_user_watches": 1_048_576}

_FILE = os.path.join(RUN, "kernel-settings.json")


def remember():
    """Record the machine's settings before the first host can change one."""
    if os.path.exists(_FILE):
        return
    # Written beside and renamed: a partial record would be worse than none.
    with open(f"{_FILE}.new", "w", encoding="utf-8") as file:
        json.dump(settings(), file, indent=1)
    os.rename(f"{_FILE}.new", _FILE)


def raise_limits():
    """At least what all hosts need together; the caller has called `remember`."""
    for name, least in _RAISED.items():
        path = os.path.join("/proc/sys", name)
        with open(path, encoding="utf-8") as setting:
            enough = int(setting.read()) >= least
        if not enough:
            with open(path, "w", encoding="utf-8") as setting:
                setting.write(str(least))


def put_back():
    """Called when no host runs any more."""
    with contextlib.suppress(FileNotFoundError), open(_FILE, encoding="utf-8") as file:
        now = settings()
        for name, value in json.load(file).items():
            if now.get(name) != value:
                with open(os.path.join("/proc/sys", name), "w", encoding="utf-8") as setting:
                    setting.write(value)


def settings():
    """The shared settings as they are; a kernel need not have all of them."""
    found = {}
    for name in SHARED:
        with contextlib.suppress(OSError), open(os.path.join("/proc/sys", name), encoding="utf-8") as setting:
            found[name] = setting.read()
    return found
