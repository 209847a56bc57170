"""A long wire: another place for the operator, from which every frame takes its time to the hosts and back.

    far station: eth0 (tap) ~~~ this process, which holds each frame ~~~ c-far (tap): the lab's bridge

For kernels that have no netem. The process runs until it is killed, and what it made goes with it, or with `lab down`.
"""

import contextlib
import ctypes
import fcntl
import heapq
import os
import select
import struct
import subprocess
import sys
import time

from nspawn import cgroup, network

from .failure import BenchError

FAR = "far"
_ADDRESS = "10.99.0.201/24"
# Always the same, so that no host knows the far station by an older one.
_HARDWARE_ADDRESS = "02:00:0a:63:00:c9"
# linux/if_tun.h, linux/prctl.h, linux/sched.h
_TUNSETIFF, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
_PR_SET_TIMERSLACK, _PR_SET_PDEATHSIG = 29, 1
_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def stretched(milliseconds):
    """The station to run from while the block lasts: the operator's own, or a far one."""
    if not milliseconds:
        yield network.OPERATOR
        return
    network.remove(FAR)
    subprocess.run(["ip", "netns", "add", network.name_of(FAR)], check=True)
    cgroup.make(FAR)
    command = [sys.executable, "-m", "harness.wire", str(milliseconds / 2000)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    wire = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        if wire.stdout.readline() != "ready\n":
            raise BenchError("the long wire could not be made", "it needs /dev/net/tun")
        yield FAR
    finally:
        wire.kill()
        wire.wait()
        cgroup.remove(FAR)
        network.remove(FAR)


def _tap(station, name):
    namespace = os.open(network.path_of(station), os.O_RDONLY)
    if _LIBC.setns(namespace, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), f"cannot enter the network namespace of {station}")
    os.close(namespace)
    tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TAP | _IFF_NO_PI))
    return tap


def _connect():
    far, near = _tap(FAR, "eth0"), _tap("switch", network.cable("control-plane", FAR))
    for station, words in (
        (FAR, ["link", "set", "eth0", "address", _HARDWARE_ADDRESS]),
        (FAR, ["address", "add", _ADDRESS, "dev", "eth0"]),
        (FAR, ["link", "set", "eth0", "up"]),
        ("switch", ["link", "set", network.cable("control-plane", FAR), "master", "cp", "up"]),
    ):
        subprocess.run(["ip", "-n", network.name_of(station), *words], check=True)
    return far, near


def _carry(far, near, delay):
    """Frames in the order in which they are due; the number keeps those of one instant in order."""
    held, number = [], 0
    while True:
        patience = max(0, held[0][0] - time.monotonic()) if held else None
        for tap in select.select([far, near], [], [], patience)[0]:
            with contextlib.suppress(BlockingIOError):
                while True:
                    frame = os.read(tap, 65536)
                    number += 1
                    heapq.heappush(held, (time.monotonic() + delay, number, near if tap == far else far, frame))
        while held and held[0][0] <= time.monotonic():
            _, _, tap, frame = heapq.heappop(held)
            # Full queues drop frames, as on any wire.
            with contextlib.suppress(OSError):
                os.write(tap, frame)


def main(words):
    # The process that started this waits for it; without it this has no use.
    _LIBC.prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0)
    _LIBC.prctl(_PR_SET_TIMERSLACK, 1000, 0, 0, 0)
    cgroup.enter(FAR)
    far, near = _connect()
    print("ready", flush=True)
    _carry(far, near, float(words[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
