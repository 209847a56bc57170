"""An operator's Corefile stays, whatever `metalform bootstrap` would write; without an edit it is metalform's."""

import json

from checks import check, expect, expect_equal
from cluster import get, kubectl, metalform

EDIT = "# the operator's\n"
_MAP = ["configmap", "coredns", "--namespace=kube-system"]


def tear_down():
    kubectl("delete", *_MAP, "--ignore-not-found")
    _bootstrap()
    expect(EDIT not in _corefile(), "the edit is still there")


@check("an edited Corefile is left alone and reported, and the run succeeds without a change")
def kept():
    patch = json.dumps({"data": {"Corefile": EDIT + _corefile()}})
    kubectl("patch", *_MAP, "--type=merge", "--patch", patch)
    done = _bootstrap()
    expect(_corefile().startswith(EDIT), _corefile())
    expect("ConfigMap kube-system/coredns was edited by another client" in done.stderr, done.stderr)
    expect("(changed=0)" in done.stdout, done.stdout)


@check("once it is deleted, metalform's own is back")
def restored():
    kubectl("delete", *_MAP)
    done = _bootstrap()
    expect(EDIT not in _corefile(), _corefile())
    expect("was edited" not in done.stderr, done.stderr)


def _corefile():
    return get(*_MAP)["data"]["Corefile"]


def _bootstrap():
    done = metalform("bootstrap")
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)
    return done
