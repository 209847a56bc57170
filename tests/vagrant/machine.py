#!/usr/bin/python3
"""What a lab must not change on this machine, and must not leave behind.

The machine does other work meanwhile, so only its mounts, links, routes and kernel settings are
observed, and whatever has the lab's prefix.

    machine.py record FILE       write an observation of the machine to FILE
    machine.py compare FILE      exit 1 if the machine differs from it, and print how
"""

import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
sys.dont_write_bytecode = True

from nspawn import kernel  # noqa: E402  (needs the path set above)


def observe(prefix):
    """Lines by what they are about; two observations are equal if nothing changed.

    Things of this lab, and of those beside it that `scenarios/run --labs` makes: their prefix has a number after it.
    """
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mounts = [line.split(" - ")[0].split()[4] + " " + line.split(" - ")[1].strip() for line in file]
    cgroups = subprocess.run(
        ["find", "/sys/fs/cgroup", "-regex", f".*/{prefix}[0-9]*-[^/]*"], capture_output=True, text=True, check=False
    ).stdout.split()
    return {
        "the machine's own mounts": sorted(m for m in mounts if re.match(r"/( |sys|proc|dev)", m)),
        "mounts of the lab": sorted(m for m in mounts if prefix in m or "/run/metalform-lab" in m),
        "network namespaces": sorted(n for n in _entries("/run/netns") if re.match(rf"{prefix}\d*-", n)),
        "the machine's links": _ip_words("link", 2),
        "the machine's routes": _ip_words("route", None),
        "the kernel's settings": [f"{name} {value}" for name, value in kernel.settings().items()],
        "cgroups": sorted(cgroups),
        "processes": processes(prefix),
        "run directory": [e for e in _entries("/run/metalform-lab") if re.fullmatch(rf"{prefix}\d*", e)],
        "nspawn's bookkeeping": [e for e in _entries("/run/systemd/nspawn/propagate") if re.match(rf"{prefix}\d*-", e)],
    }


def differences(before, after):
    """What is gone and what is new, for each subject that differs or not: `subject, gone, new`."""
    for what, lines in before.items():
        yield what, sorted(set(lines) - set(after[what])), sorted(set(after[what]) - set(lines))


def processes(prefix):
    """Everything that runs in the lab's hosts, or is about to start one."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cgroup", encoding="ascii") as file:
                in_cgroup = re.search(rf"/{prefix}\d*-", file.read())
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                command = file.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if not command:
            continue  # dead, and waiting only for the machine's init to notice
        if in_cgroup or (re.search(rf"\b{prefix}\d*-", command) and "nspawn" in command):
            found.append(f"{pid} {command[:80]}")
    return found


def _entries(directory):
    return os.listdir(directory) if os.path.isdir(directory) else []


def _ip_words(what, field):
    lines = subprocess.run(["ip", "-o", what, "show"], capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(line.split()[field - 1] if field else line.strip() for line in lines)


def main(words):
    if len(words) != 2 or words[0] not in ("record", "compare"):
        sys.exit(__doc__)
    now = observe(os.environ.get("METALFORM_LAB", "mfl"))
    if words[0] == "record":
        with open(words[1], "w", encoding="utf-8") as file:
            json.dump(now, file, indent=1)
        return 0
    with open(words[1], encoding="utf-8") as file:
        before = json.load(file)
    code = 0
    for what, gone, new in differences(before, now):
        same = not gone and not new
        print(f"{'ok' if same else 'not ok'} {what} as before" + ("" if same else f": gone {gone}, new {new}"))
        code = code if same else 1
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
