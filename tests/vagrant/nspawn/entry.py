"""Entering a host: as root in its namespaces (`exec`), or from the operator's address (`ssh`, `run`)."""

import os
import sys

from . import cgroup, disk, host, network, terminal
from .failure import LabError
from .place import KEY, STATE

# When the command that entered is killed (a test's timeout), what it started
# inside must not stay behind.
_TIED = ["setpriv", "--pdeathsig", "TERM", "--"]


def execute(host_name, command):
    """Run a command in a host as root and end with its exit code. Does not return without a terminal."""
    pid = host.running_init(host_name)
    # Inside the host's cgroup it dies with the host, as it would on a console.
    cgroup.enter(host_name)
    if terminal.present():
        term = f"TERM={os.environ.get('TERM', 'dumb')}"
        return terminal.run(pid, host.inside(pid, term, *_TIED, "setsid", "--ctty", *command))
    _become(host.inside(pid, *_TIED, *command))


def push(host_name, local, remote):
    """Copy a file into a host, whole or not at all, with its mode."""
    pid = host.running_init(host_name)
    script = 'mkdir -p "$(dirname "$1")" && cat > "$1.part" && chmod "$2" "$1.part" && mv "$1.part" "$1"'
    try:
        with open(local, "rb") as file:
            mode = f"{os.fstat(file.fileno()).st_mode & 0o7777:o}"
            os.dup2(file.fileno(), sys.stdin.fileno())
    except OSError as error:
        raise LabError(f"cannot read {local}: {error.strerror}") from None
    cgroup.enter(host_name)
    _become(host.inside(pid, *_TIED, "sh", "-c", script, "push", remote, mode))


def run(command):
    """Run a command of this machine from the operator's place on the control plane, where the hosts' keys are known."""
    os.environ["METALFORM_KNOWN_HOSTS"] = _known_hosts()
    _become(_at_operator(command))


def ssh(target, address, command):
    """This machine's ssh client, at the operator's place, with the lab's key and the hosts' true keys."""
    user = target.rpartition("@")[0] or "root"
    options = ["-F", "/dev/null", "-i", KEY]
    for option in (
        "IdentitiesOnly=yes",
        f"UserKnownHostsFile={_known_hosts()}",
        "GlobalKnownHostsFile=/dev/null",
        "StrictHostKeyChecking=yes",
        "ConnectTimeout=5",
        "LogLevel=ERROR",
    ):
        options += ["-o", option]
    _become(_at_operator(["ssh", *options, f"{user}@{address}", *command]))


def host_key(host_name):
    """A host's public key, as its disk has it, in the form `ssh-ed25519 AAAA...`."""
    path = os.path.join(disk.disk_directory(host_name), "upper/etc/ssh/ssh_host_ed25519_key.pub")
    try:
        with open(path, encoding="ascii") as file:
            return " ".join(file.read().split()[:2])
    except FileNotFoundError:
        raise LabError(f"{host_name} has never been started", f"lab up {host_name}") from None


def write_known_hosts(topology):
    """The keys of all hosts that have a disk; written by `up`, so that `ssh` checks them for real."""
    made = [host for host in topology.hosts if disk.exists(host.name)]
    with open(f"{_known_hosts()}.new", "w", encoding="ascii") as file:
        file.writelines(f"{host.addresses['control-plane']} {host_key(host.name)}\n" for host in made)
    os.replace(f"{_known_hosts()}.new", _known_hosts())


def _known_hosts():
    return os.path.join(STATE, "known_hosts")


def _at_operator(command):
    namespace = network.path_of(network.OPERATOR)
    if not os.path.ismount(namespace):
        raise LabError("the lab is down", "lab up")
    return ["nsenter", f"--net={namespace}", *command]


def _become(command):
    sys.stdout.flush()
    os.execvp(command[0], command)
