"""The base image of each system: an ordinary small Debian with sshd, shared by its hosts.

It holds nothing that metalform installs and no package source, so a test that
passes here has not lived on what the machine happened to have. Images are kept
by the digest of what they are made from: change the list below and the next
`lab up` builds another, while hosts on the old image keep theirs.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
import time

from .failure import LabError
from .place import IMAGES, locked

PACKAGES = [
    "systemd",
    "systemd-sysv",
    "dbus",
    "openssh-server",
    "sudo",
    "iproute2",
    "ca-certificates",
    "openssl",
    "kmod",
    "procps",
]

# What a host must not have until metalform gives it: the selftest looks for these.
FOREIGN = ["iptables", "nftables", "conntrack", "socat", "ethtool", "haproxy", "containerd", "runc", "bird2"]

# Only what cannot work without hardware, or wakes up to do nothing.
MASKED = [
    "apt-daily.timer",
    "apt-daily-upgrade.timer",
    "dpkg-db-backup.timer",
    "e2scrub_all.timer",
    "e2scrub_reap.service",
    "fstrim.timer",
    "getty@tty1.service",
    "systemd-firstboot.service",
    "systemd-networkd-wait-online.service",
    "systemd-pstore.service",
    "systemd-resolved.service",
    "systemd-timesyncd.service",
]

HERE = os.path.dirname(os.path.realpath(__file__))
SCRIPTS = [os.path.join(HERE, name) for name in ("customise-image", "lab-writable.service")]


def path_of(system):
    """The path of a system's image, whether or not it exists."""
    digest = hashlib.sha256("\n".join([system.suite, *PACKAGES, *system.packages, *MASKED]).encode())
    for script in SCRIPTS + _likeness(system):
        with open(script, "rb") as file:
            digest.update(file.read())
    return os.path.join(IMAGES, f"{system.name}-{digest.hexdigest()[:12]}")


def ensure(system, log):
    """The image's path; makes it if there is none. Concurrent callers wait for one build."""
    path = path_of(system)
    if os.path.isdir(path):
        return path
    with locked(IMAGES, patience=900):
        if not os.path.isdir(path):
            _remove_abandoned(system.name)
            log(f"making the {system.name} image, once (a minute)")
            began = time.monotonic()
            _build(system, path)
            log(f"made the {system.name} image in {time.monotonic() - began:.0f} s")
    return path


def _likeness(system):
    """The script that makes a Debian look like another system."""
    return [os.path.join(HERE, f"like-{system.like}")] if system.like else []


def _build(system, path):
    if not shutil.which("mmdebstrap"):
        raise LabError("mmdebstrap is missing", "apt-get install mmdebstrap")
    building = tempfile.mkdtemp(prefix=f".{system.name}-", dir=IMAGES)
    os.chmod(building, 0o755)
    # mmdebstrap mounts /proc and /sys into the new root. In namespaces of its
    # own, and dying with us, it leaves nothing behind however it ends.
    command = ["setpriv", "--pdeathsig", "KILL"]
    command += ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    command += ["mmdebstrap", "--quiet", "--variant=minbase", "--mode=root"]
    command += [f"--include={','.join([*PACKAGES, *system.packages])}"]
    command += [f"--customize-hook={script}" for script in [SCRIPTS[0], *_likeness(system)]]
    command += [system.suite, building]
    env = dict(os.environ, MASKED=" ".join(MASKED), HERE=HERE)
    done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        shutil.rmtree(building, ignore_errors=True)
        raise LabError(f"mmdebstrap could not make {system.name}:\n{done.stderr.strip()[-2000:]}")
    os.rename(building, path)


def _remove_abandoned(name):
    """Half-made roots of builds that were killed; the lock proves that none still runs."""
    for entry in os.scandir(IMAGES):
        if entry.name.startswith(f".{name}-"):
            shutil.rmtree(entry.path)
