"""The lab's wiring: one switch namespace, a bridge a plane, a namespace a host.

    mfl-switch     bridge cp ---- c-HOST ====== eth0 of mfl-HOST      control-plane
                        |  `----- c-operator == eth0 of mfl-operator
                   bridge wp ---- w-HOST ====== eth1 of mfl-HOST      workload-plane

Cables are made between two of these namespaces and never pass through the
machine's own, which gets no link, address or route. The bridges have no address
and nothing here routes: what a host sends to anywhere else is not delivered
to anything, only counted (`escapes.py`).
"""

import contextlib
import hashlib
import os
import subprocess

from .failure import LabError
from .place import PREFIX, RUN, name_of, run_directory

NETNS = "/run/netns"
SWITCH = name_of("switch")
# The names of the two namespaces that are no hosts.
OPERATOR = "operator"
NOT_HOSTS = ("switch", OPERATOR)

_COMPLETE = os.path.join(RUN, "switch-complete")


def path_of(station):
    """The network namespace of a host or of the operator, as a file to enter."""
    return os.path.join(NETNS, name_of(station))


def cable(plane_name, station):
    """The switch's end of a cable."""
    return f"{plane_name[0]}-{station}"


def ensure_switch(topology, watch):
    """The switch and the operator's namespace, made again unless they are complete."""
    if os.path.exists(_COMPLETE) and os.path.ismount(path_of(OPERATOR)):
        return
    for thing in NOT_HOSTS:
        remove(thing)
    _ip("netns", "add", SWITCH)
    _configure(SWITCH, [line for plane in topology.planes for line in _bridge(plane)])
    _run(["nsenter", f"--net={NETNS}/{SWITCH}", "nft", "--file", "-"], watch)
    operator = {plane: plane.operator for plane in topology.planes if plane.operator}
    _plug(OPERATOR, operator)
    open(_COMPLETE, "w", encoding="ascii").close()


def plug(host, planes):
    """A fresh network stack, as after a power cut: no address, route or rule of the last boot."""
    remove(host.name)
    _plug(host.name, {plane: host.addresses[plane.name] for plane in planes})


def remove(station):
    """A namespace and, with it, the cables that end there."""
    for plane_name in ("control-plane", "workload-plane"):
        # The cable goes with its namespace, but not at once; its name is needed now.
        if os.path.ismount(f"{NETNS}/{SWITCH}"):
            with contextlib.suppress(LabError):
                _ip("-n", SWITCH, "link", "delete", cable(plane_name, station))
    if os.path.exists(path_of(station)):
        _ip("netns", "delete", name_of(station))


def unplug(station):
    """Its cables lose their carrier: from here on no packet of the station reaches the switch."""
    if os.path.ismount(f"{NETNS}/{SWITCH}"):
        for plane_name in ("control-plane", "workload-plane"):
            # A station that is off has no cables.
            with contextlib.suppress(LabError):
                _ip("-n", SWITCH, "link", "set", cable(plane_name, station), "down")


def cut(host_name, plane_name):
    """Pull a cable, at the switch; it stays pulled through power cycles, and can be when the host is off."""
    if not os.path.isdir(run_directory(host_name)):
        raise LabError(f"{host_name} has never been started", f"lab up {host_name}")
    open(_mark(host_name, plane_name), "w", encoding="ascii").close()
    _set(host_name, plane_name, "down")


def heal(host_name, plane_name):
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_mark(host_name, plane_name))
    _set(host_name, plane_name, "up")


def is_cut(host_name, plane_name):
    return os.path.exists(_mark(host_name, plane_name))


def known():
    """Every station that has a namespace of this lab, also where the topology no longer has it."""
    with contextlib.suppress(FileNotFoundError):
        names = [entry.name for entry in os.scandir(NETNS) if entry.name.startswith(f"{PREFIX}-")]
        return sorted(name[len(PREFIX) + 1 :] for name in names)
    return []


def _set(host_name, plane_name, state):
    if os.path.ismount(path_of(host_name)):
        _ip("-n", SWITCH, "link", "set", cable(plane_name, host_name), state)


def _mark(host_name, plane_name):
    return os.path.join(run_directory(host_name), f"cut-{plane_name}")


def _bridge(plane):
    # A dumb switch: no spanning tree to wait for, no snooping of the multicast
    # by which routing daemons find each other, no address of its own.
    name = plane.name[0] + "p"
    return [
        f"link add {name} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
        f"link set {name} addrgenmode none",
        f"link set {name} up",
    ]


def _plug(station, addresses):
    inside = name_of(station)
    _ip("netns", "add", inside)
    at_switch, at_station = [], ["link set lo up"]
    for plane, address in addresses.items():
        end = cable(plane.name, station)
        card = f"name {plane.nic} address {_hardware_address(station, plane)} netns {inside}"
        at_switch.append(f"link add {end} type veth peer {card}")
        at_switch.append(f"link set {end} addrgenmode none")
        at_switch.append(f"link set {end} master {plane.name[0]}p")
        at_switch.append(f"link set {end} {'down' if is_cut(station, plane.name) else 'up'}")
        at_station.append(f"address add {address}/{plane.cidr.prefixlen} broadcast + dev {plane.nic}")
        at_station.append(f"link set {plane.nic} up")
    _configure(SWITCH, at_switch)
    _configure(inside, at_station)


def _hardware_address(station, plane):
    """A card keeps its address through power cycles, or its peers would lose it for a while."""
    digest = hashlib.sha256(f"{PREFIX} {station} {plane.name}".encode()).digest()
    return ":".join(f"{byte:02x}" for byte in b"\x02" + digest[:5])


def _configure(namespace, lines):
    _run(["ip", "-n", namespace, "-batch", "-"], "\n".join(lines) + "\n")


def _ip(*words):
    _run(["ip", *words], "")


def _run(command, text):
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LabError(f"{' '.join(command)}: {done.stderr.strip()}")
