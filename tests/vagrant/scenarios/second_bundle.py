"""A second bundle on the bootstrap host: the components of the first, and an older Kubernetes."""

import contextlib
import os
import re
import subprocess
import tempfile

from checks import Failed
from cluster import BOOTSTRAP, CACHE, LAB_DIRECTORY, shell
from engine import METALFORM
from hand_over import copy_directory

VERSION = "1.34.4"
DIRECTORY = "/srv/metalform/bundle-older"
_CONFIGURATION = "/etc/metalform/bootstrap.yaml"
_TOP = os.path.dirname(os.path.dirname(LAB_DIRECTORY))
# Kubernetes is compiled where its release binaries cannot be downloaded, and kept in the cache.
_BUILD = 1_800


def bring():
    """Builds it on this machine, where it is not in the cache, and copies it to the bootstrap host."""
    source = os.path.join(CACHE, "demo", f"bundle-{VERSION}")
    with open(os.path.join(_TOP, "src", "bundle", "components.yaml"), encoding="utf-8") as file:
        components = file.read()
    # Without the digest of the modules, which is that of the other version.
    kubernetes = r"(name: kubernetes\n +version: )\S+((?:\n.*)*?)\n +sum: \S+"
    older, replaced = re.subn(kubernetes, rf"\g<1>{VERSION}\g<2>", components, count=1)
    if replaced != 1:
        raise Failed("the component list has another form than this scenario knows")
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as list_file:
        list_file.write(older)
        list_file.flush()
        words = [METALFORM, "bundle", "build", "-f", list_file.name, "-o", source]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=_BUILD)
    if done.returncode != 0:
        raise Failed(f"bundle build: exit {done.returncode}: {done.stderr.strip()}")
    copy_directory(source, BOOTSTRAP, DIRECTORY)


def configure():
    """Adds it to the operator's configuration."""
    shell(BOOTSTRAP, 'cp "$1" "$1.scenario" && printf "  - %s\\n" "$2" >> "$1"', _CONFIGURATION, DIRECTORY)


@contextlib.contextmanager
def is_first():
    """It is what the control plane is to be made of."""
    script = 'sed -i.second "\\|^  - $2\\$|d; s|^bundles:|&\\n  - $2|" "$1"'
    shell(BOOTSTRAP, script, _CONFIGURATION, DIRECTORY)
    try:
        yield
    finally:
        shell(BOOTSTRAP, 'mv "$1.second" "$1"', _CONFIGURATION)


def remove():
    """The configuration is what it was, and the bundle is gone."""
    script = '[ ! -e "$1.scenario" ] || mv "$1.scenario" "$1"; rm -rf "$2"'
    shell(BOOTSTRAP, script, _CONFIGURATION, DIRECTORY)
