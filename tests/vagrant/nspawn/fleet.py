"""Several hosts at once: up, down, status."""

import concurrent.futures
import contextlib
import os
import shutil
import time

from . import cgroup, disk, entry, escapes, host, image, kernel, network
from .failure import LabError
from .place import PREFIX, RUN, RUN_ROOT, STATE, locked, prepare


def up(topology, hosts, log):
    """Start the hosts that are off and wait until all are ready."""
    # Before the lock: making an image takes a minute, and `down` must not wait for it.
    for system in sorted({target.system for target in hosts if not disk.exists(target.name)}):
        image.ensure(system, log)
    began = time.monotonic()
    with locked() as lock:
        prepare()
        kernel.remember()
        kernel.raise_limits()
        disk.ensure_key()
        network.ensure_switch(topology, escapes.watch(topology))
        # Alive without an init is a host that another `up` is just booting.
        cold = [target for target in hosts if not cgroup.direct_processes(target.name)]
        _each(cold, lambda target: host.power_on(target, topology, lock, log))
        entry.write_known_hosts(topology)
    for name, state in _each(hosts, host.await_ready).items():
        if state != "running" or name in {target.name for target in cold}:
            log(f"{name}: {state}")
    log(f"{len(hosts)} ready, {len(cold)} of them started, in {time.monotonic() - began:.1f} s")


def power_off(hosts):
    with locked():
        for target in hosts:
            escapes.remember(target.name)
        _each([target.name for target in hosts], host.power_off)


def renew(topology, hosts, log):
    """As if the machines were replaced: nothing of the old ones stays, not even their host keys."""
    power_off(hosts)
    with locked():
        for target in hosts:
            disk.remove(target.name)
            escapes.forget(target.name)
    up(topology, hosts, log)


def power_on(topology, hosts, log):
    for target in hosts:
        if not disk.exists(target.name):
            raise LabError(f"{target.name} has no disk to boot from", f"lab up {target.name}")
    up(topology, hosts, log)


def down(log):
    """End every process of the lab and remove all it made, images and key excepted.

    Finds things by their names alone, so it works after any crash, and for hosts that the
    topology no longer has.
    """
    states = {STATE, _state_noted()}
    with contextlib.ExitStack() as stack:
        for state in sorted(states):
            stack.enter_context(locked(state))
        names = (set(cgroup.known()) | set(network.known()) | _entries(RUN)) - set(network.NOT_HOSTS)
        for state in states:
            names |= _entries(os.path.join(state, "hosts"))
        _each(sorted(names), host.power_off)
        kernel.put_back()
        for thing in network.NOT_HOSTS:
            network.remove(thing)
        for state in states:
            shutil.rmtree(os.path.join(state, "hosts"), ignore_errors=True)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(state, "known_hosts"))
        shutil.rmtree(RUN, ignore_errors=True)
        with contextlib.suppress(OSError):
            os.rmdir(RUN_ROOT)
    log(f"{PREFIX} is down")


def status(topology):
    """One line a host: name, state, system, addresses, pulled cables."""
    rows = [("HOST", "STATE", "SYSTEM", *(plane.name.upper() for plane in topology.planes), "CUT")]
    for known in topology.hosts:
        state = "on" if host.init_pid(known.name) else "off" if disk.exists(known.name) else "-"
        cut = [plane.name for plane in topology.planes if network.is_cut(known.name, plane.name)]
        rows.append((known.name, state, known.os, *known.addresses.values(), ",".join(cut) or "-"))
    widths = [max(map(len, column)) for column in zip(*rows)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def _state_noted():
    with contextlib.suppress(OSError):
        return os.readlink(os.path.join(RUN, "state"))
    return STATE


def _entries(directory):
    with contextlib.suppress(FileNotFoundError):
        return {entry.name for entry in os.scandir(directory) if entry.is_dir(follow_symlinks=False)}
    return set()


def _each(things, act):
    """Do it to all at once; every failure is reported, not only the first."""
    results, failures = {}, []
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, len(things))) as pool:
        futures = {getattr(thing, "name", thing): pool.submit(act, thing) for thing in things}
        for name, future in futures.items():
            try:
                results[name] = future.result()
            except LabError as error:
                failures.append(error)
    if failures:
        raise LabError("; ".join(map(str, failures)), failures[0].hint)
    return results
