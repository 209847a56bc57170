"""The connection to a host breaks during an apply: one line with the current resource, and a later run converges."""

import signal
import time

from checks import Failed, check, expect, expect_equal, until
from cluster import lab, on, shell
from engine import SSH, Tree, changed, expect_failure
from processes import send, sessions
from sampling import sample

HOST = "node-2"
# The client's keepalive notices a dead connection within 40 s: transport/ssh/client.rs.
NOTICED = 50
_state = {}

RESOURCES = [
    {"file": "/srv/connection/before", "content": "1"},
    {"command": "Take long", "run": "sleep 5; echo > /srv/connection/long", "creates": "/srv/connection/long"},
    {"file": "/srv/connection/after", "content": "2"},
]


def set_up():
    _state["tree"] = Tree(HOST, RESOURCES)


def tear_down():
    _state["tree"].remove()
    shell(HOST, "rm -rf /srv/connection")


def _freeze():
    send([session for session, _ in sessions(HOST)], signal.SIGSTOP)


def _thaw():
    send([session for session, _ in sessions(HOST)], signal.SIGCONT)


def _reboot():
    # It ends before its own command can return.
    _state["boot"] = _boot_id()
    on(HOST, "systemctl", "reboot")


def _boot_id():
    done = on(HOST, "cat", "/proc/sys/kernel/random/boot_id")
    # The kernel is this machine's and keeps its own; that of a host is its init's birth.
    return done.returncode == 0 and on(HOST, "stat", "-c", "%Y", "/proc/1").stdout


def _is_back():
    until("it has booted again", 60, lambda: _boot_id() not in (False, "", _state["boot"]))
    until("it is ready", 60, lambda: lab("up", HOST) is not None)


# What breaks it, what restores it, and within what time the error is printed.
BREAKS = {
    "the link is cut": (lambda: lab("cut", HOST), lambda: lab("heal", HOST), NOTICED),
    "the session on the host is frozen": (_freeze, _thaw, NOTICED),
    "the session on the host is killed": (lambda: send([session for session, _ in sessions(HOST)]), lambda: None, 2),
    "sshd is stopped whole": (lambda: shell(HOST, "systemctl kill --signal=KILL --kill-whom=all ssh || :"), lambda: shell(HOST, "systemctl start ssh"), NOTICED),
    "the host reboots": (_reboot, _is_back, NOTICED),
    "the power is cut": (lambda: lab("power-off", HOST), lambda: lab("power-on", HOST), NOTICED),
}


@check("{}", each=sample("broken_way", BREAKS, 3))
def breaks(what):
    break_it, restore, patience = BREAKS[what]
    shell(HOST, "rm -rf /srv/connection")
    running = _state["tree"].start()
    until("the long command runs", 20, lambda: on(HOST, "pgrep", "-fx", "sleep 5").returncode == 0)
    began = time.monotonic()
    try:
        break_it()
        out, err = running.communicate(timeout=patience + 30)
        since = time.monotonic() - began
    finally:
        running.kill()
        restore()
    running.stdout, running.stderr = out, err
    expect(since < patience, f"known only after {since:.1f} s\n{err}")
    expect_failure(running, SSH, HOST, "connection lost", "command:Take long")
    expect_equal(f"what was done\n{out}", changed(running), {HOST: 1})
    _state["tree"].converge()
    expect_equal("files", shell(HOST, "cd /srv/connection && echo *").split(), ["after", "before", "long"])


@check("an unreachable host is reported, and others are not delayed")
def others_continue():
    lab("cut", HOST)
    both = Tree(f"{HOST},node-1", [{"file": "/srv/connection/it", "content": "1"}])
    try:
        done = both.run("apply")
        expect_failure(done, SSH, HOST, "no SSH connection")
        expect_equal("the other", shell("node-1", "cat /srv/connection/it; rm -r /srv/connection"), "1")
    finally:
        both.remove()
        lab("heal", HOST)
    if _state["tree"].run("plan").returncode not in (0, 2):
        raise Failed("it cannot be reached once the link is up again")
