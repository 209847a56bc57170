"""What was measured, and where: versions of everything that affects the figures."""

import platform
import subprocess
import time

from . import venvs
from .place import TOP, state

_ENGINES = {
    "salt": ("salt", "salt"),
    "ansible-core": ("ansible", "ansible_core"),
    "mitogen": ("ansible", "mitogen"),
    "pyinfra": ("pyinfra", "pyinfra"),
}


def about(selection, binary, hasty):
    """Read while the hosts are up."""
    columns = {column.venv for column in selection.columns}
    engines = {name: venvs.version(*where) for name, where in _ENGINES.items() if where[0] in columns}
    return {
        "began": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "commit": _first_line("git", "-C", TOP, "describe", "--always", "--dirty", "--abbrev=12"),
        "repetitions": selection.repetitions,
        "hasty": hasty,
        "versions": {
            "metalform": _first_line(binary, "--version").removeprefix("metalform "),
            **engines,
            "client": _first_line("ssh", "-V"),
            "hosts' sshd": _on_host("dpkg-query", "-W", "-f", "${Version}", "openssh-server"),
            "hosts' Python": _on_host("python3", "-V").removeprefix("Python "),
            "Linux": platform.release(),
        },
    }


def _on_host(*words):
    from nspawn import network

    quoted = " ".join(f"'{word}'" for word in words)
    return _first_line("nsenter", f"--net={network.path_of(network.OPERATOR)}", "ssh", "-F", state("ssh_config"), "b1", quoted)


def _first_line(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0].strip() if lines else "?"
