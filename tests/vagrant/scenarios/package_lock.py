"""Another process holds the package manager's lock: apply names it, waits, and continues once the lock is free."""

import re
import time

from checks import Failed, check, expect, expect_equal, until
from cluster import begin, shell, succeed
from engine import tree

HOST = "node-2"
# A record lock (fcntl(2)), as apt and dpkg take them; flock(1) makes another kind.
_HOLD = (
    'use Fcntl; open(my $f, ">>", $ARGV[0]) or die; my $l = pack("s s x4 q q l x4", F_WRLCK, SEEK_SET, 0, 0, 0);'
    ' fcntl($f, F_SETLK, $l) or die "$!"; $| = 1; print "$$\\n"; sleep 1000'
)
LOCKS = ["/var/lib/dpkg/lock-frontend", "/var/lib/apt/lists/lock"]


def _hold(path):
    holder = begin(HOST, "perl", "-MFcntl=:DEFAULT,:seek", "-e", _HOLD, path)
    pid = holder.stdout.readline().strip()
    if not pid.isdigit():
        raise Failed(f"{path} cannot be held: {pid} {holder.stdout.read()}")
    return holder, pid


@check("{} is held: apply names the process", each=LOCKS)
def waits_and_continues(lock):
    # Removing needs no package source. It is a package of nothing, made here.
    shell(HOST, _PACKAGE)
    resource = {"package": "nothing", "ensure": "absent"} if "dpkg" in lock else {"package": "not-there"}
    holder, pid = _hold(lock)
    with tree(HOST, resource) as it:
        running = it.start()
        lines = []
        try:
            until("apply names the process that holds the lock", 20, lambda: _line(running, lines, rf"process {pid} \(perl\)"))
            expect(lock in lines[-1], f"the lock is not named: {lines}")
            expect(running.poll() is None, "it does not wait")
        finally:
            succeed(HOST, "kill", pid)
            holder.wait(timeout=10)
        began = time.monotonic()
        out, err = running.communicate(timeout=60)
        expect(time.monotonic() - began < 20, "it continued too late")
        if "dpkg" in lock:
            expect_equal(f"exit code\n{out}{err}", running.returncode, 0)
            it.converge()
        else:
            expect(re.search(r"error: .*package:not-there .*Unable to locate package", err), f"another error\n{err}")


def _line(running, lines, pattern):
    line = running.stderr.readline()
    lines.append(line)
    return re.search(pattern, line)


_PACKAGE = """
cd "$(mktemp -d)" && mkdir -p nothing/DEBIAN
printf 'Package: nothing\\nVersion: 1\\nArchitecture: all\\nMaintainer: lab\\nDescription: nothing\\n' > nothing/DEBIAN/control
dpkg-deb --build nothing nothing.deb > made && dpkg -i nothing.deb > made
rm -r "$PWD"
"""
