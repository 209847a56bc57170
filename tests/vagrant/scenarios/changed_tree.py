"""States and templates of this checkout with a change, on the bootstrap node: what `--tree` takes."""

import os
import shutil
import subprocess
import tempfile

from checks import expect_equal
from cluster import BOOTSTRAP, LAB, LAB_DIRECTORY


def push_tree(target, template, old, new):
    """Replaces one text in one template; the whole tree is then at `target`."""
    top = os.path.dirname(os.path.dirname(LAB_DIRECTORY))
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("states", "templates"):
            shutil.copytree(os.path.join(top, name), os.path.join(scratch, name))
        path = os.path.join(scratch, "templates", template)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        expect_equal(f"{old} in {template}", text.count(old), 1)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new))
        archive = subprocess.run(["tar", "-C", scratch, "-cf", "-", "."], capture_output=True, check=True).stdout
    script = 'rm -rf "$1" && mkdir -p "$1" && tar --no-same-owner -C "$1" -xf -'
    unpack = [LAB, "exec", BOOTSTRAP, "--", "sh", "-euc", script, "sh", target]
    subprocess.run(unpack, input=archive, capture_output=True, check=True, timeout=60)
