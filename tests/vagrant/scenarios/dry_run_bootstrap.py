"""`metalform bootstrap --dry-run` on a bare host shows every file as a diff and writes none; the real run writes exactly those."""

import re

from checks import Failed, State, check, expect, expect_equal
from cluster import BOOTSTRAP, lab, on, shell
from file_tree import VOLATILE, Identical, snapshot, written
from hand_over import hand_over
from reports import Report, expect_complete

HOST = BOOTSTRAP
_state = State()

# State of programs that metalform starts or runs: they write it themselves.
PROGRAMS = [
    # dpkg, apt, debconf, ucf and ldconfig.
    r"/var/lib/(dpkg|apt|ucf)/.*|/var/cache/(apt|debconf|ldconfig)/.*|/etc/ld\.so\.cache",
    # Maintainer scripts of packages: accounts, alternatives, links of units and init scripts, two files of libraries.
    r"/etc/(passwd|group|shadow|gshadow|subuid|subgid)-?|/etc/\.pwd\.lock",
    r"/etc/alternatives/.*|/usr/sbin/(arp|eb|ip|ip6)tables(-restore|-save)?",
    r"/etc/systemd/system/[^/]+\.(wants|requires)/.*|/etc/rc[0-6S]\.d/.*",
    r"/etc/inputrc|/etc/networks",
    # Data of etcd, containerd and its network plugins, the kubelet (certificates, pods, checkpoints), haproxy, the registry.
    r"/var/lib/(etcd|containerd|cni|haproxy)/.*",
    r"/var/lib/kubelet/(?!config\.yaml$).*",
    r"/var/lib/metalform/registry/.*",
    # Records: of the operation, named by the time at which it ran; of the Nodes as the API server has them; of the images
    # that bundles have brought.
    r"/var/lib/metalform/(operations/.*|nodes\.json|bundle-images\.json)",
    # The kubelet's kubeconfig, which it writes itself once its certificate is issued.
    r"/etc/kubernetes/kubelet\.conf",
]
# The token of the kubelet is written, used, and removed in the same run; the dry run lists the two changes.
REMOVED_AGAIN = {"/etc/kubernetes/bootstrap-kubelet.conf"}


def set_up():
    if on(HOST, "test", "-e", "/etc/kubernetes/admin.conf").returncode == 0:
        raise Failed(f"{HOST} is the first node of a cluster: run lab down, or lab renew {HOST}, first")
    lab("renew", HOST)
    hand_over(HOST)


def tear_down():
    lab("renew", HOST)


@check("bootstrap --dry-run exits with 2 and leaves every file of the host as it was")
def writes_nothing():
    with Identical(HOST):
        done = on(HOST, "metalform", "bootstrap", "--dry-run", "--detailed-exitcode", timeout=120)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 2)
    _state["text"] = done.stdout


@check("with -o json too, and that is one document")
def json_writes_nothing():
    with Identical(HOST):
        done = on(HOST, "metalform", "bootstrap", "--dry-run", "-o", "json", timeout=120)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    _state["report"] = Report(done.stdout)
    expect_equal("hosts", list(_state["report"].hosts), [HOST])


@check("no unit was started, and no package was installed")
def starts_nothing():
    units = shell(HOST, "systemctl list-units --all --plain --no-legend 'kubelet*' 'containerd*' 'metalform*' 'haproxy*'")
    expect_equal("units", units, "")
    expect(on(HOST, "dpkg-query", "-W", "kubelet").returncode != 0, "the kubelet is installed")


@check("every phase is foreseen: none ends with something that is unknown")
def foresees_every_phase():
    unknown = [line.strip() for line in _state["text"].splitlines() if re.search("not foreseen|blocked", line)]
    expect(not unknown, "\n".join(unknown))


@check("the diffs show every file of the list, except the contents of secrets")
def shows_every_file():
    files = _state["report"].files()
    expect(len(files) >= 60, f"only {len(files)} files: {sorted(files)}")
    for path in ("/etc/kubernetes/pki/ca.crt", "/etc/kubernetes/manifests/kube-apiserver.yaml", "/etc/kubernetes/admin.conf"):
        expect(path in files, f"{path} is not among {sorted(files)}")
    missing = sorted(path for path in files if path not in _state["text"])
    expect(not missing, f"not in the text: {missing}")
    expect("PRIVATE KEY" not in _state["text"], "a private key is shown")


@check("the real run succeeds")
def real_run():
    _state["before"] = snapshot(HOST)
    done = on(HOST, "metalform", "bootstrap", "-o", "json", timeout=600)
    _state["after"] = snapshot(HOST)
    expect_equal(f"exit code\n{done.stdout[-1000:]}{done.stderr[-3000:]}", done.returncode, 0)
    expect_complete(Report(done.stdout), HOST)


@check("it wrote every file that the dry run listed")
def wrote_the_listed():
    listed = {path for path in _state["report"].files() if not _state["after"].get(path, "").startswith("d ")}
    listed = {path for path in listed - REMOVED_AGAIN if not VOLATILE.fullmatch(path)}
    expect(not REMOVED_AGAIN & _state["after"].keys(), f"still there: {REMOVED_AGAIN & _state['after'].keys()}")
    missing = sorted(listed - written(_state["before"], _state["after"]))
    # What is to be absent is listed, and is absent.
    missing = [path for path in missing if path in _state["after"] or path not in _state["before"]]
    expect(not missing, f"{len(missing)} were listed and not written: {missing[:40]}")


@check("and no other, but for packages and what programs write themselves")
def wrote_no_other():
    extra = written(_state["before"], _state["after"]) - _state["report"].files() - _of_packages()
    extra = sorted(path for path in extra if not re.fullmatch("|".join(PROGRAMS), path))
    expect(not extra, f"{len(extra)} were written and not listed: {extra[:40]}")


def _of_packages():
    """Every path that dpkg records, also where the distribution's /lib is a link to /usr/lib."""
    lines = shell(HOST, "cat /var/lib/dpkg/info/*.list; dpkg-query -W -f '${Conffiles}\\n' | awk '{print $1}'").splitlines()
    merged = re.compile(r"/(bin|sbin|lib|lib64)/")
    return set(lines) | {f"/usr{line}" for line in lines if merged.match(line)}
