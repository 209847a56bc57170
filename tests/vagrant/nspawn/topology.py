"""The hosts of `topology.yaml`, or of METALFORM_TOPOLOGY, checked once so that nothing after has to."""

import dataclasses
import ipaddress
import os

from .failure import LabError

FILE = os.environ.get(
    "METALFORM_TOPOLOGY", os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "topology.yaml")
)


@dataclasses.dataclass(frozen=True)
class Plane:
    """One of the two networks; `operator` is the address of `lab ssh` and `lab run` on it."""

    name: str
    nic: str
    cidr: ipaddress.IPv4Network
    operator: str = None


@dataclasses.dataclass(frozen=True, order=True)
class System:
    """What a host runs: a suite as mmdebstrap calls it, what it has beyond an ordinary small Debian, and which other
    system it is made to look like."""

    suite: str
    packages: tuple = ()
    like: str = ""

    @property
    def name(self):
        return self.like or self.suite


@dataclasses.dataclass(frozen=True)
class Host:
    """One machine as described: its name, its system, its addresses."""

    name: str
    os: str
    system: System
    addresses: dict
    default: bool


@dataclasses.dataclass(frozen=True)
class Topology:
    planes: tuple
    hosts: tuple
    cluster_networks: tuple

    def host(self, name):
        for host in self.hosts:
            if host.name == name:
                return host
        known = ", ".join(host.name for host in self.hosts)
        raise LabError(f"no host is called {name!r}", f"{FILE} has: {known}")

    def chosen(self, names):
        """The named hosts, or those that the topology marks as default."""
        if names:
            return [self.host(name) for name in dict.fromkeys(names)]
        return [host for host in self.hosts if host.default]

    def inside(self):
        """Every network a packet of the lab may be addressed to."""
        return [plane.cidr for plane in self.planes] + list(self.cluster_networks)


def load(path=FILE):
    try:
        import yaml  # here, so that `lab exec` does not pay for it
    except ImportError:
        raise LabError("PyYAML is missing", "apt-get install python3-yaml") from None

    with open(path, encoding="utf-8") as file:
        document = yaml.safe_load(file)
    planes = tuple(
        Plane(name, plane["nic"], ipaddress.ip_network(plane["cidr"]), plane.get("operator"))
        for name, plane in document["planes"].items()
    )
    hosts = tuple(_host(entry, planes, document["systems"]) for entry in document["hosts"])
    _refuse_duplicates(hosts, planes)
    networks = tuple(ipaddress.ip_network(cidr) for cidr in document["cluster-networks"])
    return Topology(planes, hosts, networks)


def _host(entry, planes, systems):
    name = entry["name"]
    if len(name) > 13:
        # Its cables are called c-NAME and w-NAME, and the kernel allows 15 bytes.
        raise LabError(f"host {name!r}: at most 13 letters, or its cables cannot be named")
    if entry["os"] not in systems:
        raise LabError(f"host {name!r}: os {entry['os']!r} is not among the systems")
    for plane in planes:
        if ipaddress.ip_address(entry[plane.name]) not in plane.cidr:
            raise LabError(f"host {name!r}: {entry[plane.name]} is not in {plane.name} {plane.cidr}")
    addresses = {plane.name: entry[plane.name] for plane in planes}
    system = systems[entry["os"]]
    system = System(system["suite"], tuple(system.get("packages", ())), system.get("like", ""))
    return Host(name, entry["os"], system, addresses, entry["default"])


def _refuse_duplicates(hosts, planes):
    for what in ["name"] + [plane.name for plane in planes]:
        seen = {}
        for host in hosts:
            value = host.name if what == "name" else host.addresses[what]
            if value in seen:
                raise LabError(f"{host.name} and {seen[value]} have the same {what}: {value}")
            seen[value] = host.name
