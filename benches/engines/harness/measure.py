"""One run of one command, with the clock running from its exec to its exit."""

import dataclasses
import os
import select
import shutil
import subprocess
import time

from nspawn import cgroup, network

from . import usage
from .failure import BenchError
from .place import state

# The cgroup of what is measured; `lab down` ends what is in it, as it does with hosts.
CLIENT = "client"
_PATIENCE = 900
_GATE = 9
# Everything that comes before the command itself is done when this waits at the gate.
_AT_THE_GATE = f'echo ready; read -r go <&{_GATE}; exec {_GATE}<&-; log=$1; shift; exec "$@" > "$log" 2>&1'


@dataclasses.dataclass
class Run:
    """How it went. Seconds, and bytes at the operator's network card."""

    code: int
    output: str
    wall: float
    client_cpu: float
    host_cpu: dict
    machine_cpu: float
    sent: int
    received: int
    memory: usage.Memory

    def foreign(self, processors):
        """The share of the machine that others took meanwhile."""
        ours = self.client_cpu + sum(self.host_cpu.values())
        return max(0.0, self.machine_cpu - ours) / self.wall / processors


def run(invocation, hosts, station=network.OPERATOR, sample_every=None):
    """Runs a command from a station. Nothing that it leaves running on this machine outlives it.

    `sample_every` so many seconds its memory is looked at, which disturbs the clock.
    """
    cgroup.make(CLIENT)
    scratch = state("scratch")
    # A killed benchmark has left its own.
    shutil.rmtree(scratch, ignore_errors=True)
    os.makedirs(scratch, mode=0o700)
    log = state("last.log")
    gate, opener = os.pipe()
    try:
        sent, received = usage.interface_bytes(station)
        client = _start(invocation, scratch, station, log, gate)
        client.stdout.readline()
        memory = usage.Memory()
        before = _used(hosts)
        began = time.perf_counter()
        os.write(opener, b"go\n")
        ended = _wait(client, memory, sample_every)
        wall = time.perf_counter() - began
        # What it left behind, a master connection perhaps, has worked for it too.
        cgroup.kill(CLIENT)
        after = _used(hosts)
        sent_after, received_after = usage.interface_bytes(station)
    finally:
        cgroup.kill(CLIENT)
        os.close(gate)
        os.close(opener)
        shutil.rmtree(scratch, ignore_errors=True)
    with open(log, encoding="utf-8", errors="replace") as file:
        output = file.read()
    host_cpu = {host: after[host] - before[host] for host in hosts}
    return Run(
        client.returncode if ended else 124,
        output,
        wall,
        after[CLIENT] - before[CLIENT],
        host_cpu,
        after["machine"] - before["machine"],
        sent_after - sent,
        received_after - received,
        memory,
    )


def _start(invocation, scratch, station, log, gate):
    def prepare():
        os.dup2(gate, _GATE)
        cgroup.enter(CLIENT)

    words = ["nsenter", f"--net={network.path_of(station)}", "sh", "-c", _AT_THE_GATE, "sh", log, *invocation.words]
    with open(invocation.stdin, "rb") as stdin:
        return subprocess.Popen(
            words,
            cwd=invocation.directory,
            env=invocation.full_environment(scratch),
            stdin=stdin,
            stdout=subprocess.PIPE,
            preexec_fn=prepare,
            pass_fds=[_GATE],
        )


def _wait(client, memory, sample_every):
    """Whether it ended by itself. Wakes up at that very moment, which `Popen.wait` with a deadline does not."""
    deadline = time.monotonic() + _PATIENCE
    ended = select.poll()
    handle = os.pidfd_open(client.pid)
    try:
        ended.register(handle, select.POLLIN)
        while time.monotonic() < deadline:
            if ended.poll(1000 * (sample_every or 1)):
                client.wait()
                return True
            if sample_every:
                memory.sample(CLIENT)
        return False
    finally:
        os.close(handle)


def _used(hosts):
    used = {group: usage.processor_seconds(group) for group in (CLIENT, *hosts)}
    return {**used, "machine": usage.machine_seconds()}


def checked(invocation, hosts, what, **options):
    """A run that went well on every host, or an error that ends the benchmark."""
    done = run(invocation, hosts, **options)
    if done.code != 0:
        raise BenchError(f"{what} ended with {done.code}:\n{done.output[-3000:].strip()}")
    idle = min(done.host_cpu, key=done.host_cpu.get)
    # A login alone costs more. Some engines succeed on no host at all.
    if done.host_cpu[idle] < 0.01:
        raise BenchError(f"{what} has not touched {idle}")
    return done
