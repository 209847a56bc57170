"""A host's disk: what it wrote over the image, and the directories that must be real.

The image is shared and never written; a host costs the few megabytes in which
it differs. The overlay is mounted by `launch` in a mount namespace that dies
with the host, so no crash leaves a mount behind on this machine.
"""

import os
import secrets
import shutil
import subprocess

from . import image
from .place import KEY, disk_directory, name_of

# An overlay can be no layer of another overlay, and etcd needs a real fsync.
REAL = ["containerd", "kubelet", "etcd", "metalform"]

# root, operator, nosudo: uid, gid and home, as customise-image makes them.
ACCOUNTS = [(0, 0, "root"), (1000, 100, "home/operator"), (1001, 100, "home/nosudo")]


def exists(host_name):
    return os.path.exists(os.path.join(disk_directory(host_name), "image"))


def image_of(host_name):
    """The image this disk was made on. A newer one would change the host under its feet."""
    with open(os.path.join(disk_directory(host_name), "image"), encoding="utf-8") as file:
        return file.read()


def ensure(host, log):
    """Make the disk of a host that has none: a first boot, with an identity of its own."""
    if exists(host.name):
        return
    directory = disk_directory(host.name)
    base = image.ensure(host.system, log)
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(os.path.join(directory, "work"))
    for name in REAL:
        os.makedirs(os.path.join(directory, name))
    upper = os.path.join(directory, "upper")
    _identify(host, upper)
    _authorise(upper)
    # Written last: a disk without it was left half-made by a killed `up`.
    _write(directory, "image", base)


def ensure_key():
    """The lab's own key pair, made once; no other key is accepted by these hosts."""
    if not os.path.exists(f"{KEY}.pub"):
        _generate_key(KEY, name_of("lab"))


def remove(host_name):
    shutil.rmtree(disk_directory(host_name), ignore_errors=True)


def _identify(host, upper):
    _write(upper, "etc/hostname", f"{host.name}\n")
    _write(upper, "etc/hosts", f"127.0.0.1 localhost\n127.0.1.1 {host.name}\n::1 localhost ip6-localhost\n")
    _write(upper, "etc/machine-id", f"{secrets.token_hex(16)}\n", mode=0o444)
    os.makedirs(os.path.join(upper, "etc/ssh"))
    _generate_key(os.path.join(upper, "etc/ssh/ssh_host_ed25519_key"), f"root@{host.name}")


def _authorise(upper):
    with open(f"{KEY}.pub", encoding="utf-8") as file:
        public = file.read()
    for uid, gid, home in ACCOUNTS:
        _write(upper, f"{home}/.ssh/authorized_keys", public, mode=0o600)
        os.chmod(os.path.join(upper, home), 0o700)
        for path in (home, f"{home}/.ssh", f"{home}/.ssh/authorized_keys"):
            os.chown(os.path.join(upper, path), uid, gid)
        os.chmod(os.path.join(upper, home, ".ssh"), 0o700)


def _generate_key(path, comment):
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path]
    # An interrupted run may have left one half of a pair; ssh-keygen would prompt.
    for half in (path, f"{path}.pub"):
        if os.path.exists(half):
            os.unlink(half)
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def _write(root, path, text, mode=0o644):
    target = os.path.join(root, path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(target, mode)
