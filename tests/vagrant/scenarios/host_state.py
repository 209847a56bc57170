"""What a lab host is, read by tools that know nothing of metalform: the files of its whole tree, units, mounts, interfaces,
addresses, routes, packet filter rules, kernel parameters, users and packages."""

import re
import subprocess

import file_tree
from checks import Failed, expect
from cluster import shell
from nspawn import host as machine

# Records of apt and dpkg, dnf and rpm, and their copies of older records; caches, also of what is next to compile: packages
# are compared by what dpkg or rpm reports.
_BOOKKEEPING = re.compile(
    r"/var/lib/(apt|dnf|dpkg|rpm|ucf)(/.*)?|/var/cache(/.*)?|/etc/(passwd|group|shadow|gshadow|subuid|subgid)-|/etc/\.pwd\.lock"
    r"|/etc/ld\.so\.cache|/root/\.(wget-hsts|cache.*)|/etc/apt/trusted\.gpg~|(/var)?/tmp/systemd-private-.*"
)
# What the kernel counts or draws by itself.
_COUNTED = re.compile(
    r"fs\.(dentry-state|file-nr|inode-nr|inode-state|quota\..*|aio-nr)|kernel\.(random\..*|ns_last_pid|pty\.nr|perf_.*)"
    r"|net\.netfilter\.nf_conntrack_count|net\.ipv[46]\.(route|neigh)\..*\.(gc_|.*reachable).*|kernel\.sched_domain.*"
    r"|net\.ipv6\.conf\..*\.stable_secret|kernel\.hostname|fs\.epoll.*|kernel\.tainted|dev\.cdrom.*|fs\.nfs.*|sunrpc.*"
)
# Of what is gone at the next boot, that which services of a node have, and what anyone may have.
_VOLATILE = [*(f"/run/{name}" for name in ("metalform", "containerd", "haproxy", "bird", "netns", "flannel", "cni")), "/tmp", "/var/tmp"]
_LISTS = {
    "unit": "systemctl list-unit-files --no-legend --no-pager",
    "running": "systemctl list-units --no-legend --no-pager --plain --state=active,failed"
    " --type=service,socket,timer,mount | awk '{print $1, $3, $4}'",
    "mount": "awk '{print $2, $3}' /proc/mounts",
    "link": "ip -o link | sed 's/^[0-9]*: //; s/qlen.*//' | awk '{print $1}'",
    "address": "ip -o address | awk '{print $2, $4}'",
    "route": "ip route show table all; ip -6 route show table all | sed 's/ expires [0-9]*sec//'",
    "rule": "ip rule",
    "user": "cat /etc/passwd /etc/group /etc/subuid /etc/subgid",
    "package": "if command -v dpkg >/dev/null; then dpkg --get-selections; dpkg -l | awk '{print $1, $2, $3}';"
    " apt-mark showmanual | sed 's/^/manual /'; else rpm -qa; fi",
}


def host_state(host):
    """(kind, name) → what it is."""
    state = {("file", path): what for path, what in _tree(host).items() if not _BOOKKEEPING.fullmatch(path)}
    for kind, script in _LISTS.items():
        for line in shell(host, script).splitlines():
            # A session is that of whoever asks.
            if not re.search(r"session-|user-runtime-dir|user@|/run/user/|apt-daily|man-db|systemd-tmpfiles-clean", line):
                state[kind, " ".join(line.split())] = ""
    for line in shell(host, "sysctl -a 2>/dev/null || true").splitlines():
        key, _, value = line.partition(" = ")
        if not _COUNTED.fullmatch(key):
            state["sysctl", key] = value
    for line in _rules(host):
        state["nft", line] = ""
    return state


def expect_same(host, before):
    """Fails with one line for each difference."""
    now = host_state(host)
    lines = []
    for key in sorted(before.keys() | now.keys()):
        old, new = before.get(key), now.get(key)
        if old != new:
            lines.append(f"{' '.join(key)}: {_shown(old)} -> {_shown(new)}")
    expect(not lines, f"{host}: {len(lines)} differences:\n" + "\n".join(lines[:60]))


def _shown(value):
    return "absent" if value is None else value or "there"


def _tree(host):
    """Without times: a file that is written again as it was is as it was."""
    without_time = {}
    for path, what in {**file_tree.snapshot(host), **file_tree.snapshot(host, *_VOLATILE)}.items():
        kind, mode, owner, _, *rest = what.split(" ")
        without_time[path] = " ".join([kind, mode, owner, *rest])
    return without_time


def nft(host, *words):
    """By the nft of this machine: the host has none before, and none after."""
    command = ["nsenter", f"--net=/proc/{machine.running_init(host)}/ns/net", "nft", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    if done.returncode != 0:
        raise Failed(f"{host}: nft: {done.stderr.strip()}")
    return done.stdout


def _rules(host):
    return [line.strip() for line in nft(host, "--stateless", "list", "ruleset").splitlines() if line.strip()]
