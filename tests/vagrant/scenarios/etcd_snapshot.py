"""A snapshot of etcd is whole, private, and never written over another file; etcd gives its free space back."""

import json

from checks import check, expect, expect_equal
from cluster import BOOTSTRAP, metalform, shell, succeed

SUCCESS, CONFIGURATION, ETCD = 0, 1, 5
FILE = "/root/scenario-snapshots/etcd.db"
HASH = 32


def set_up():
    _clear()


def tear_down():
    _clear()


@check("it is of a voter, with mode 0600, and has the hash that the member computed")
def saved():
    done = _snapshot(SUCCESS, FILE)
    expect(f"{FILE}: " in done.stdout and "revision " in done.stdout, done.stdout)
    expect_equal("mode", succeed(BOOTSTRAP, "stat", "-c", "%a %U", FILE).strip(), "600 root")
    size = int(succeed(BOOTSTRAP, "stat", "-c", "%s", FILE))
    own = shell(BOOTSTRAP, 'head -c "$2" "$1" | sha256sum | cut -c1-64', FILE, str(size - HASH)).strip()
    sent = shell(BOOTSTRAP, 'tail -c "$2" "$1" | od -An -v -tx1 | tr -d " \\n"', FILE, str(HASH)).strip()
    expect_equal("SHA-256", own, sent)


@check("a file that exists is not written over")
def kept():
    before = _digest()
    done = _snapshot(CONFIGURATION, FILE)
    expect(FILE in done.stderr, done.stderr)
    expect_equal("the file", _digest(), before)


@check("an endpoint is taken as it is; where none answers, nothing is left")
def endpoint():
    _snapshot(SUCCESS, f"{FILE}.local", "--endpoint", "https://127.0.0.1:2379")
    done = _snapshot(ETCD, f"{FILE}.none", "--endpoint", "https://127.0.0.1:2399")
    expect("127.0.0.1:2399" in done.stderr, done.stderr)
    left = shell(BOOTSTRAP, 'ls -A "$(dirname "$1")"', FILE).split()
    expect_equal("files", left, ["etcd.db", "etcd.db.local"])


@check("etcd defragment does all voters, the leader last, and leaves every one healthy")
def defragmented():
    done = metalform("etcd", "defragment")
    expect_equal(f"exit code\n{done.stderr}", done.returncode, SUCCESS)
    members = json.loads(metalform("etcd", "members", "-o", "json").stdout)
    voters = sorted(member["name"] for member in members if member["status"] == "voter")
    sizes = [line.split(":")[0] for line in done.stdout.splitlines() if " -> " in line]
    expect_equal("defragmented", sorted(sizes), voters)
    if len(voters) > 1:
        moved = [line.split()[0] for line in done.stdout.splitlines() if line.endswith(" leads")]
        expect_equal("followers before the leader", len(moved), 1)
        expect(moved[0] != sizes[-1], done.stdout)
    expect_equal("etcd health", metalform("etcd", "health").returncode, SUCCESS)


def _snapshot(code, *arguments):
    done = metalform("etcd", "snapshot", *arguments)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, code)
    return done


def _digest():
    return succeed(BOOTSTRAP, "sha256sum", FILE)


def _clear():
    shell(BOOTSTRAP, 'rm -rf "$(dirname "$1")"', FILE)
