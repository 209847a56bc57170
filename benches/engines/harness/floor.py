"""The whole workload as one shell script a host: the lower bound of the comparison, and the judge of every engine.

With MODE=apply it repairs what it finds; with MODE=check it prints what differs, and exits 1. Contents
are rendered here, before any clock runs, by the reference implementation of the templates' language.
"""

import dataclasses
import hashlib
import os
import shlex

import jinja2

from .inventory import workload
from .place import WORKLOAD, state, write

# Nothing of the workload has this line.
_END = "END-OF-CONTENT"


@dataclasses.dataclass(frozen=True)
class _File:
    path: str
    text: str
    mode: str


def write_scripts():
    resources, nodes = workload()
    for name, node in nodes.items():
        write(state("floor", f"{name}.sh"), _script(resources, _files(resources, node)))


def _files(resources, node):
    loader = jinja2.FileSystemLoader(os.path.join(WORKLOAD, "templates"))
    environment = jinja2.Environment(loader=loader, keep_trailing_newline=True, undefined=jinja2.StrictUndefined)
    values = {"node": node, "cluster": resources["cluster"]}
    files = [_plain("/etc/modules-load.d", f"modules-load.d/{name}.conf") for name in resources["nb_modules"]]
    for template in resources["nb_templates"]:
        text = environment.get_template(template["src"] + ".j2").render(values)
        files.append(_File(template["dest"], text, template["mode"].lstrip("0")))
    return files + [_plain("/etc/systemd/system", f"units/{name}.service") for name in resources["nb_units"]]


def _plain(directory, source):
    with open(os.path.join(WORKLOAD, "files", source), encoding="utf-8") as file:
        return _File(os.path.join(directory, os.path.basename(source)), file.read(), "644")


def _script(resources, files):
    parts = [
        ['drift() { d=1; echo "drift: $*"; }', 'd=0; ap=; [ "${MODE:=check}" = check ] || ap=1'],
        _packages(resources["nb_packages"]),
        _accounts(resources["nb_group"], resources["nb_users"]),
        _directories(resources["nb_directories"]),
        _contents(files),
        _attributes(resources["nb_directories"], files),
        _sysctls(resources["nb_sysctls"], resources["nb_sysctl_file"]),
        _services(resources["nb_units"]),
        _links(resources["nb_links"]),
        _line(shlex.quote(resources["nb_hosts_line"]["line"])),
        ["[ $d = 0 ] || [ $ap ]"],
    ]
    return "".join(line + "\n" for part in parts for line in part)


def _packages(names):
    words, installed = " ".join(names), "installed " * len(names)
    install = f"DEBIAN_FRONTEND=noninteractive apt-get install -y -q {words}"
    return [
        f"p=$(dpkg-query -W -f '${{db:Status-Status}} ' {words} 2>&1)",
        f"[ \"$p\" = '{installed}' ] || {{ drift packages; [ $ap ] && {install}; }}",
    ]


def _accounts(group, users):
    entries = [f"{u['name']}:x:{u['uid']}:{group['gid']}::{u['home']}:{u['shell']}" for u in users]
    names, wanted = " ".join(u["name"] for u in users), shlex.quote("\n".join(entries))
    add = [f"  useradd -u {u['uid']} -g {u['group']} -d {u['home']} -M -s {u['shell']} {u['name']}" for u in users]
    has_group = f"[ \"$(getent group {group['name']})\" = {group['name']}:x:{group['gid']}: ]"
    return [
        f"{has_group} || {{ drift group; [ $ap ] && groupadd -g {group['gid']} {group['name']}; }}",
        f'if [ "$(getent passwd {names})" != {wanted} ]; then drift users; [ $ap ] && {{',
        *add,
        "}; fi",
    ]


def _directories(directories):
    # Their owners and modes are set together with those of the files.
    return [f"if [ $ap ] && ! [ -d {directories[0]['path']} ]; then mkdir {' '.join(d['path'] for d in directories)}; fi"]


def _contents(files):
    lines = []
    for number, file in enumerate(files):
        lines += [f"w{number}() {{ cat > {file.path} <<'{_END}'", file.text + _END, "}"]
    lines.append(f"bad=$(sha256sum -c - 2>/dev/null <<'{_END}' | sed -n '/: OK$/!s/: FAILED.*//p'")
    lines += [f"{hashlib.sha256(file.text.encode()).hexdigest()}  {file.path}" for file in files]
    lines += [_END, ")", "units=; for f in $bad; do drift content $f; [ $ap ] || continue; case $f in"]
    for number, file in enumerate(files):
        unit = "; units=1" if file.path.startswith("/etc/systemd") else ""
        lines.append(f"  {file.path}) w{number}{unit} ;;")
    return [*lines, "esac; done"]


def _attributes(directories, files):
    wanted = [(d["path"], d["mode"].lstrip("0"), d["owner"], d["group"]) for d in directories]
    wanted += [(file.path, file.mode, "root", "root") for file in files]
    paths, text = " ".join(path for path, *_ in wanted), shlex.quote("\n".join(" ".join(one) for one in wanted))
    alike = {}
    for path, *attributes in wanted:
        alike.setdefault(tuple(attributes), []).append(path)
    repair = [
        f"  chown {owner}:{group} {' '.join(paths)}; chmod {mode} {' '.join(paths)}"
        for (mode, owner, group), paths in alike.items()
    ]
    stat = f"$(stat -c '%n %a %U %G' {paths} 2>&1)"
    return [f"want={text}", f'if [ "{stat}" != "$want" ]; then drift modes; if [ $ap ]; then', *repair, "fi; fi"]


def _sysctls(sysctls, path):
    keys, values = [s["name"] for s in sysctls], [str(s["value"]) for s in sysctls]
    lines = shlex.quote("\n".join(sorted(f"{key}={value}" for key, value in zip(keys, values))))
    live = f"\"$(sysctl -n {' '.join(keys)} 2>&1)\" != {shlex.quote(chr(10).join(values))}"
    # Engines differ in the spacing around the equals sign, which means nothing.
    kept = f"\"$(sed -e '/^[#;]/d' -e '/^$/d' -e 's/ *= */=/' {path} 2>/dev/null | LC_ALL=C sort)\" != {lines}"
    return [
        f"if [ {live} ] || [ {kept} ]; then drift sysctls",
        f"[ $ap ] && {{ printf '%s\\n' {lines} > {path}; sysctl -q -p {path}; }}",
        "fi",
    ]


def _services(units):
    words, count = " ".join(units), len(units)
    enabled, active = f"systemctl is-enabled {words} 2>&1 | grep -cx enabled", f"systemctl is-active {words} | grep -cx active"
    return [
        "[ $units ] && systemctl daemon-reload",
        f'[ "$({enabled})$({active})" = {count}{count} ] ||'
        f" {{ drift services; [ $ap ] && systemctl -q enable --now {words}; }}",
    ]


def _links(links):
    return [
        f"[ \"$(readlink {link['path']})\" = {link['target']} ] ||"
        f" {{ drift link {link['path']}; [ $ap ] && ln -s {link['target']} {link['path']}; }}"
        for link in links
    ]


def _line(line):
    append = f"printf '%s\\n' {line} >> /etc/hosts"
    return [f"grep -qxF {line} /etc/hosts || {{ drift hosts; [ $ap ] && {append}; }}"]
