"""Images of users: added, pushed with a token, run on a node that has never had them; those of bundles are refused."""

import json
import re
import subprocess
import tempfile

import echo_image
from checks import State, check, expect, expect_equal, until
from cluster import BOOTSTRAP, LAB, address, apply, get, kubectl, metalform, on, shell, succeed
from refusal import expect_refusal

NODE = "node-1"
NAMESPACE = "scenario-user-images"
ADDED, PUSHED = "registry.example.org/team/echo:added", "registry.example.org/team/echo:pushed"
ARCHIVE = "/var/tmp/scenario-echo.tar"
SERVER = f"{address(BOOTSTRAP)}:8445"
# Service accounts: one that may push, and one that may not.
PUSHER, OTHER = "scenario-pusher", "scenario-other"
STATE = State()


def set_up():
    # Not the very image of other scenarios: the kubelet knows images by what is in them, and this one is removed by its name.
    image = echo_image.pack(echo_image.program() + b"user images")
    echo_image.write(BOOTSTRAP, ARCHIVE, image)
    STATE["image"] = image
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "metalform:image-push"}
    apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        *(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}}
            for name in (PUSHER, OTHER)
        ),
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": PUSHER},
            "roleRef": role,
            "subjects": [{"kind": "ServiceAccount", "name": PUSHER, "namespace": NAMESPACE}],
        },
    )


def tear_down():
    kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", timeout=120)
    kubectl("delete", "clusterrolebinding", PUSHER, "--ignore-not-found")
    for image in (ADDED, PUSHED):
        on(NODE, "ctr", "--namespace", "k8s.io", "images", "remove", image)
    on(BOOTSTRAP, "metalform", "image", "remove", ADDED)
    on(BOOTSTRAP, "metalform", "image", "remove", PUSHED)
    succeed(BOOTSTRAP, "rm", "-f", ARCHIVE)


@check("an archive is added on the bootstrap node, and the second time nothing changes")
def added():
    for outcome in ("added", "unchanged"):
        done = metalform("image", "add", ARCHIVE, "--as", ADDED)
        expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
        expect(done.stdout.startswith(f"image {ADDED} {outcome} (sha256:"), done.stdout)
    images = {one["image"]: one for one in json.loads(metalform("image", "list", "-o", "json").stdout)}
    expect(ADDED in images and "bundle" not in images[ADDED], f"{images.get(ADDED)}")
    expect(any("bundle" in one for one in images.values()), f"{sorted(images)}")


@check("a pod with it runs on a node that has never had it")
def runs():
    _run("added", ADDED)


@check("an image of a bundle is neither replaced nor removed")
def of_bundle():
    listed = json.loads(metalform("image", "list", "-o", "json").stdout)
    pause = next(one for one in listed if "/pause:" in one["image"])
    expect_refusal(metalform("image", "add", ARCHIVE, "--as", pause["image"]), 7, "bundle of Kubernetes")
    expect_refusal(metalform("image", "remove", pause["image"]), 7, "bundle of Kubernetes")
    expect(pause in json.loads(metalform("image", "list", "-o", "json").stdout), f"{pause} has changed")


@check("a token with the right pushes an image, one without it and none do not, and no image of a bundle is pushed")
def pushed():
    _expect_refused("unauthorized|token", _push(None, PUSHED))
    _expect_refused("denied|put path|403|Forbidden", _push(_token(OTHER), PUSHED))
    pause = next(one["image"] for one in json.loads(metalform("image", "list", "-o", "json").stdout) if "/pause:" in one["image"])
    _expect_refused("denied|bundle|403|Forbidden", _push(_token(PUSHER), pause))
    expect_equal("errors of a push", _push(_token(PUSHER), PUSHED), "")


@check("a pod with the pushed image runs")
def runs_pushed():
    _run("pushed", PUSHED)


@check("an image that is removed is gone, with its blobs, and the registry serves all others")
def removed():
    for image in (ADDED, PUSHED):
        done = metalform("image", "remove", image)
        expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    repositories = "/var/lib/metalform/registry/docker/registry/v2"
    shell(BOOTSTRAP, '! test -e "$1/repositories/registry.example.org/team/echo/_manifests/tags/added"', repositories)
    # Of no image any more.
    blobs = shell(BOOTSTRAP, 'find "$1/blobs" -name data -newer "$2" | wc -l', repositories, ARCHIVE).strip()
    expect_equal("blobs of the image on the disk", blobs, "0")
    expect_refusal(metalform("image", "remove", ADDED), 1, "not in the registry")
    pull = 'ctr -n scenario images pull --hosts-dir /etc/containerd/certs.d "$1" && ctr -n scenario images rm --sync "$1"'
    image = shell(NODE, "sed -n \"s/^ *sandbox = '\\(.*\\)'/\\1/p\" /etc/containerd/config.toml").strip()
    shell(NODE, pull, image, timeout=120)


def _expect_refused(pattern, printed):
    expect(re.search(pattern, printed), f"not refused for {pattern!r}: {printed or 'it was pushed'}")


def _token(account):
    return kubectl("create", "token", account, "-n", NAMESPACE).strip()


def _push(token, image):
    """Pushes the archive with skopeo, from the operator's network namespace; what it prints when it fails."""
    with tempfile.TemporaryDirectory() as scratch:
        with open(f"{scratch}/echo.tar", "wb") as file:
            file.write(STATE["image"])
        with open(f"{scratch}/ca.crt", "w", encoding="utf-8") as file:
            file.write(succeed(BOOTSTRAP, "cat", "/etc/kubernetes/pki/ca.crt"))
        credentials = "--dest-no-creds" if token is None else f"--dest-creds=token:{token}"
        command = ["skopeo", "--insecure-policy", "copy", f"--dest-cert-dir={scratch}", credentials]
        command += [f"oci-archive:{scratch}/echo.tar", f"docker://{SERVER}/{image}"]
        done = subprocess.run([LAB, "run", "--", *command], capture_output=True, text=True, check=False, timeout=60)
    return "" if done.returncode == 0 else done.stderr


def _run(name, image):
    container = {"name": "echo", "image": image, "args": ["serve", NODE]}
    apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"nodeName": NODE, "terminationGracePeriodSeconds": 0, "containers": [container]},
        }
    )
    until(f"the pod of {image} runs", 60, lambda: get("pod", name, "-n", NAMESPACE)["status"].get("phase") == "Running")
