"""Proof that nothing in the lab has tried to reach the world outside.

There are two ways to try. Without a route, a connection dies in the kernel
before a packet exists, and the host's own counters of missing routes rise (its
pods' packets end there too). With a route, a packet reaches the switch, which
counts and drops what is addressed to none of the lab's networks. Between them
nothing passes uncounted, and both are kept by the kernel, not by the processes
under test. A host's counts outlive its power cycles in its run directory.
"""

import contextlib
import json
import os
import subprocess

from . import network
from .failure import LabError
from .place import RUN, run_directory

# Multicast, broadcast and link-local packets are local by definition.
_LOCAL_IPV4 = ["224.0.0.0/4", "255.255.255.255", "169.254.0.0/16", "0.0.0.0"]
_LOCAL_IPV6 = ["fe80::/10", "ff00::/8"]


def watch(topology):
    """The switch's rules, in nftables' own language."""
    networks = ", ".join([str(network) for network in topology.inside()] + _LOCAL_IPV4)
    return f"""
    table bridge escapes {{
        chain watch {{
            type filter hook prerouting priority 0
            ip daddr != {{ {networks} }} counter drop comment "ipv4"
            arp daddr ip != {{ {networks} }} counter drop comment "arp"
            ip6 daddr != {{ {", ".join(_LOCAL_IPV6)} }} counter drop comment "ipv6"
        }}
    }}
    """


def at_switch():
    """Packets dropped since the lab is up, by protocol."""
    if not os.path.ismount(network.path_of("switch")):
        raise LabError("the lab is down", "lab up")
    command = ["nsenter", f"--net={network.path_of('switch')}", "nft", "--json", "list", "table", "bridge", "escapes"]
    rules = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["nftables"]
    counts = {}
    for rule in (entry["rule"] for entry in rules if "rule" in entry):
        counter = next(step["counter"] for step in rule["expr"] if "counter" in step)
        counts[rule["comment"]] = counter["packets"]
    return counts


def stations():
    """The operator and every host that is on or has been."""
    found = set(network.known())
    with contextlib.suppress(FileNotFoundError):
        found.update(entry.name for entry in os.scandir(RUN) if os.path.exists(_file(entry.name)))
    return sorted(found - {"switch"})


def at_station(station):
    """Attempts of a host (or of the operator) that found no route, its earlier boots included."""
    now = _read(station)
    before = _remembered(station)
    return {name: now.get(name, 0) + before.get(name, 0) for name in sorted(now.keys() | before.keys())}


def remember(host_name):
    """Called before the host's network stack is thrown away."""
    counts = at_station(host_name)
    if any(counts.values()):
        os.makedirs(run_directory(host_name), exist_ok=True)
        with open(_file(host_name), "w", encoding="ascii") as file:
            json.dump(counts, file)


def forget(host_name):
    """Another machine has its place."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(_file(host_name))


def _remembered(station):
    with contextlib.suppress(FileNotFoundError), open(_file(station), encoding="ascii") as file:
        return json.load(file)
    return {}


def _read(station):
    if not os.path.ismount(network.path_of(station)):
        return {}
    command = ["nsenter", f"--net={network.path_of(station)}", "cat"]
    command += ["/proc/net/snmp", "/proc/net/netstat", "/proc/net/snmp6"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in text.splitlines()]
    counts = {f"ipv6 {words[0][3:]}": int(words[1]) for words in lines if words[0].startswith("Ip6")}
    for names, values in zip(lines, lines[1:]):
        # IPv4 counters come as two lines with one heading: the names, then the values.
        if names[0] == values[0] and names[0] in ("Ip:", "IpExt:"):
            counts.update((f"ipv4 {name}", int(value)) for name, value in zip(names[1:], values[1:]))
    return {name: count for name, count in counts.items() if name.endswith("NoRoutes")}


def _file(station):
    return os.path.join(run_directory(station), "escapes.json")
