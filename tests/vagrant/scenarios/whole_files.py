"""Watches files of a lab host from outside while something writes them: what is seen must be whole at every instant.

Two witnesses. The kernel reports every change of a watched directory (inotify(7)):
a managed name may only ever appear by a rename. A loop reads every managed file
again and again: content, owner and mode must be those of one of its versions.
"""

import collections
import ctypes
import hashlib
import os
import stat
import struct
import threading

from nspawn import host as lab_host

_ROUGH = {0x002: "was modified in place", 0x004: "had its owner or mode changed in place", 0x008: "was written in place",
          0x100: "was created in place"}
_IN_ISDIR, _IN_Q_OVERFLOW = 0x40000000, 0x4000
_EVENT = struct.Struct("iIII")
_LIBC = ctypes.CDLL(None, use_errno=True)

# What is at a path: a digest, numeric owner and group, and mode; or the target of a link.
Version = collections.namedtuple("Version", "sha256 owner group mode")
ABSENT = None


def version(content, owner=0, group=0, mode=0o644):
    return Version(hashlib.sha256(content).hexdigest(), owner, group, mode)


class Watcher:
    """`allowed`: by path in the host, the versions that may be seen there; `ABSENT` is one, a link's is its target."""

    def __init__(self, host, allowed):
        self._root = f"/proc/{lab_host.running_init(host)}/root"
        self._allowed = allowed
        self._faults = {}
        self._looks = 0
        self._over = threading.Event()
        self._inotify = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._watched = {}
        self._threads = []

    def __enter__(self):
        self._over.clear()
        self._watch_directories()
        self._threads = [threading.Thread(target=self._loop, daemon=True)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        for thread in self._threads:
            thread.join()
        self._listen()
        os.close(self._inotify)

    def faults(self):
        """Everything that was seen and should not have been, one sentence each."""
        return sorted(self._faults)

    def looks(self):
        """How often every file was read."""
        return self._looks

    def now(self, path):
        """The version that is there."""
        return self._see(path)

    def _loop(self):
        while not self._over.is_set():
            self._watch_directories()
            for path, allowed in self._allowed.items():
                seen = self._see(path)
                if seen not in allowed:
                    self._faults.setdefault(f"{path!r} was seen as {seen}")
            self._listen()
            self._looks += 1

    def _see(self, path):
        where = self._root + path
        try:
            file = os.open(where, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return ABSENT
        except OSError:
            try:
                return os.readlink(where)
            except OSError:
                # Between the two looks another version took its place.
                return self._see(path)
        try:
            status = os.fstat(file)
            digest = hashlib.sha256()
            while piece := os.read(file, 1 << 20):
                digest.update(piece)
            return Version(digest.hexdigest(), status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode))
        finally:
            os.close(file)

    def _watch_directories(self):
        for directory in {os.path.dirname(path) for path in self._allowed} - set(self._watched.values()):
            number = _LIBC.inotify_add_watch(self._inotify, os.fsencode(self._root + directory), sum(_ROUGH))
            if number >= 0:
                self._watched[number] = directory

    def _listen(self):
        while True:
            try:
                data = os.read(self._inotify, 1 << 16)
            except BlockingIOError:
                return
            while data:
                number, mask, _, length = _EVENT.unpack_from(data)
                name = os.fsdecode(data[_EVENT.size : _EVENT.size + length].rstrip(b"\0"))
                data = data[_EVENT.size + length :]
                if mask & _IN_Q_OVERFLOW:
                    self._faults.setdefault("the kernel dropped events")
                path = os.path.join(self._watched.get(number, ""), name)
                if path in self._allowed and not mask & _IN_ISDIR:
                    for bit, what in _ROUGH.items():
                        if mask & bit:
                            self._faults.setdefault(f"{path!r} {what}")
