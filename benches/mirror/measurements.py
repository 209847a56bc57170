"""Each measurement by its name: what runs before its clock, and what the clock measures."""

import contextlib
import os
import shutil
import subprocess
import time

import yaml

from checks import Failed
from content import Content, with_patch_version
from load import processors, pull, throughput
from network import HOSTS, LINK_BITS, SERVER, Link, wire_bytes
from servers import METALFORM_PORT, NGINX_PORT, Servers

# Three programs, which Go links within seconds where it has compiled them before: less than a real patch version costs.
PATCHED = "containerd"
# Where a cache has the parts of bundles.
PARTS = "bundle"
_PATIENCE = 600
_MEGA = 1e6


class Measurements:
    """In a directory of its own, with a cache and bundles that share the files of the given cache; nothing writes to these."""

    def __init__(self, metalform, cache, place, seconds, say):
        self.figures, self.units = {}, {}
        self._metalform, self._place, self._seconds, self._say = metalform, place, seconds, say
        self._bundle, self._cache = self._output("bundle"), self._output("cache")
        os.makedirs(parts := os.path.join(self._cache, PARTS))
        found = [part.path for part in os.scandir(os.path.join(cache, PARTS)) if not part.name.startswith(".")]
        subprocess.run(["cp", "--archive", "--link", *found, parts], check=True)
        self._build(self._bundle, self._cache)
        self._content = Content(self._bundle)
        self._patches = 0

    @contextlib.contextmanager
    def servers(self):
        place = os.path.join(self._place, "servers")
        os.mkdir(place)
        servers = Servers(self._metalform, self._content, place)
        try:
            yield servers
        finally:
            servers.close()
            shutil.rmtree(place)

    def throughput(self, servers, row, number):
        """A pair: each server alone, the first of them in turn."""
        path = self._content.paths()[row]
        sides = [
            ("metalform", METALFORM_PORT, (servers.metalform, servers.registry)),
            ("nginx", NGINX_PORT, (servers.nginx,)),
        ]
        if number == 0:
            for _, port, _ in sides:
                throughput(port, path, 1)
            servers.forget_peak()
        rates = {}
        for name, port, processes in sides if number % 2 == 0 else reversed(sides):
            before = servers.busy(*processes)
            rates[name] = throughput(port, path, self._seconds)
            busy = servers.busy(*processes) - before
            self._keep(f"{row} {name}", rates[name] / _MEGA, "MB/s")
            self._keep(f"{row} {name} busy", busy / self._seconds / len(processors()[0]) * 100, "%")
            self._keep(f"{row} {name} a processor second", rates[name] * self._seconds / busy / _MEGA, "MB")
        self._keep(f"{row} ratio", rates["metalform"] / rates["nginx"], "")
        self._keep("memory", servers.peak(servers.metalform) / _MEGA, "MB")
        self._keep("memory of the registry", servers.peak(servers.registry) / _MEGA, "MB")

    def five_hosts(self, servers):
        """The largest image to five hosts, over one link."""
        paths, size = self._content.image()
        link = Link()
        try:
            begin = pull(link, servers.authority, f"https://{SERVER}:{METALFORM_PORT}", paths)
            with self._clock("five hosts"):
                if any(each.wait(_PATIENCE) for each in [begin(host) for host in HOSTS]):
                    raise Failed("a pull failed")
        finally:
            link.close()
        self._keep("five hosts link", wire_bytes(size * len(HOSTS)) * 8 / LINK_BITS, "s")

    def build_again(self, _number):
        with self._clock("build again"):
            self._build(self._bundle, self._cache)

    def build_patch(self, _number):
        """Into a bundle that has the version before, beside the component alone into nothing."""
        self._patches += 1
        with open(os.path.join(self._bundle, "components.yaml"), encoding="utf-8") as file:
            lists = with_patch_version(file.read(), PATCHED, self._patches)
        if self._patches == 1:
            self._build(self._output("patched"), self._cache)
        bare = self._output(f"cache-{self._patches}")
        os.mkdir(bare)
        work = [("build patch", "patched", self._cache, lists[0]), ("build component", f"alone-{self._patches}", bare, lists[1])]
        for name, output, of, components in work if self._patches % 2 else reversed(work):
            file = self._output(f"{name}.yaml")
            with open(file, "w", encoding="utf-8") as written:
                yaml.safe_dump(components, written)
            with self._clock(name):
                self._build(self._output(output), of, "--file", file)

    def verify(self, number):
        """Beside sha256sum of the same files, the largest first, on as many processes as there are processors."""
        files = [os.path.join(directory, name) for directory, _, names in os.walk(self._bundle) for name in names]
        names = "\0".join(sorted(files, key=os.path.getsize, reverse=True)).encode()
        summed = ["xargs", "--null", "--max-args=1", f"--max-procs={len(os.sched_getaffinity(0))}", "sha256sum"]
        work = [("verify", [self._metalform, "bundle", "verify", self._bundle], b""), ("sha256sum", summed, names)]
        if number == 0:
            # From the page cache, both of them.
            _succeed(summed, names)
        for name, command, given in work if number % 2 == 0 else reversed(work):
            with self._clock(name):
                _succeed(command, given)

    def _output(self, name):
        return os.path.join(self._place, name)

    def _build(self, output, cache, *more):
        _succeed([self._metalform, "bundle", "build", "--output", output, "--cache", cache, *more], b"")

    @contextlib.contextmanager
    def _clock(self, name):
        began = time.monotonic()
        yield
        self._keep(name, time.monotonic() - began, "s")

    def _keep(self, name, value, unit):
        self.figures.setdefault(name, []).append(value)
        self.units[name] = unit
        self._say(f"{name}: {value:.3f} {unit}")


def _succeed(command, given):
    done = subprocess.run(command, input=given, capture_output=True, check=False, timeout=_PATIENCE)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit status {done.returncode}: {done.stderr.decode()[-1500:]}")
