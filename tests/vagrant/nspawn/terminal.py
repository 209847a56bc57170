"""A terminal inside a host, for people: job control, window size, colours.

The pseudo-terminal is the host's own (its /dev/pts), so `tty`, `sudo` and
pagers find it there. Commands without a terminal never come here.
"""

import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import tty

# Linux has them since 2.2 and 4.13; Python names them since 3.13.
_TIOCSPTLCK = 0x40045431
_TIOCGPTPEER = 0x5441


def present():
    return sys.stdin.isatty() and sys.stdout.isatty()


def run(pid, command):
    """Run a command line that enters the host whose init is `pid`; returns its exit code."""
    master = os.open(f"/proc/{pid}/root/dev/pts/ptmx", os.O_RDWR | os.O_NOCTTY)
    fcntl.ioctl(master, _TIOCSPTLCK, struct.pack("i", 0))
    # By descriptor: the path of the other end means something else out here.
    slave = fcntl.ioctl(master, _TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY)
    _copy_size(master)
    signal.signal(signal.SIGWINCH, lambda *_: _copy_size(master))
    before = termios.tcgetattr(sys.stdin)
    child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    try:
        tty.setraw(sys.stdin)
        _relay(master)
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
    return child.wait()


def _relay(master):
    sources = [sys.stdin.fileno(), master]
    while True:
        for source in select.select(sources, [], [])[0]:
            try:
                data = os.read(source, 65536)
            except OSError:
                data = b""  # EIO: no process has the other end open any more
            if source == master:
                if not data:
                    return
                os.write(sys.stdout.fileno(), data)
            elif data:
                os.write(master, data)
            else:
                sources.remove(source)


def _copy_size(master):
    size = fcntl.ioctl(sys.stdout, termios.TIOCGWINSZ, b"\0" * 8)
    fcntl.ioctl(master, termios.TIOCSWINSZ, size)
