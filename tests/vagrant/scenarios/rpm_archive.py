"""An archive of a distribution with RPM packages: the names of Enterprise Linux 9, and the files of Debian's packages.

No archive of Enterprise Linux can be reached from where the tests run. What a host of it would get from there,
`like-rocky-9` hosts get from here: packages that Debian 13 has too, signed, with what they depend on.
"""

import glob
import os
import re
import shutil
import subprocess

from checks import Failed

# Debian's name → the other; and what Enterprise Linux says besides.
_NAMES = {"bird2": "bird", "conntrack": "conntrack-tools", "iproute2": "iproute", "iptables": "iptables-nft"}
_PROVIDED = {"iptables-nft": "iptables"}
_USERS = {"bird": "/run/bird", "haproxy": "/var/lib/haproxy"}
# Where Enterprise Linux has its configuration.
_BIRD_UNIT = """[Unit]
Description=BIRD Internet Routing Daemon
After=network.target
[Service]
ExecStartPre=/usr/sbin/bird -p -c /etc/bird.conf
ExecStart=/usr/sbin/bird -f -c /etc/bird.conf -u bird -g bird
ExecReload=/usr/sbin/birdc configure
Restart=on-failure
RuntimeDirectory=bird
[Install]
WantedBy=multi-user.target
"""
_IPTABLES = [f"{family}{suffix}" for family in ("iptables", "ip6tables") for suffix in ("", "-save", "-restore")]
_LOCK_PLUGIN = "python3-dnf-plugin-versionlock"
_SPEC = """Name: {name}
Version: {version}
Release: 1
Summary: {name}
License: Unknown
AutoReqProv: no
{relations}
%description
{name} of Debian.
{scripts}
%files {files}
"""
_MACROS = {
    "__os_install_post": "%{nil}",
    "_binary_payload": "w3.zstdio",
    "_build_id_links": "none",
    "debug_package": "%{nil}",
    "_unpackaged_files_terminate_build": "0",
}


def make(directory, debs):
    """`os` is the repository, `keys` has the key of its packages. `debs` are the packages of Debian 13."""
    packages = dict(_described(deb) for deb in glob.glob(os.path.join(debs, "*.deb")))
    for name, (version, depends, deb) in packages.items():
        root = os.path.join(directory, "roots", name)
        os.makedirs(root)
        _run("dpkg-deb", "--extract", deb, root)
        _adapt(name, root)
        _package(directory, name, version, [one for one in depends if one in packages], root)
    _lock_plugin(directory)
    # As scripts of packages need it; of hosts, which have it.
    _build(directory, "bash", "1", "Provides: /bin/sh", "")
    _sign(directory)
    _run("createrepo_c", "--quiet", os.path.join(directory, "os"))
    shutil.rmtree(os.path.join(directory, "roots"))


def _described(deb):
    fields = _run("dpkg-deb", "--show", "--showformat=${Package}\n${Version}\n${Pre-Depends}, ${Depends}", deb).split("\n")
    name, version, depends = fields
    # The first of the alternatives; without epoch, and in characters that RPM has.
    words = [re.match(r"[^ :|(]*", one.strip()).group() for one in depends.split(",")]
    version = re.sub(r"[^A-Za-z0-9._+~]", "_", version.split(":", 1)[-1])
    return _NAMES.get(name, name), (version, [_NAMES.get(word, word) for word in words if word], deb)


def _adapt(name, root):
    # systemd would make links of them, beside the units.
    shutil.rmtree(os.path.join(root, "etc/init.d"), ignore_errors=True)
    if name == "bird":
        with open(os.path.join(root, "usr/lib/systemd/system/bird.service"), "w", encoding="utf-8") as unit:
            unit.write(_BIRD_UNIT)
        shutil.rmtree(os.path.join(root, "etc/bird"), ignore_errors=True)
    if name == "iptables-nft":
        # What update-alternatives makes of them in Debian.
        for program in _IPTABLES:
            os.symlink("xtables-nft-multi", os.path.join(root, "usr/sbin", program))


def _package(directory, name, version, requires, root):
    files = os.path.join(directory, "roots", f"{name}.files")
    with open(files, "w", encoding="utf-8") as listed:
        for place, directories, names in os.walk(root):
            for one in sorted(names + directories):
                path = os.path.join(place, one)
                # rpm removes those that are empty and nobody else's.
                is_directory = os.path.isdir(path) and not os.path.islink(path)
                path = path.removeprefix(root)
                kind = "%dir " if is_directory else "%config(noreplace) " if path.startswith("/etc/") else ""
                listed.write(f'{kind}"{path}"\n')
    relations = [f"Requires: {one}" for one in sorted(set(requires) - {name})]
    relations += [f"Provides: {_PROVIDED[name]}"] if name in _PROVIDED else []
    _build(directory, name, version, "\n".join(relations), f"-f {files}", _scripts(name))


def _scripts(name):
    if name in _USERS:
        user = f"--system --user-group --home-dir {_USERS[name]} {name}"
        return f"%pre\ngetent passwd {name} >/dev/null || useradd {user}"
    if name == _LOCK_PLUGIN:
        # Python compiles for itself what the package has not compiled.
        modules = "/usr/lib/python3/dist-packages"
        return f"%preun\nrm -rf {modules}/dnfpluginscore/__pycache__ {modules}/dnf-plugins/__pycache__"
    return ""


def _build(directory, name, version, relations, files, scripts=""):
    root = os.path.join(directory, "roots", name)
    os.makedirs(root, exist_ok=True)
    spec = os.path.join(directory, "roots", f"{name}.spec")
    with open(spec, "w", encoding="utf-8") as written:
        fields = {"name": name, "version": version, "relations": relations, "files": files, "scripts": scripts}
        written.write(_SPEC.format(**fields))
    macros = _MACROS | {"_rpmdir": os.path.join(directory, "os"), "_topdir": os.path.join(directory, "roots", "rpm")}
    defined = [word for macro, value in macros.items() for word in ("--define", f"{macro} {value}")]
    _run("rpmbuild", "--quiet", *defined, "--buildroot", root, "--noclean", "-bb", spec)


def _lock_plugin(directory):
    """As this machine has it."""
    root = os.path.join(directory, "roots", _LOCK_PLUGIN)
    for path in _run("dpkg-query", "--listfiles", "dnf-plugins-core").splitlines():
        if os.path.isfile(path) and re.search("/(versionlock|dnfpluginscore/)", path):
            copied = os.path.join(root, path.lstrip("/"))
            os.makedirs(os.path.dirname(copied), exist_ok=True)
            shutil.copy(path, copied)
    _package(directory, _LOCK_PLUGIN, "1", [], root)


def _sign(directory):
    home, keys = os.path.join(directory, "gpg"), os.path.join(directory, "keys")
    os.makedirs(home, mode=0o700)
    os.makedirs(keys)
    gpg = ["gpg", "--homedir", home, "--batch", "--quiet"]
    _run(*gpg, "--passphrase", "", "--quick-generate-key", "archive", "rsa3072", "sign", "never")
    _run(*gpg, "--armor", "--output", os.path.join(keys, "RPM-GPG-KEY-archive"), "--export", "archive")
    macros = ["--define", f"_gpg_path {home}", "--define", "_gpg_name archive", "--define", "__gpg /usr/bin/gpg"]
    files = glob.glob(os.path.join(directory, "os", "**", "*.rpm"), recursive=True)
    try:
        _run("rpmsign", *macros, "--addsign", *files)
    finally:
        _run("gpgconf", "--homedir", home, "--kill", "all")
    shutil.rmtree(home)


def _run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode != 0:
        raise Failed(f"{' '.join(command[:8])}: exit {done.returncode}: {done.stderr.strip()[-1500:]}")
    return done.stdout
