"""The columns: what is compared. Each is a command that the operator would type, and how it reports its changes."""

import dataclasses
import glob
import os
import re

from .place import HERE, STATE, VENVS, state

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclasses.dataclass(frozen=True)
class Invocation:
    """A command line, ready to be executed."""

    words: list
    environment: dict = dataclasses.field(default_factory=dict)
    stdin: str = os.devnull
    directory: str = HERE

    def full_environment(self, scratch):
        """Nothing of the caller's own: `scratch` is for sockets and temporary files, and is new for each run."""
        own = {"PATH": _PATH, "HOME": state("home"), "LANG": "C.UTF-8", "TMPDIR": scratch, "STATE": STATE}
        return {**own, **{name: value.replace("@scratch@", scratch) for name, value in self.environment.items()}}


@dataclasses.dataclass(frozen=True)
class Column:
    """`invoke(mode, hosts)` gives the command; `changes(output)` how many changes it reports, None if it does not."""

    name: str
    about: str
    invoke: object
    changes: object
    # The file of requirements/ that it is installed from.
    venv: str = None
    # Whether this is what its users get. What is patched is no rival.
    rival: bool = False
    # Whether it is only the bound of how fast anything can be.
    is_floor: bool = False


def _ssh_true(_mode, hosts):
    ssh = f"ssh -F {state('ssh_config')}"
    if len(hosts) == 1:
        return Invocation([*ssh.split(), *hosts, "true"])
    return Invocation(["sh", "-c", " ".join(f"{ssh} {host} true &" for host in hosts) + " wait"])


def _floor(mode, hosts):
    ssh, run = f"ssh -F {state('ssh_config')}", f"MODE={mode} sh -s"
    if len(hosts) == 1:
        return Invocation([*ssh.split(), *hosts, run], stdin=state("floor", f"{hosts[0]}.sh"))
    begin = [f"{ssh} {host} '{run}' < {state('floor', host)}.sh & pids=\"$pids $!\";" for host in hosts]
    return Invocation(["sh", "-c", " ".join(begin) + " code=0; for pid in $pids; do wait $pid || code=$?; done; exit $code"])


def metalform(binary):
    """metalform's column, which needs a binary to measure."""

    def invoke(mode, hosts):
        command = "apply" if mode == "apply" else "plan"
        words = [binary, command, "--tree", os.path.join(HERE, "metalform")]
        words += ["--roster", state("roster.yaml"), "--known-hosts", state("known_hosts"), "--on", ",".join(hosts)]
        return Invocation(words)

    def changes(output):
        counts = re.findall(r"^\w+: (?:changed=(\d+)|(\d+) to change)", output, re.MULTILINE)
        return sum(int(applied or planned) for applied, planned in counts) if counts else None

    return Column("metalform", "`metalform apply`, `metalform plan`", invoke, changes)


def _ansible(**settings):
    def invoke(mode, hosts):
        words = [os.path.join(VENVS, "ansible/bin/ansible-playbook"), "-i", state("inventory.yaml")]
        words += ["-l", ",".join(hosts), *(["--check"] if mode == "check" else []), "ansible/site.yml"]
        environment = {
            "ANSIBLE_SSH_ARGS": f"-F {state('ssh_config')} -C -o ControlMaster=auto -o ControlPersist=60s",
            "ANSIBLE_SSH_CONTROL_PATH_DIR": "@scratch@",
            "ANSIBLE_HOME": state("ansible"),
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_LOCALHOST_WARNING": "0",
            **{name: found[0] if (found := glob.glob(value)) else value for name, value in settings.items()},
        }
        return Invocation(words, environment)

    def changes(output):
        counts = re.findall(r"changed=(\d+)", output)
        return sum(map(int, counts)) if counts else None

    return invoke, changes


# Facts are not gathered either, since nothing in the workload needs them.
_TUNED = {
    "ANSIBLE_PIPELINING": "1",
    "ANSIBLE_GATHERING": "explicit",
    "ANSIBLE_FORKS": "20",
    "ANSIBLE_PYTHON_INTERPRETER": "/usr/bin/python3",
}
_MITOGEN = {
    "ANSIBLE_STRATEGY": "mitogen_linear",
    "ANSIBLE_STRATEGY_PLUGINS": f"{VENVS}/ansible/lib/python3*/site-packages/ansible_mitogen/plugins/strategy",
}


def _salt_ssh(mode, hosts):
    words = [os.path.join(VENVS, "salt/bin/salt-ssh"), "--config-dir", state("salt"), "--no-color"]
    return Invocation([*words, "-L", ",".join(hosts), "state.apply", *(["test=True"] if mode == "check" else [])])


def _salt_changes(output):
    return len(re.findall(r"Result: (?:Changed|Differs)", output)) if "Succeeded:" in output else None


def _pyinfra(*options):
    def invoke(mode, hosts):
        # One option a host: a list with commas selects no host, and succeeds.
        limits = [word for host in hosts for word in ("--limit", host)]
        words = [os.path.join(VENVS, "pyinfra/bin/pyinfra"), "-y" if mode == "apply" else "--dry"]
        return Invocation([*words, *options, *limits, "inventory.py", "deploy.py"], directory=os.path.join(HERE, "pyinfra"))

    return invoke


def _pyinfra_changes(output):
    if total := re.search(r"Grand total\s+\d+\s+(\d+|-)", output):
        return 0 if total[1] == "-" else int(total[1])
    if proposal := re.search(r"Detected changes:(.*?)Detected changes may", output, re.DOTALL):
        rows = [re.split(r"\s{2,}", line.strip()) for line in proposal[1].splitlines() if line.strip()]
        return sum(len(row) > 1 and row[1] != "-" for row in rows[1:])
    return None


def columns(binary):
    """Every column, in the order of the tables; `binary` is the metalform that is measured."""
    ansible, tuned, mitogen = _ansible(), _ansible(**_TUNED), _ansible(**_TUNED, **_MITOGEN)
    return (
        Column("ssh-true", "`ssh HOST true`", _ssh_true, lambda _: 0, is_floor=True),
        Column("floor", "one ssh, one shell script", _floor, lambda text: text.count("drift:"), is_floor=True),
        metalform(binary),
        Column("salt-ssh", "`salt-ssh state.apply`", _salt_ssh, _salt_changes, "salt", rival=True),
        Column("ansible", "ansible-core as it comes", *ansible, "ansible", rival=True),
        Column("ansible-tuned", "with pipelining, without facts", *tuned, "ansible", rival=True),
        Column("ansible-mitogen", "the same with mitogen", *mitogen, "ansible", rival=True),
        Column("pyinfra", "`pyinfra -y`", _pyinfra(), _pyinfra_changes, "pyinfra", rival=True),
        Column(
            "pyinfra-nodelay",
            "pyinfra patched to send at once",
            _pyinfra("--config", "nodelay.py"),
            _pyinfra_changes,
            "pyinfra",
        ),
    )
