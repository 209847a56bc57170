"""A wait whose cause is on the host ends within 20 s of it: the error names unit, container or host, and the last line."""

import functools
import re
import time

from changed_tree import push_tree
from checks import check, expect, expect_equal, until
from closed_api import close_api, in_group, open_api
from cluster import BOOTSTRAP, NODES, lab, metalform, on, ready, shell
from control_plane_node import ETCD, MASTER, forget, introduce
from deployment import Deployment
from sampling import sample

NODE = "spare-2"
SSH, HOST, ETCD_CLASS, API = 3, 4, 5, 6
# Seconds from the cause to the end of the run.
PATIENCE = 20
TREE = "/root/broken-tree"
# A kubelet package brings its program; the diversion keeps ours in its place.
_DIVERT = 'dpkg-divert --quiet --local --no-rename --divert /usr/bin/kubelet.real /usr/bin/kubelet; cat > "$1"; chmod 0755 "$1"'


def tear_down():
    shell(BOOTSTRAP, 'rm -rf "$1"', TREE)
    forget(NODE)
    _expect_voters()


# --- a unit that fails

PROGRAMS = {
    "/bin/false": ("#!/bin/false\n", r"status[= ]1|exit(ed)?[^;]* 1\b"),
    "a program that prints why and exits with 7": (
        "#!/bin/sh\necho 'scenario: no such device: widget-4711' >&2\nexit 7\n",
        r"no such device: widget-4711",
    ),
}


def _kubelet_fails(what):
    program, last_line = PROGRAMS[what]
    _begin("node", prepare=lambda: _replace_kubelet(program))
    with Deployment(NODE) as running:
        running.until("the kubelet has failed", _kubelet_has_failed)
        _expect_end(running, HOST, r"kubelet(\.service)?\b", last_line)


def _replace_kubelet(program):
    shell(NODE, _DIVERT, "/usr/bin/kubelet", stdin=program)


def _kubelet_has_failed():
    shown = on(NODE, "systemctl", "show", "kubelet", "-p", "NRestarts,Result").stdout
    return "Result=exit-code" in shown or re.search(r"NRestarts=[1-9]", shown)


# --- a container that crashes

FLAG = "--no-such-flag-4711"
# Template, the line before the flag, and the exit code: the end of a learner is a failure of etcd.
CRASHES = {
    "kube-scheduler": ("kube-scheduler/static-pod.yaml.j2", "--leader-elect=true", HOST),
    "etcd": ("etcd/static-pod.yaml.j2", "--client-cert-auth=true", ETCD_CLASS),
}


def _container_crashes(name):
    _begin(MASTER, *([ETCD] if name == "etcd" else []))
    template, before, code = CRASHES[name]
    push_tree(TREE, template, before, f"{before}\n        - {FLAG}")
    with Deployment(NODE, "--tree", TREE) as running:
        running.until(f"{name} has ended once", lambda: _has_log(name))
        _expect_end(running, code, rf"\b{name}\b", FLAG.lstrip("-"))


def _has_log(name):
    """The kubelet keeps a container's output from its first end on."""
    script = 'cat /var/log/pods/kube-system_"$1"-*/"$1"/*.log 2>/dev/null | grep -qF -e "$2"'
    return on(NODE, "sh", "-c", script, "sh", name, FLAG.lstrip("-")).returncode == 0


# --- a host without power, during each wait

# A kubelet that starts and never registers.
_MUTE = "#!/bin/sh\nexec sleep infinity\n"
# What is waited for → the node's roles, and the line of progress at which the power is cut.
WAITS = {
    "the kubelet to register": (["node"], r"waiting for .*kubelet"),
    "the pods to be ready": ([MASTER], r"waiting for .*pods"),
    "the etcd learner": ([MASTER, ETCD], r"waiting for .*etcd"),
    "the end state": (["node"], r"waiting for .*(pod on|to be Ready)"),
}


def _power_is_cut(what):
    roles, line = WAITS[what]
    mute = what == "the kubelet to register"
    _begin(*roles, prepare=lambda: _replace_kubelet(_MUTE) if mute else None)
    with Deployment(NODE) as running:
        running.until_line(line)
        lab("power-off", NODE)
        # No unit and no container can be named: the host cannot be queried.
        _expect_end(running, SSH, rf"{NODE}\b")


# --- what is waited for is not on the host: its class decides the exit code


def _voter_is_away():
    away = "master-2"
    _begin(MASTER, ETCD)
    lab("power-off", away)
    try:
        with Deployment(NODE) as running:
            # The wait itself has its full limit: the voter may come back.
            code = running.finish(300)
    finally:
        lab("power-on", away)
        _expect_voters()
    expect_equal(f"exit code\n{running.stderr}", code, ETCD_CLASS)
    expect(away in "\n".join(running.errors()), f"{away} is not named\n{running.stderr}")


def _api_is_gone():
    _begin("node")
    try:
        with Deployment(NODE, prefix=in_group()) as running:
            running.until("dpkg runs", lambda: on(NODE, "pgrep", "-x", "dpkg").returncode == 0)
            close_api()
            code = running.finish(300)
    finally:
        open_api()
    expect_equal(f"exit code\n{running.stderr}", code, API)
    expect_equal(f"number of errors\n{running.stderr}", len(running.errors()), 1)


# --- which of them run

CAUSES = {
    **{f"a kubelet that is {what}": functools.partial(_kubelet_fails, what) for what in PROGRAMS},
    **{f"{name} that crashes for a flag it does not know": functools.partial(_container_crashes, name) for name in CRASHES},
    **{
        f"the power is cut while the deployment waits for {what}": functools.partial(_power_is_cut, what) for what in WAITS
    },
    "etcd with a voter away": _voter_is_away,
    "an API that is gone": _api_is_gone,
}


@check("{}", each=sample("wait_causes", CAUSES, 3))
def cause(what):
    CAUSES[what]()


# --- around each


def _begin(*roles, prepare=lambda: None):
    """Nothing is left of the check before, even where it failed."""
    forget(NODE)
    introduce(NODE, *roles, prepare=prepare)


def _expect_voters():
    until("etcd has three healthy voters and no learner", 120, lambda: metalform("etcd", "health", timeout=60).returncode == 0)
    until("every node is Ready", 120, lambda: all(ready(node) for node in NODES))


def _expect_end(running, code, *patterns):
    """The run ends in time, with one error that matches every pattern, and a hint."""
    cause = time.monotonic()
    ended = running.finish(PATIENCE + 100)
    since = running.ended - cause
    shown = f"after {since:.1f} s: exit {ended}\n{running.stderr}"
    print(f"# ended {since:.1f} s after the cause, exit {ended}: {' '.join(running.errors())[:300]}", flush=True)
    expect(since <= PATIENCE, f"too late, {shown}")
    expect_equal(f"exit code {shown}", ended, code)
    expect_equal(f"number of errors {shown}", len(running.errors()), 1)
    for pattern in patterns:
        expect(re.search(pattern, running.errors()[0]), f"the error does not match {pattern!r} {shown}")
    expect(running.hints(), f"there is no hint {shown}")
