"""A bundle has one release of Debian; a host of another is refused, until `bundle add` has brought that to the bundle."""

import os
import subprocess
import tempfile

from checks import Failed, check, expect, expect_equal
from cluster import (
    BOOTSTRAP,
    CACHE,
    LAB_DIRECTORY,
    apply,
    authorise,
    fingerprint,
    kubectl,
    lab,
    manifest,
    metalform,
    on,
    ready,
    shell,
    succeed,
)
from engine import HOST, METALFORM
from hand_over import copy_directory, hand_over
from reports import expect_unchanged

WORKER, KNOWN, LEARNT = "node-2", "debian-13", "debian-12"
_BUNDLE = "/srv/metalform/bundle"
_SOURCE = os.path.join(CACHE, "demo", f"bundle-{KNOWN}")
_TOP = os.path.dirname(os.path.dirname(LAB_DIRECTORY))

def set_up():
    if on(BOOTSTRAP, "test", "-e", "/etc/kubernetes/admin.conf").returncode == 0:
        raise Failed(f"{BOOTSTRAP} is the first node of a cluster: run lab down first")
    for host in (BOOTSTRAP, WORKER):
        lab("renew", host)
    hand_over(BOOTSTRAP)
    _built("build", "-o", _SOURCE)
    _built("remove", _SOURCE, LEARNT)
    _bring()


def tear_down():
    for host in (BOOTSTRAP, WORKER):
        lab("renew", host)


@check("the first node is made from it, with the packages of its release alone")
def first_node():
    lines = succeed(BOOTSTRAP, "metalform", "bundle", "verify", _BUNDLE)
    expect(LEARNT not in succeed(BOOTSTRAP, "cat", f"{_BUNDLE}/bundle.yaml"), f"{lines}")
    _done(metalform("bootstrap", timeout=600))


@check("a host of the other release is refused with the reason, and nothing is changed on it")
def refused():
    authorise(WORKER, "operator")
    apply(manifest(WORKER))
    _done(metalform("node", "check", WORKER, "--accept-host-key", fingerprint(WORKER)))
    done = metalform("deploy-node", WORKER)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, HOST)
    expect("operating system debian 12 is not in the bundle" in done.stderr, done.stderr)
    expect(on(WORKER, "test", "-e", "/etc/metalform").returncode != 0, "something was written")


@check("bundle add brings the release, and nothing else of the bundle changes")
def learnt():
    with open(os.path.join(_TOP, "src", "bundle", "components.yaml"), encoding="utf-8") as file:
        text = file.read()
    # Without the components, which the bundle has.
    systems = text[: text.index("\ncomponents:")]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as list_file:
        list_file.write(systems + "\ncomponents: []\n")
        list_file.flush()
        before = _digests()
        _built("add", _SOURCE, "-f", list_file.name)
    after = _digests()
    changed = [path for path in before if after.get(path) != before[path] and not _is_index(path)]
    expect_equal("changed files", changed, [])
    new = [path for path in after if path not in before and not _is_index(path)]
    expect(new and all(f"/{LEARNT}" in path for path in new), f"{new}")
    _bring()
    _done(metalform("bootstrap", timeout=300))


@check("the host is deployed, and runs a pod")
def deployed():
    _done(metalform("deploy-node", WORKER, timeout=300))
    ready(WORKER)
    expect_equal("release", succeed(WORKER, "sh", "-c", ". /etc/os-release; echo $ID-$VERSION_ID").strip(), LEARNT)
    images = succeed(BOOTSTRAP, "metalform", "bundle", "list", "-o", "name", _BUNDLE).split()
    pause = next(name for name in images if "/pause:" in name)
    pod = {"containers": [{"name": "pause", "image": pause}], "nodeName": WORKER}
    apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "learnt", "namespace": "default"}, "spec": pod})
    kubectl("wait", "--for=condition=Ready", "pod/learnt", "--timeout=60s", timeout=90)


@check("and nothing is left to change")
def no_change():
    expect_unchanged(metalform("expand", "-o", "json"))


def _built(*words):
    done = subprocess.run([METALFORM, "bundle", *words], capture_output=True, text=True, check=False, timeout=1_800)
    expect_equal(f"exit code of bundle {words[0]}\n{done.stderr}", done.returncode, 0)


def _bring():
    """What an operator carries to the bootstrap host, in place of what it had."""
    shell(BOOTSTRAP, 'rm -rf "$1"', _BUNDLE)
    copy_directory(_SOURCE, BOOTSTRAP, _BUNDLE)


def _digests():
    """Path → digest of every file of the bundle."""
    script = "find . -type f -exec sha256sum {} +"
    done = subprocess.run(["sh", "-c", script], cwd=_SOURCE, capture_output=True, text=True, check=True)
    return {path: digest for digest, path in (line.split("  ", 1) for line in done.stdout.splitlines())}


def _is_index(path):
    """What describes the bundle and its repositories."""
    return path.startswith("./apt/dists/") or path in ("./bundle.yaml", "./components.yaml", "./sbom.cdx.json")


def _done(done):
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)
