"""An API that one process cannot reach, while the cluster works on: packets are rejected by their process's group."""

from cluster import BOOTSTRAP, shell, succeed

_GROUP = "4711"
_TABLE = "scenario"
_RULES = f"""
    table inet {_TABLE} {{
        chain output {{
            type filter hook output priority 0
            meta skgid {_GROUP} tcp dport {{ 6443, 7443 }} reject with tcp reset
        }}
    }}
"""


def in_group():
    """What precedes a command of the bootstrap node that is to find the ports closed."""
    return ["setpriv", "--regid", _GROUP, "--clear-groups", "--"]


def close_api():
    """From now on, and for connections that are open as well."""
    succeed(BOOTSTRAP, "nft", "-f", "-", stdin=_RULES)


def open_api():
    shell(BOOTSTRAP, f"nft delete table inet {_TABLE} 2>/dev/null || true")
