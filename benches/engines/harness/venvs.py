"""The other engines, each in a Python environment of its own, at the versions of requirements/."""

import glob
import hashlib
import os
import shutil
import subprocess

from .failure import BenchError
from .place import HERE, VENVS, write

# The Pythons that the pinned versions run on: ansible-core 2.21 requires 3.12 or later.
_PYTHONS = ("3.13", "3.14", "3.12")


def ensure(names, say):
    """Creates or repairs those that differ from their requirements. pip's own configuration names the index."""
    for name in names:
        path, requirements = os.path.join(VENVS, name), os.path.join(HERE, "requirements", f"{name}.txt")
        with open(requirements, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        # Written last, so that an interrupted installation starts again.
        note = os.path.join(path, "requirements.sha256")
        if os.path.exists(note) and _text(note) == digest:
            continue
        say(f"installing {name} (a minute)")
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(VENVS, exist_ok=True)
        _run([_python(), "-m", "venv", path])
        _run([os.path.join(path, "bin/pip"), "install", "--quiet", "--requirement", requirements])
        write(note, digest)


def version(name, package):
    """The version of an installed package."""
    found = glob.glob(os.path.join(VENVS, name, f"lib/python3*/site-packages/{package}-*.dist-info"))
    return os.path.basename(found[0])[len(package) + 1 : -len(".dist-info")] if found else "?"


def _python():
    if given := os.environ.get("PYTHON"):
        return given
    for wanted in _PYTHONS:
        installed = glob.glob(os.path.expanduser(f"~/.pyenv/versions/{wanted}.*/bin/python{wanted}"))
        for path in (f"/usr/bin/python{wanted}", f"/usr/local/bin/python{wanted}", *sorted(installed)):
            if os.access(path, os.X_OK):
                return path
    raise BenchError(
        f"the other engines need Python {', '.join(sorted(_PYTHONS))}, and there is none",
        "PYTHON=/path/to/python3.13 make bench-engines, or COLUMNS='floor metalform' without them",
    )


def _run(command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-1500:]}")


def _text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()
