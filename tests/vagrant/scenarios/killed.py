"""`metalform apply` is killed at random instants of a first apply: the next run converges, no file is ever half-written.

50 instants, or a sample of 15; METALFORM_SEED chooses them. The victim is the client, the SSH session on
the host, or the program that the session runs.
"""

import collections
import random
import time

from checks import Failed, check, expect, expect_equal
from cluster import shell
from engine import HOST as HOST_CODE
from engine import SSH, Tree, expect_failure
from processes import commands, send, sessions
from sampling import SEED, count
from whole_files import ABSENT, Watcher, version

HOST = "node-1"
TIMES = count(50, 15)
CLIENT, SESSION, PROGRAM = "the client", "the session on the host", "the program on the host"
OPERATOR, USERS = 1000, 100
_state = {}

BASE = "/etc/killed"
SERVICES = ["killed-one", "killed-two"]
# These packages are installed already: they must be found between changes.
PACKAGES = ["openssh-server", "sudo", "iproute2", "procps", "bash", "dash", "coreutils", "grep", "sed", "tar", "gzip", "systemd"]
HOSTILE = ["a name with blanks", "-rf", "it's \"quoted\"", "new\nline", "$(touch canary)", "ünï*code?"]


def _text(name, size):
    return "".join(f"{name} line {number}\n" for number in range(size))


def _unit(name):
    return f"[Unit]\nDescription={name}\n\n[Service]\nExecStart=/bin/sleep infinity\n\n[Install]\nWantedBy=multi-user.target\n"


def _workload():
    """The resources; and for each path what may be seen there: what was before first, what shall be last."""
    resources, paths = [], {}
    for number in range(4):
        resources.append({"directory": f"{BASE}/d{number}", "mode": "0750", "group": "users"})
    for number in range(30):
        path, mode = f"{BASE}/d{number % 4}/file-{number}", ["0644", "0600", "0640", "0755"][number % 4]
        owner = "operator" if number % 3 == 0 else "root"
        # From nothing to 350 KB, so that an instant falls into the middle of a payload too.
        content = _text(path, [0, 1, 50, 1000, 8000][number % 5])
        resources.append({"file": path, "content": content, "mode": mode, "owner": owner, "group": "users"})
        expected = version(content.encode(), OPERATOR if owner == "operator" else 0, USERS, int(mode, 8))
        paths[path] = (ABSENT, expected)
    for number in range(8):
        path = f"{BASE}/template-{number}"
        resources.append({"template": path, "source": "it.j2", "mode": "0640"})
        # Of these there is an older version: whole old or whole new.
        paths[path] = (version(b"old\n", OPERATOR, USERS, 0o604), version(b"rendered on node-1\n", mode=0o640))
    # A file of others: it keeps its owner and mode, and each line may come by itself.
    lines = [version(text, OPERATOR, USERS, 0o600) for text in (b"theirs\n", b"theirs\nours\n", b"theirs\nours\ntoo\n")]
    paths[f"{BASE}/lines"] = tuple(lines)
    for text in ("ours", "too"):
        resources.append({"line": f"Have {text}", "path": f"{BASE}/lines", "text": text})
    for name in HOSTILE:
        path = f"{BASE}/{name}"
        resources.append({"file": path, "content": name, "mode": "0604"})
        paths[path] = (ABSENT, version(name.encode(), mode=0o604))
    for number in range(4):
        resources.append({"symlink": f"{BASE}/link-{number}", "target": f"d{number}"})
        paths[f"{BASE}/link-{number}"] = ("elsewhere" if number % 2 else ABSENT, f"d{number}")
    resources += [{"package": name} for name in PACKAGES]
    for key in ("net.ipv4.conf.all.log_martians", "net.ipv4.conf.default.log_martians"):
        resources.append({"sysctl": key, "value": "1"})
        paths[f"/etc/sysctl.d/zz-metalform-{key}.conf"] = (ABSENT, version(f"{key} = 1\n".encode()))
    for name in SERVICES:
        resources.append({"unit": f"{name}.service", "content": _unit(name)})
        resources.append({"service": name, "restart_when_changed": [f"unit:{name}.service"]})
        paths[f"/etc/systemd/system/{name}.service"] = (ABSENT, version(_unit(name).encode()))
    return resources, paths


_RESET = """
systemctl disable --now $1 $2 2>/dev/null || :
rm -rf /etc/systemd/system/$1.service /etc/systemd/system/$2.service /etc/sysctl.d/zz-metalform-net.*.log_martians.conf "$3"
systemctl daemon-reload
sysctl -qw net.ipv4.conf.all.log_martians=0 net.ipv4.conf.default.log_martians=0
mkdir -p "$3"
for n in 0 1 2 3 4 5 6 7; do
    echo old > "$3/template-$n"; chown operator:users "$3/template-$n"; chmod 0604 "$3/template-$n"
done
echo theirs > "$3/lines"; chown operator:users "$3/lines"; chmod 0600 "$3/lines"
ln -s elsewhere "$3/link-1"; ln -s elsewhere "$3/link-3"
"""


def _reset():
    shell(HOST, _RESET, *SERVICES, BASE)


def set_up():
    resources, paths = _workload()
    _state.update(tree=Tree(HOST, resources, {"it.j2": "rendered on {{ node.name }}\n"}), paths=paths, ends=collections.Counter())
    durations = []
    for _ in range(3):
        _reset()
        began = time.monotonic()
        done = _state["tree"].run("apply")
        durations.append(time.monotonic() - began)
        expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    _state["whole"] = sorted(durations)[1]
    print(f"# {len(resources)} resources, instants within {_state['whole']:.2f} s", flush=True)


def tear_down():
    print(f"# ended by {dict(_state['ends'])}, every file was read {_state.get('looks', 0)} times", flush=True)
    shell(HOST, _RESET + 'rm -rf "$3"', *SERVICES, BASE)
    _state["tree"].remove()


@check("the watcher notices a file that is written in place")
def watcher_notices():
    path = f"{BASE}/template-0"
    _reset()
    with Watcher(HOST, {path: _state["paths"][path]}) as watcher:
        shell(HOST, 'printf new > "$1"; sleep 0.1; chmod 0666 "$1"', path)
    for what in ("was modified in place", "had its owner or mode changed in place", "was seen as"):
        expect(any(what in fault for fault in watcher.faults()), f"not noticed: {what}: {watcher.faults()}")


@check(f"{TIMES} times killed, {TIMES} times the next run converges, and every file was whole at every instant")
def killed():
    instants = random.Random(SEED)
    for kill in range(TIMES):
        victim = instants.choices([CLIENT, SESSION, PROGRAM], [3, 1, 1])[0]
        instant = instants.uniform(0, _state["whole"])
        try:
            _once(victim, instant)
        except Failed as failure:
            raise Failed(f"kill {kill}, of {victim} after {instant:.3f} s (seed {SEED}): {failure}") from None


def _once(victim, instant):
    _reset()
    with Watcher(HOST, _state["paths"]) as watcher:
        running = _state["tree"].start()
        # The instant itself is what is tested: there is no condition to wait for.
        time.sleep(instant)
        struck = victim if _strike(victim, running) else "nothing, for it had ended"
        _state["ends"][struck] += 1
        _expect_end(struck, running)
        _state["tree"].converge()
        final = {path: watcher.now(path) for path in _state["paths"]}
    _state["looks"] = _state.get("looks", 0) + watcher.looks()
    expect_equal("seen while it ran", watcher.faults(), [])
    wrong = [path for path, versions in _state["paths"].items() if final[path] != versions[-1]]
    expect_equal("paths with another version than the last", wrong, [])
    expect_equal("left behind", shell(HOST, 'find "$1" /etc/systemd/system /etc/sysctl.d -name ".metalform*"', BASE), "")
    expect_equal("canary", shell(HOST, "find / -xdev -name canary"), "")


def _strike(victim, running):
    """Whether there was something to kill."""
    if victim == CLIENT:
        running.kill()
        return True
    pids = [session for session, _ in sessions(HOST)] if victim == SESSION else commands(HOST)
    send(pids)
    return bool(pids)


def _expect_end(struck, running):
    """A client that survives prints one error line, unless it had finished."""
    out, err = running.communicate(timeout=60)
    running.stdout, running.stderr = out, err
    if struck == CLIENT or running.returncode == 0:
        return
    expect(struck != "nothing, for it had ended", f"exit {running.returncode}: {err}")
    expect_failure(running, SSH if struck == SESSION else HOST_CODE, HOST)
