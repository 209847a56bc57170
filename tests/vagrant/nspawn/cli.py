"""The commands. Data goes to stdout, what the lab is doing to stderr."""

import argparse
import os
import sys

from . import entry
from .failure import LabError
from .place import KEY, locked

PLANES = ["control-plane", "workload-plane"]


def main(words):
    arguments = _parser().parse_args(words)
    try:
        if os.geteuid() != 0:
            raise LabError("the lab requires root: it makes namespaces and mounts", "run it with sudo")
        return arguments.act(arguments) or 0
    except LabError as error:
        print(f"error: {error}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser():
    parser = argparse.ArgumentParser(prog="lab", description="The test hosts of metalform. See topology.yaml.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(name, act, about, *, hosts=None):
        made = commands.add_parser(name, help=about, description=about)
        made.set_defaults(act=act)
        if hosts == "1":
            made.add_argument("host", metavar="HOST")
        elif hosts:
            made.add_argument("hosts", metavar="HOST", nargs=hosts)
        return made

    command("up", _up, "start hosts (the default ones) and wait until they are ready", hosts="*")
    command("down", _down, "stop everything and remove all but the images and the key")
    command("status", _status, "which hosts are on, and how they are connected")
    made = command("exec", _exec, "run a command in a host as root", hosts="1")
    made.add_argument("words", nargs=argparse.REMAINDER, metavar="-- CMD...")
    made = command("ssh", _ssh, "ssh to [USER@]HOST from the operator's address", hosts="1")
    made.add_argument("words", nargs=argparse.REMAINDER, metavar="CMD")
    made = command("run", _run, "run a command of this machine from the operator's address")
    made.add_argument("words", nargs=argparse.REMAINDER, metavar="-- CMD...")
    made = command("push", _push, "copy a file into a host", hosts="1")
    made.add_argument("local", metavar="LOCAL")
    made.add_argument("remote", metavar="REMOTE")
    for name, act, about in (
        ("cut", _cut, "pull a host's cables at the switch"),
        ("heal", _heal, "plug a host's cables in again"),
    ):
        command(name, act, about, hosts="1").add_argument("--plane", choices=PLANES, help="only this one")
    made = command("slow", _slow, "limit a host; without options, remove the limits", hosts="1")
    made.add_argument("--cpu", type=_positive, metavar="PERCENT", help="of one processor")
    made.add_argument("--line", type=_rate, metavar="MBIT", help="a second towards the host, on each plane")
    command("power-off", _power_off, "cut the power: no carrier on the cables, then SIGKILL to every process", hosts="+")
    command("renew", _renew, "replace hosts by clean machines: new disks, new identities", hosts="+")
    command("power-on", _power_on, "boot hosts again from their disks and wait until they are ready", hosts="+")
    command("escapes", _escapes, "attempts to reach anything outside the lab; exit 1 if there were any")
    command("image", _image, "make the base images that are not there yet, and print their paths")
    command("key", _key, "the path of the private key that opens every host")
    command("host-key", _host_key, "a host's public ssh key", hosts="1")
    command("addresses", _addresses, "a host's address on each plane", hosts="1")
    # Called by `launch` alone, when a host reboots, so it has no help.
    made = commands.add_parser("replug")
    made.set_defaults(act=_replug)
    made.add_argument("host")
    return parser


def _positive(word):
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _rate(word):
    number = float(word)
    if not 0.1 <= number <= 10_000:
        raise argparse.ArgumentTypeError("must be between 0.1 and 10000")
    return f"{number:g}"


def _log(line):
    print(line, file=sys.stderr, flush=True)


def _topology():
    from . import topology

    return topology.load()


def _up(arguments):
    from . import fleet

    topology = _topology()
    fleet.up(topology, topology.chosen(arguments.hosts), _log)


def _down(_):
    from . import fleet

    fleet.down(_log)


def _status(_):
    from . import fleet

    print("\n".join(fleet.status(_topology())))


def _exec(arguments):
    return entry.execute(arguments.host, _words(arguments) or ["bash", "--login"])


def _ssh(arguments):
    host = _topology().host(arguments.host.rpartition("@")[2])
    entry.ssh(arguments.host, host.addresses["control-plane"], _words(arguments))


def _run(arguments):
    entry.run(_words(arguments) or [os.environ.get("SHELL", "/bin/bash")])


def _push(arguments):
    entry.push(arguments.host, arguments.local, arguments.remote)


def _cut(arguments):
    _cables(arguments, "cut")


def _heal(arguments):
    _cables(arguments, "heal")


def _cables(arguments, what):
    from . import network

    host = _topology().host(arguments.host)
    for plane in [arguments.plane] if arguments.plane else PLANES:
        getattr(network, what)(host.name, plane)


def _slow(arguments):
    from . import host, slowness

    host.running_init(_topology().host(arguments.host).name)
    slowness.limit_processor(arguments.host, arguments.cpu)
    slowness.limit_line(arguments.host, PLANES, arguments.line)


def _power_off(arguments):
    from . import fleet

    fleet.power_off(_topology().chosen(arguments.hosts))


def _renew(arguments):
    from . import fleet

    topology = _topology()
    fleet.renew(topology, topology.chosen(arguments.hosts), _log)


def _power_on(arguments):
    from . import fleet

    topology = _topology()
    fleet.power_on(topology, topology.chosen(arguments.hosts), _log)


def _escapes(_):
    from . import escapes

    counted = {"switch": escapes.at_switch()}
    counted.update((station, escapes.at_station(station)) for station in escapes.stations())
    for place, counts in counted.items():
        print(f"{place}: " + ", ".join(f"{name} {count}" for name, count in counts.items()))
    return 1 if any(sum(counts.values()) for counts in counted.values()) else 0


def _image(_):
    from . import image

    for system in sorted({host.system for host in _topology().hosts}):
        print(image.ensure(system, _log))


def _key(_):
    from . import disk

    with locked():
        disk.ensure_key()
    print(KEY)


def _host_key(arguments):
    print(entry.host_key(_topology().host(arguments.host).name))


def _addresses(arguments):
    for plane, address in _topology().host(arguments.host).addresses.items():
        print(plane, address)


def _replug(arguments):
    from . import escapes, network

    topology = _topology()
    escapes.remember(arguments.host)
    network.plug(topology.host(arguments.host), topology.planes)


def _words(arguments):
    words = arguments.words
    return words[1:] if words[:1] == ["--"] else words
