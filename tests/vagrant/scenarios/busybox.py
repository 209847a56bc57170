"""A shell, wget and httpd for pods: Debian's static busybox, packed as an image and carried to each host.

The images of the bundle hold one program each, so none of them can show what a
pod sees. This one enters by the back door (`ctr images import`) and leaves the
same way; the cluster's registry, and what hosts may reach, stay as they are.
"""

import hashlib
import io
import json
import os
import subprocess
import tarfile
import tempfile

from checks import Failed
from cluster import CACHE, LAB, succeed

REFERENCE = "lab.invalid/busybox:1"
_PLACE = os.path.join(CACHE, "demo", "busybox")
_LINKS = ["cat", "echo", "hostname", "httpd", "nslookup", "sh", "sleep", "wget"]
_CTR = ["ctr", "--namespace", "k8s.io", "images"]


def load(hosts):
    """Import the image into the hosts' containerd."""
    image = _image()
    for host in hosts:
        with open(image, "rb") as file:
            command = [LAB, "exec", host, "--", *_CTR, "import", "-"]
            done = subprocess.run(command, stdin=file, capture_output=True, text=True, check=False, timeout=60)
        if done.returncode != 0:
            raise Failed(f"{host}: ctr images import: {done.stderr.strip()}")


def unload(hosts):
    for host in hosts:
        succeed(host, *_CTR, "remove", REFERENCE)


def _image():
    path = os.path.join(_PLACE, "image.tar")
    if not os.path.exists(path):
        os.makedirs(_PLACE, exist_ok=True)
        whole = f"{path}.new"
        with open(whole, "wb") as file:
            file.write(_pack(_program()))
        os.replace(whole, path)
    return path


def _program():
    """busybox itself, out of the distribution's package; nothing is installed on this machine."""
    with tempfile.TemporaryDirectory() as scratch:
        for command in (["apt-get", "download", "-qq", "busybox-static"], ["sh", "-c", "dpkg-deb -x *.deb ."]):
            done = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False, timeout=120)
            if done.returncode != 0:
                raise Failed(f"{' '.join(command)}: {done.stderr.strip()}")
        paths = [os.path.join(scratch, directory, "busybox") for directory in ("bin", "usr/bin")]
        with open(next(filter(os.path.exists, paths)), "rb") as file:
            return file.read()


def _pack(program):
    """An OCI layout with one image, as a tar archive."""
    layer = _tar({"bin/busybox": program}, {f"bin/{link}": "busybox" for link in _LINKS}, mode=0o755)
    blobs = {}

    def blob(data):
        digest = hashlib.sha256(data).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = data
        return {"digest": f"sha256:{digest}", "size": len(data)}

    def document(content):
        return json.dumps(content).encode()

    kinds = "application/vnd.oci.image"
    layer_blob = blob(layer)
    architecture = subprocess.run(
        ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
    ).stdout.strip()
    config = {
        "architecture": architecture,
        "os": "linux",
        "config": {"Env": ["PATH=/bin"]},
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
    return _tar({"oci-layout": document(layout), "index.json": document(index), **blobs}, {}, mode=0o644)


def _tar(files, links, mode):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))
        for name, target in links.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return buffer.getvalue()
