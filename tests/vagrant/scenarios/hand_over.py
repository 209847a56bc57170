"""What an operator brings to the first host: the program, its configuration and the bundle."""

import hashlib
import os
import subprocess

from checks import Failed
from cluster import CACHE, LAB, LAB_DIRECTORY, lab, succeed
from engine import METALFORM

_BUNDLE = "/srv/metalform/bundle"
_TOP = os.path.dirname(os.path.dirname(LAB_DIRECTORY))


def hand_over(host):
    lab("push", host, METALFORM, "/usr/local/bin/metalform")
    lab("push", host, os.path.join(LAB_DIRECTORY, "bootstrap.yaml"), "/etc/metalform/bootstrap.yaml")
    copy_directory(bundle(), host, _BUNDLE)


def bundle():
    """The path of the demo's bundle on this machine."""
    with open(os.path.join(_TOP, "src", "bundle", "components.yaml"), "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:12]
    source = os.path.join(CACHE, "demo", f"bundle-{digest}")
    if not os.path.isdir(source):
        raise Failed(f"there is no bundle at {source}: run tests/vagrant/demo --only bundle first")
    return source


def copy_directory(source, host, target):
    """A directory of this machine, with what is in it."""
    succeed(host, "mkdir", "-p", target)
    reading = subprocess.Popen(["tar", "-C", source, "-cf", "-", "."], stdout=subprocess.PIPE)
    unpacking = [LAB, "exec", host, "--", "tar", "--no-same-owner", "-C", target, "-xf", "-"]
    done = subprocess.run(unpacking, stdin=reading.stdout, capture_output=True, text=True, check=False, timeout=300)
    reading.stdout.close()
    if reading.wait() != 0 or done.returncode != 0:
        raise Failed(f"{source} was not copied to {host}: {done.stderr.strip()}")
