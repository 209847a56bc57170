"""Kernel settings that all hosts and this machine share, put back when the lab goes down.

A host may write /proc/sys, as root may on a real machine: the kubelet insists on
it. Network settings are each host's own, but these are not kept apart by any
namespace, so the last host to write one wins and the machine would keep it.
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

_FILE = os.path.join(RUN, "kernel-settings.json")


def remember():
    """Note the machine's settings before the first host can change one."""
    if os.path.exists(_FILE):
        return
    # Written beside and renamed: half a note would be worse than none.
    with open(f"{_FILE}.new", "w", encoding="utf-8") as file:
        json.dump(settings(), file, indent=1)
    os.rename(f"{_FILE}.new", _FILE)


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
