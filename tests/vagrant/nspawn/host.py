"""A host: switched on, observed, switched off.

On means that its cgroup holds an init process. Ready means that systemd has
finished booting and that sshd answers, as on a real machine.
"""

import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
import threading
import time

from . import cgroup, disk, network
from .failure import LabError
from .place import name_of, run_directory

PATIENCE = 60
_HERE = os.path.dirname(os.path.realpath(__file__))
_CLONE_NEWNET = 0x40000000


def init_pid(host_name):
    """The host's own pid 1 as this machine sees it, or None when the host is off.

    It is pid 1 exactly one namespace down: the pods' are two down.
    """
    for pid in cgroup.direct_processes(host_name):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/status", encoding="utf-8") as status:
                line = next(line for line in status if line.startswith("NSpid:"))
            if line.split()[2:] == ["1"]:
                return pid
    return None


def running_init(host_name):
    """Like `init_pid`, for commands that need the host on."""
    pid = init_pid(host_name)
    if pid is None:
        raise LabError(f"{host_name} is off", f"lab power-on {host_name}")
    return pid


def power_on(host, topology, lock, log):
    """Start the host's processes; the caller holds the lab's lock, and waits with `await_ready`."""
    disk.ensure(host, log)
    run = run_directory(host.name)
    os.makedirs(os.path.join(run, "root"), exist_ok=True)
    network.plug(host, topology.planes)
    groups = cgroup.make(host.name)
    legacy = "yes" if cgroup.is_legacy() else "no"
    words = [host.name, name_of(host.name), disk.image_of(host.name), disk.disk_directory(host.name)]
    with open(os.path.join(run, "console.log"), "ab") as console:
        launching = subprocess.Popen(
            [os.path.join(_HERE, "launch"), *words, run, str(lock), legacy, *groups],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            pass_fds=[lock],
            start_new_session=True,
        )
    # From here on a host without processes is one that failed, not one to wait for.
    while launching.poll() is None and not cgroup.direct_processes(host.name):
        time.sleep(0.005)


def power_off(host_name):
    """A power cut: no process ends in an orderly way, and the host sends nothing more.

    The cables go first. A killed process closes its sockets, and the kernel, which is this
    machine's and lives on, would send what a machine without power cannot: FIN, RST, an SSH exit status.
    """
    network.unplug(host_name)
    cgroup.kill(host_name)
    cgroup.remove(host_name)
    network.remove(host_name)
    # nspawn's own bookkeeping, which it has no time to clear when it is killed.
    shutil.rmtree(f"/run/systemd/nspawn/propagate/{name_of(host_name)}", ignore_errors=True)


def await_ready(host):
    """Wait until the host is booted and reachable; returns what systemd calls its state."""
    deadline = time.monotonic() + PATIENCE
    state, pid = "nothing yet", None
    while time.monotonic() < deadline:
        pid = pid if pid and os.path.exists(f"/proc/{pid}") else init_pid(host.name)
        if pid:
            state = _system_state(pid, deadline - time.monotonic())
            if state in ("running", "degraded") and _sshd_answers(host):
                return state if state == "running" else f"degraded: {_failed_units(pid)}"
        elif not cgroup.direct_processes(host.name):
            raise LabError(f"{host.name} went off while it was booting", _console_hint(host.name))
        time.sleep(0.05)
    raise LabError(f"{host.name} is not ready after {PATIENCE} s: systemd reports {state}", _console_hint(host.name))


def inside(pid, *command):
    """A command line that runs in the host whose init is `pid`, with nothing of ours in its environment."""
    namespaces = ["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--root"]
    environment = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8"]
    return ["nsenter", f"--target={pid}", *namespaces, "env", "-i", "--chdir=/root", *environment, *command]


def _system_state(pid, patience):
    # --wait returns when booting is over, so this costs no polling; before
    # the bus is there it fails at once, and is run again.
    command = inside(pid, "systemctl", "is-system-running", "--wait")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patience)
    except subprocess.TimeoutExpired:
        return "starting"
    return done.stdout.strip()


def _failed_units(pid):
    command = inside(pid, "systemctl", "list-units", "--failed", "--plain", "--no-legend", "--no-pager")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return ", ".join(line.split()[0] for line in done.stdout.splitlines()) or "no failed unit"


def _sshd_answers(host):
    """From the operator's place; from the host's own while its cable is pulled."""
    plane = "control-plane"
    station = host.name if network.is_cut(host.name, plane) else network.OPERATOR
    answer = []
    # setns() moves one thread only, so a thread of its own leaves us where we are.
    asking = threading.Thread(target=_read_banner, args=(station, host.addresses[plane], answer))
    asking.start()
    asking.join()
    return answer and answer[0].startswith(b"SSH-")


def _read_banner(station, address, answer):
    namespace = os.open(network.path_of(station), os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(namespace, _CLONE_NEWNET) != 0:
            return
        with contextlib.suppress(OSError), socket.create_connection((address, 22), timeout=1) as sshd:
            answer.append(sshd.recv(64))
    finally:
        os.close(namespace)


def _console_hint(host_name):
    return f"see {os.path.join(run_directory(host_name), 'console.log')}"
