"""An image for pods that show what a pod sees, and write through the API: `echo/`, compiled, packed and carried to each host.

The bundle's images hold one program each, and none of them can look up a name
or fetch a page. (Debian's static busybox could, but its wget crashes where
there is no libc beside it.) This one enters by the back door (`ctr images
import`) and leaves the same way; the cluster's registry, and what hosts may
reach, stay as they are.
"""

import hashlib
import io
import json
import os
import subprocess
import tarfile
import tempfile

from checks import Failed
from cluster import LAB, succeed

REFERENCE = "lab.invalid/echo:1"
_SOURCES = [os.path.join(os.path.dirname(os.path.realpath(__file__)), "echo", name) for name in ("main.go", "append.go")]
_CTR = ["ctr", "--namespace", "k8s.io", "images"]


def load(hosts):
    """Import the image into the hosts' containerd."""
    image = pack(program())
    for host in hosts:
        command = [LAB, "exec", host, "--", *_CTR, "import", "-"]
        done = subprocess.run(command, input=image, capture_output=True, check=False, timeout=60)
        if done.returncode != 0:
            raise Failed(f"{host}: ctr images import: {done.stderr.decode(errors='replace').strip()}")


def unload(hosts):
    for host in hosts:
        succeed(host, *_CTR, "remove", REFERENCE)


def write(host, path, image):
    """The archive as a file of the host."""
    command = [LAB, "exec", host, "--", "sh", "-euc", 'cat > "$1"', "sh", path]
    done = subprocess.run(command, input=image, capture_output=True, check=False, timeout=60)
    if done.returncode != 0:
        raise Failed(f"{host}: {path}: {done.stderr.decode(errors='replace').strip()}")


def program():
    """The program itself, for a machine that is no host."""
    with tempfile.TemporaryDirectory() as scratch:
        built = os.path.join(scratch, "echo")
        command = ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", built, *_SOURCES]
        environment = {**os.environ, "CGO_ENABLED": "0", "PATH": f"{os.environ['PATH']}:/usr/local/go/bin"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
        if done.returncode != 0:
            raise Failed(f"{' '.join(command)}: {done.stderr.strip()}")
        with open(built, "rb") as file:
            return file.read()


def pack(program):
    """An OCI layout with one image, as a tar archive."""
    layer = _tar({"echo": program}, mode=0o755)
    blobs = {}

    def blob(data):
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"digest": f"sha256:{digest}", "size": len(data)}

    def document(content):
        return json.dumps(content).encode()

    kinds = "application/vnd.oci.image"
    layer_blob = blob(layer)
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    config = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Entrypoint": ["/echo"]},
        "rootfs": {"type": "layers", "diff_ids": [layer_blob["digest"]]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{kinds}.manifest.v1+json",
        "config": {"mediaType": f"{kinds}.config.v1+json", **blob(document(config))},
        "layers": [{"mediaType": f"{kinds}.layer.v1.tar", **layer_blob}],
    }
    index = {
        "schemaVersion": 2,
        "manifests": [
            {
                "mediaType": manifest["mediaType"],
                **blob(document(manifest)),
                "annotations": {"io.containerd.image.name": REFERENCE},
            }
        ],
    }
    layout = {"imageLayoutVersion": "1.0.0"}
    return _tar({"oci-layout": document(layout), "index.json": document(index), **blobs}, mode=0o644)


def _tar(files, mode):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()
