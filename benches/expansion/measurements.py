"""Each measurement by its name: what runs before its clock, what the clock measures, and what must be true afterwards."""

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor

import machine_pool as pool
from checks import Failed, until
from cluster import (
    BOOTSTRAP,
    NODES,
    SPARES,
    accept_host_key,
    apply,
    authorise,
    delete_node,
    discard,
    fresh,
    introduce,
    lab,
    manifest,
    metalform,
)
from control_plane_node import ETCD, MASTER, described
from control_plane_node import forget as forget_member
from control_plane_node import introduce as introduce_member
from floor import Prepared, remove
from hand_over import hand_over
from hollow import Hollow
from kubeadm import Joinable
from watched import watched

# The same hardware, so that what a floor has prepared is right for what it is compared with.
HOST = "spare-2"
OTHERS = [node for node in NODES if node != BOOTSTRAP]
HOLLOW = 26
_PATIENCE = 600


class Clock:
    """Seconds by the name of the measurement, one for each repetition."""

    def __init__(self, say):
        self.seconds, self._say = {}, say

    @contextlib.contextmanager
    def measure(self, name):
        began = time.monotonic()
        yield
        took = time.monotonic() - began
        self.seconds.setdefault(name, []).append(round(took, 3))
        self._say(f"{name}: {took:.2f} s")


class Measurements:
    """On the cluster of five that is up; the spare hosts are its own."""

    def __init__(self, clock):
        self._clock = clock
        # Of a run that failed.
        for node in SPARES:
            discard(node)
            delete_node(node)

    def worker(self):
        """Bare host to verified, beside its floor; and its removal, beside a removal by hand."""
        introduce(HOST)
        with self._clock.measure("worker"):
            run("deploy-node", HOST)
        prepared = Prepared(HOST)
        with self._clock.measure("removal"):
            run("remove-node", HOST)
        fresh(HOST)
        prepared.introduce()
        with self._clock.measure("worker floor"):
            prepared.install()
        authorise(HOST)
        accept_host_key(HOST)
        prepared.judge()
        with self._clock.measure("removal floor"):
            remove(HOST)

    def kubeadm(self):
        """`kubeadm join` of a host that has everything but the join."""
        introduce(HOST)
        run("deploy-node", HOST)
        prepared = Prepared(HOST)
        run("remove-node", HOST)
        fresh(HOST)
        prepared.introduce()
        joinable = Joinable(prepared)
        with self._clock.measure("kubeadm join, all installed"):
            joinable.join()
        delete_node(HOST)

    def machine(self):
        """From the manifest of a Machine, of a MachineDeployment and of a Node, each on a clean host, to a node that is Ready."""
        version = pool.version()
        ready = '{.status.conditions[?(@.type=="Ready")].status}'
        with _pool_of_one("machine", ready, "True") as wait, self._clock.measure("machine"):
            pool.create_machine(version)
            wait()
        available = "{.status.availableReplicas}"
        with _pool_of_one("machinedeployment", available, "1") as wait, self._clock.measure("machinedeployment of one"):
            pool.create(1, version)
            wait()
        fresh(HOST)
        authorise(HOST)
        node = described(HOST, "node", annotations={"metalform.dev/ssh-host-key": lab("host-key", HOST).strip()})
        with self._clock.measure("node of that host"):
            apply(node)
            run("deploy-node", HOST)
        run("remove-node", HOST)

    def worker_of_30(self):
        """The same with the cluster's own Nodes, and while the API has so many more."""
        self._one_worker("worker of 4")
        with Hollow(HOLLOW):
            self._one_worker("worker of 30")

    def _one_worker(self, name):
        introduce(HOST)
        with self._clock.measure(name):
            run("deploy-node", HOST)
        run("remove-node", HOST)

    def control_plane(self):
        """With etcd, beside its floor."""
        introduce_member(HOST, MASTER, ETCD)
        with self._clock.measure("control plane"):
            run("deploy-node", HOST)
        prepared = Prepared(HOST)
        run("remove-node", HOST)
        fresh(HOST)
        prepared.introduce()
        try:
            with self._clock.measure("control plane floor"):
                prepared.install_with_control_plane()
        finally:
            forget_member(HOST)

    def four_workers(self):
        """Of one command, beside one, and four of the floor's scripts at once: what this machine's processors allow."""
        self._one_worker("one worker")
        for node in SPARES:
            introduce(node)
        with self._clock.measure("four workers"):
            run("deploy-node", *SPARES)
        prepared = [Prepared(node) for node in SPARES]
        run("remove-node", *SPARES)
        for each in prepared:
            fresh(each.name)
            each.introduce()
        with self._clock.measure("four workers floor"), ThreadPoolExecutor() as pool:
            list(pool.map(Prepared.install, prepared))
        for node in SPARES:
            discard(node)
            delete_node(node)

    def nothing_to_do(self):
        """One node again, and all of them again."""
        with self._clock.measure("deploy again"):
            run("deploy-node", OTHERS[-1])
        with self._clock.measure("expand again"):
            run("expand")

    def cluster(self):
        """From bare hosts: once by `expand`, once by one `deploy-node` after the other."""
        for name, deploy in (("expand", self._at_once), ("one after the other", self._in_turn)):
            lab("down")
            lab("up", timeout=_PATIENCE)
            hand_over(BOOTSTRAP)
            with self._clock.measure("bootstrap"):
                run("bootstrap")
            for node in OTHERS:
                _describe(node)
            with self._clock.measure(name):
                deploy()

    def _at_once(self):
        run("expand")

    def _in_turn(self):
        for node in OTHERS:
            run("deploy-node", node)


@contextlib.contextmanager
def _pool_of_one(kind, path, expected):
    """Yields what waits for the only object of this kind."""
    with watched(kind, pool.NAMESPACE, path, expected) as wait:
        pool.add(HOST)
        until("the host is available", pool.INSPECTED, lambda: pool.states() == {HOST: "Available"})
        yield wait
        pool.end([HOST])


def _describe(node):
    """As the demo has it: its Node, our key authorised, its own accepted."""
    given = manifest(node)
    authorise(node, given["metadata"]["annotations"].get("metalform.dev/ssh-user", "root"))
    apply(given)
    accept_host_key(node)


def run(*words):
    done = metalform(*words, timeout=_PATIENCE)
    if done.returncode != 0:
        raise Failed(f"metalform {' '.join(words)}: exit {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
