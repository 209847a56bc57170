"""Processes of a lab host, as this machine sees them: to kill exactly those of one SSH session."""

import contextlib
import os
import signal

from nspawn import host as lab_host


def _parents():
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
                parents[int(entry)] = (int(rest.split()[1]), name)
    return parents


def _children(parents):
    children = {}
    for pid, (parent, _) in parents.items():
        children.setdefault(parent, []).append(pid)
    return children


def _below(children, pid):
    return [pid, *(other for child in children.get(pid, []) for other in _below(children, child))]


def descendants(pid):
    """All processes below one of this machine, in a host or not."""
    return _below(_children(_parents()), pid)[1:]


def sessions(host):
    """Every SSH session: the pid that sshd made for it, and all pids below that."""
    parents = _parents()
    children = _children(parents)
    listeners = [pid for pid in _below(children, lab_host.running_init(host))[1:] if _is_listener(parents, pid)]
    return [(session, _below(children, session)[1:]) for listener in listeners for session in children.get(listener, [])]


def _is_listener(parents, pid):
    parent, name = parents[pid]
    # Its own parent is the host's init; its children are called sshd too, or sshd-session.
    return name == "sshd" and not parents.get(parent, (0, ""))[1].startswith("sshd")


def commands(host):
    """What runs in the sessions, without sshd's own processes."""
    parents = _parents()
    return [pid for _, pids in sessions(host) for pid in pids if not parents.get(pid, (0, "sshd"))[1].startswith("sshd")]


def send(pids, what=signal.SIGKILL):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, what)
