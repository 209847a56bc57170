"""metalform is killed three times while it deploys a node; the same command, run again, succeeds."""

import base64
import re
import threading

from checks import Final, check, expect, expect_equal, until
from cluster import BOOTSTRAP, begin, forget, introduce, kubectl, metalform, on, ready, shell, succeed

NODE = "spare-1"
TOKENS = "--field-selector=type=bootstrap.kubernetes.io/token"

# When to strike: a command that succeeds on the new host once the moment has come.
MOMENTS = {
    "while dpkg unpacks": "pgrep -x dpkg",
    "when the kubelet has its token": "test -e /etc/kubernetes/bootstrap-kubelet.conf",
    "when the kubelet has its certificate": "test -e /etc/kubernetes/kubelet.conf",
}
_watchers = []


def set_up():
    introduce(NODE)
    for host in (BOOTSTRAP, NODE):
        _watchers.append(Watcher(host, _EVERY_ARGUMENT))
    _watchers.append(Watcher(BOOTSTRAP, _EVERY_TOKEN))


def tear_down():
    for watcher in _watchers:
        watcher.end()
    forget(NODE)


@check("killed {}", each=MOMENTS)
def killed(moment):
    running = begin(BOOTSTRAP, "sh", "-c", "echo $$; exec metalform deploy-node " + NODE)
    pid = running.stdout.readline().strip()
    lines = []
    threading.Thread(target=lambda: lines.extend(running.stdout), daemon=True).start()

    def come():
        if running.poll() is not None:
            raise Final(f"deploy-node ended with {running.returncode} before that:\n{''.join(lines)}")
        return on(NODE, "sh", "-c", MOMENTS[moment]).returncode == 0

    try:
        until(moment, 90, come)
    finally:
        on(BOOTSTRAP, "kill", "-9", pid)
        code = running.wait(timeout=10)
    expect(code in (-9, 137), f"exit {code}:\n{''.join(lines)}")


@check("the same command converges")
def converges():
    done = metalform("deploy-node", NODE)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)
    expect(ready(NODE), "not Ready")


@check("no package is half installed, none is left without its hold")
def packages_are_whole():
    expect_equal("dpkg --audit", succeed(NODE, "dpkg", "--audit"), "")


@check("and once more changes nothing")
def unchanged():
    done = metalform("deploy-node", NODE)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    expect(re.search(r"^Succeeded: .*\(changed=0\)", done.stdout, re.M), done.stdout)


@check("none of the tokens is left behind")
def no_token_left():
    expect_equal("tokens", kubectl("get", "secrets", "-A", TOKENS, "-o", "name"), "")
    expect(on(NODE, "test", "!", "-e", "/etc/kubernetes/bootstrap-kubelet.conf").returncode == 0, "it is on the host")


@check("no token was ever seen in an argument or in a journal")
def no_token_printed():
    for watcher in _watchers:
        watcher.end()
    *arguments, tokens = (watcher.seen() for watcher in _watchers)
    secrets = {base64.b64decode(word).decode() for word in tokens.split()}
    expect(secrets, "no token was seen in the API, so nothing was checked")
    seen = "\n".join(arguments)
    expect(not any(secret in seen for secret in secrets), "in an argument")
    for host in (BOOTSTRAP, NODE):
        script = "cat > /run/tokens; journalctl --no-pager --all -o cat | grep -cFf /run/tokens || true; rm /run/tokens"
        expect_equal(f"lines in the journal of {host}", shell(host, script, stdin="\n".join(secrets) + "\n").strip(), "0")


# Each prints as it goes, until it is ended; the pause is that of a sampler.
_EVERY_ARGUMENT = "while :; do cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | sort -u; sleep 0.2; done"
_EVERY_TOKEN = (
    f"exec kubectl --kubeconfig=/etc/kubernetes/admin.conf get secrets -n kube-system {TOKENS} --watch"
    " -o 'jsonpath={.data.token-secret}{\"\\n\"}'"
)


class Watcher:
    """Collects what a shell script prints in a host, each line once."""

    def __init__(self, host, script):
        self._lines = set()
        self._process = begin(host, "sh", "-c", script)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def end(self):
        self._process.terminate()
        self._process.wait(timeout=10)
        self._reader.join(timeout=10)

    def seen(self):
        return "\n".join(sorted(self._lines))

    def _read(self):
        for line in self._process.stdout:
            self._lines.add(line.rstrip("\n"))
