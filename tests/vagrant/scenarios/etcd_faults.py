"""Joins of etcd that break off at every action: the voters stay healthy, the next run converges, no write is lost."""

import json
import os
import tempfile
import time

import etcd_join_faults as faults
from checks import State, check, expect, expect_equal, until
from cluster import LAB
from control_plane_node import etcdctl
from etcd_writer import PREFIX, Writer, key
from sampling import sample

# Seconds without a confirmed write: an election takes 1 to 2, and the writer 1 to turn to another member.
GAP = 5
_state = State()

OTHERS = {
    "the link of the joiner is cut for 20 s": faults.cut_link_for_a_while,
    "the link of the joiner is cut for good": faults.cut_link_for_good,
    "the leader is killed while the learner copies": lambda: faults.kill_leader(_state["writer"]),
    "the disk of the joiner is full when etcd starts": faults.fill_disk_at_start,
    "the disk of the joiner is full while etcd copies": lambda: faults.fill_disk_while_copying(_state["writer"]),
    "two nodes join at once": faults.join_two_at_once,
}


def set_up():
    directory = tempfile.TemporaryDirectory(prefix="metalform-etcd-")
    _state["directory"] = directory
    for name, text in faults.credentials().items():
        path = os.path.join(directory.name, name)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write(text)
    _state["writer"] = Writer(LAB, directory.name, faults.voter_urls())
    until("the first write is confirmed", 10, _state["writer"].confirmed)


def tear_down():
    if "writer" in _state:
        _state["writer"].end()
    if "directory" in _state:
        _state["directory"].cleanup()
    for node in (faults.NODE, faults.OTHER):
        faults.clear(node)
    faults.expect_voters()
    _shrink()


def _shrink():
    """The database is as small as it was."""
    etcdctl("del", "--prefix", PREFIX)
    revision = json.loads(etcdctl("get", PREFIX, "-w", "json"))["header"]["revision"]
    etcdctl("compact", str(revision), "--physical", "--command-timeout=60s")
    for url in faults.voter_urls():
        etcdctl("defrag", "--command-timeout=60s", endpoint=url)


def _played(fault, *arguments):
    """The fault, and what the writer has seen of it."""
    began = time.monotonic()
    fault(*arguments)
    gap = _state["writer"].gap(began)
    print(f"# no write was confirmed for at most {gap:.2f} s", flush=True)
    expect(_state["writer"].runs(), "the writer has ended")
    expect(gap <= GAP, f"no write was confirmed for {gap:.2f} s")


# Of all that can break off a join.
_FAULTS = {"kill": faults.ACTIONS, "cut": faults.ACTIONS, "other": OTHERS}
_SAMPLE = sample("etcd_faults", [(kind, each) for kind, of in _FAULTS.items() for each in of], 2)


def _sampled(kind):
    return [each for of, each in _SAMPLE if of == kind]


@check("metalform is killed as it {}", each=_sampled("kill"))
def metalform_is_killed(action):
    _played(faults.kill_metalform, action)


@check("the joiner loses power as metalform {}", each=_sampled("cut"))
def joiner_loses_power(action):
    _played(faults.cut_power, action)


@check("{}", each=_sampled("other"))
def other(what):
    _played(OTHERS[what])


@check("every confirmed write is in each voter's data")
def no_write_is_lost():
    writer = _state["writer"]
    writer.end()
    confirmed = writer.confirmed()
    expect_equal("numbers", sorted(confirmed), list(range(1, len(confirmed) + 1)))
    print(f"# {len(confirmed)} writes were confirmed, with a gap of at most {writer.gap(0):.2f} s", flush=True)
    for url in faults.voter_urls():
        # The member answers from its own data, when it has applied all that was committed.
        found = set(etcdctl("get", "--prefix", PREFIX, "--keys-only", endpoint=url).split())
        lost = [number for number in confirmed if key(number) not in found]
        expect_equal(f"confirmed writes that {url} does not have", lost, [])
