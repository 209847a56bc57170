"""`metalform deploy-node --dry-run` of a worker changes nothing: on the host, on the bootstrap node, in the API and in etcd."""

from checks import State, check, expect, expect_equal
from cluster import BOOTSTRAP, forget, introduce, metalform, ready
from file_tree import Identical, snapshot, written
from refusal import cluster
from reports import Report

NODE = "spare-1"
# Where metalform could write on the bootstrap node, which is at work meanwhile.
PLACES = ["/etc", "/root", "/srv", "/usr/local", "/var/lib/metalform"]
_state = State()


def set_up():
    introduce(NODE)


def tear_down():
    forget(NODE)


@check("deploy-node --dry-run exits with 2 and changes nothing")
def changes_nothing():
    _state["text"] = _planned(2, "--detailed-exitcode").stdout


@check("with -o json too, and that is one document")
def json_changes_nothing():
    _state["report"] = Report(_planned(0, "-o", "json").stdout)
    expect_equal("hosts", list(_state["report"].hosts), [NODE])


@check("the diffs show every file of the list")
def shows_every_file():
    files = _state["report"].files()
    expect(len(files) >= 20, f"only {len(files)} files: {sorted(files)}")
    for path in ("/var/lib/kubelet/config.yaml", "/etc/haproxy/haproxy.cfg", "/etc/containerd/config.toml"):
        expect(path in files, f"{path} is not among {sorted(files)}")
    missing = sorted(path for path in files if path not in _state["text"])
    expect(not missing, f"not in the text: {missing}")


@check("the real run then writes every file of the list")
def real_run():
    before = snapshot(NODE)
    done = metalform("deploy-node", NODE)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)
    expect(ready(NODE), "not Ready")
    after = snapshot(NODE)
    # The join token's file is written and removed within the run; what is to be absent is absent.
    listed = {path for path in _state["report"].files() if path in after and not after[path].startswith("d ")}
    missing = sorted(listed - written(before, after))
    expect(not missing, f"{len(missing)} were listed and not written: {missing[:40]}")


@check("after it, a dry run has nothing to change")
def nothing_left():
    done = metalform("deploy-node", NODE, "--dry-run", "--detailed-exitcode")
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)


def _planned(code, *options):
    before = cluster()
    with Identical(NODE), Identical(BOOTSTRAP, places=PLACES):
        done = metalform("deploy-node", NODE, "--dry-run", *options)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, code)
    after = cluster()
    expect_equal("what the cluster has more, and less", (after - before, before - after), (set(), set()))
    return done
