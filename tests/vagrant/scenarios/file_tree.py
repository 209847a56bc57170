"""The files of a lab host: type, mode, owner, size, modification time, digest or link target of every path."""

import re

from checks import Failed, expect
from cluster import shell

# File systems of the kernel, and what is volatile by definition.
_PRUNED = ["/proc", "/sys", "/dev", "/run", "/tmp", "/var/tmp"]
# Mounts of their own in a lab host, which `find -xdev /` does not enter.
_MOUNTS = ["/var/lib/containerd", "/var/lib/kubelet", "/var/lib/etcd", "/var/lib/metalform"]
# What a host writes while it is left alone: its journal, records of logins, systemd's timers and random seed.
VOLATILE = re.compile(r"/var/log(/.*)?|/var/lib/systemd(/.*)?|/var/lib/dbus(/.*)?|/var/cache/private(/.*)?")

_FIND = r"""
for place in "$@"; do
    [ ! -e "$place" ] || find "$place" -xdev \( PRUNED \) -prune -o -printf '%p\t%y %m %U:%G %T@ %l\0'
done
printf '\0'
for place in "$@"; do
    [ ! -e "$place" ] || find "$place" -xdev \( PRUNED \) -prune -o -type f -print0
done | xargs -0 --no-run-if-empty sha256sum -z 2>/dev/null || true
"""


def snapshot(host, *places):
    """Path → what is there. Without places, of the whole host."""
    pruned = " -o ".join(f"-path {path}" for path in _PRUNED if path not in places)
    found = shell(host, _FIND.replace("PRUNED", pruned), *(places or ["/", *_MOUNTS]), timeout=180)
    described, _, digests = found.partition("\0\0")
    tree = dict(entry.split("\t", 1) for entry in described.split("\0") if entry)
    for entry in filter(None, digests.split("\0")):
        digest, _, path = entry.partition("  ")
        if path in tree:
            tree[path] += digest
    if not tree:
        raise Failed(f"{host}: no file was found below {places or '/'}")
    return {path: what for path, what in tree.items() if not VOLATILE.fullmatch(path)}


def differences(before, after):
    """One line for each path that appeared, disappeared or changed."""
    lines = []
    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old != new:
            lines.append(f"{path}: {old or 'absent'} -> {new or 'absent'}")
    return lines


def written(before, after):
    """Files and links, not directories, that are new or whose type, mode, owner, target or content changed."""

    def content(what):
        kind, mode, owner, _, *rest = what.split(" ")
        return kind, mode, owner, *rest

    changed = (path for path, what in after.items() if path not in before or content(before[path]) != content(what))
    return {path for path in changed if not after[path].startswith("d ")}


class Identical:
    """A context at whose end the files of hosts must be exactly as they were at its beginning."""

    def __init__(self, *hosts, places=()):
        self.hosts, self.places = hosts, places

    def __enter__(self):
        self.before = {host: snapshot(host, *self.places) for host in self.hosts}
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            for host, before in self.before.items():
                lines = differences(before, snapshot(host, *self.places))
                expect(not lines, f"{host}: {len(lines)} paths differ:\n" + "\n".join(lines[:20]))
