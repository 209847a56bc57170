"""Each engine's inventory, made from the workload and the topology of the hosts."""

import json
import os
import shutil

import yaml

from nspawn import entry, place, topology

from .place import HERE, WORKLOAD, state, write


def workload():
    """The workload's resources, and what templates know as `node`, by host."""
    return _read("node-base.yaml"), _read("hosts.yaml")


def addresses():
    return {host.name: host.addresses["control-plane"] for host in topology.load().hosts}


def write_inventories():
    """All but the keys of the hosts, which `write_known_hosts` writes whenever hosts were replaced."""
    resources, nodes = workload()
    os.makedirs(state("home"), exist_ok=True)
    _ssh()
    _metalform(resources, nodes)
    hosts = {name: {"ansible_host": addresses()[name], "ansible_user": "root", "node": node} for name, node in nodes.items()}
    write(state("inventory.yaml"), yaml.safe_dump({"all": {"hosts": hosts}}))
    _salt(nodes)
    # pyinfra's inventory is Python, and its own environment has no YAML.
    write(state("workload.json"), json.dumps(resources))
    write(state("hosts.json"), json.dumps(nodes))


def write_known_hosts():
    keys = [f"{name},{address} {entry.host_key(name)}\n" for name, address in addresses().items()]
    write(state("known_hosts"), "".join(keys))


def _read(name):
    with open(os.path.join(WORKLOAD, name), encoding="utf-8") as file:
        return yaml.safe_load(file)


def _ssh():
    lines = [f"Host {name}\n  HostName {address}\n" for name, address in addresses().items()]
    lines.append("Host *\n  User root\n  IdentitiesOnly yes\n  BatchMode yes\n  StrictHostKeyChecking yes\n")
    lines.append(f"  IdentityFile {place.KEY}\n  UserKnownHostsFile {state('known_hosts')}\n")
    write(state("ssh_config"), "".join(lines))


def _metalform(resources, nodes):
    def host(name, node):
        # A host knows its name by itself, and labels are what the roster selects by.
        own = {key: value for key, value in node.items() if key not in ("name", "labels")}
        return {"address": addresses()[name], "labels": node["labels"], "vars": own}

    defaults = {"user": "root", "key": place.KEY, "vars": resources["cluster"]}
    hosts = {name: host(name, node) for name, node in nodes.items()}
    write(state("roster.yaml"), yaml.safe_dump({"defaults": defaults, "hosts": hosts}))


def _salt(nodes):
    shutil.rmtree(state("salt/pillar"), ignore_errors=True)
    option = f"UserKnownHostsFile={state('known_hosts')}"
    roster = {
        name: {"host": addresses()[name], "user": "root", "priv": place.KEY, "ssh_options": [option]} for name in nodes
    }
    master = {
        "root_dir": state("salt/root"),
        "user": "root",
        "log_file": state("salt/log"),
        "ssh_log_file": state("salt/ssh.log"),
        "file_roots": {"base": [os.path.join(HERE, "salt/states"), WORKLOAD]},
        "pillar_roots": {"base": [state("salt/pillar")]},
        "roster_file": state("salt/roster"),
        "state_output": "terse",
        "state_verbose": True,
    }
    options = {"salt-ssh": {"config_dir": state("salt"), "ssh_log_file": state("salt/ssh.log")}}
    top = {"base": {"*": ["node_base"], **{name: [f"host_{name}"] for name in nodes}}}
    for name, content in (("roster", roster), ("master", master), ("Saltfile", options), ("pillar/top.sls", top)):
        write(state("salt", name), yaml.safe_dump(content))
    with open(os.path.join(WORKLOAD, "node-base.yaml"), encoding="utf-8") as file:
        write(state("salt/pillar/node_base.sls"), file.read())
    for name, node in nodes.items():
        write(state(f"salt/pillar/host_{name}.sls"), yaml.safe_dump({"node": node}))
