"""With no API server in reach nothing is begun, and the exit code says whose fault it is."""

from checks import check, expect, expect_equal
from cluster import BOOTSTRAP, forget, introduce, metalform, on, shell, succeed
from refusal import Unchanged, expect_refusal

NODE = "spare-2"
# Only processes of this group find the ports closed; the cluster itself goes on undisturbed.
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


def set_up():
    introduce(NODE)
    succeed(BOOTSTRAP, "nft", "-f", "-", stdin=_RULES)


def tear_down():
    shell(BOOTSTRAP, f"nft delete table inet {_TABLE} 2>/dev/null || true")
    forget(NODE)


@check("kubectl in that group cannot reach it, so metalform cannot either")
def closed():
    done = on(BOOTSTRAP, *_in_group("kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "get", "nodes"))
    expect(done.returncode != 0 and "refused" in done.stderr, done.stderr)


@check("deploy-node says that the API is not reachable, where, and what to look at")
def deploy_node():
    _refused("deploy-node", NODE)


@check("node list says so too")
def node_list():
    _refused("node", "list")


@check("once it is reachable, node check is well again")
def reachable_again():
    expect_equal("exit code", metalform("node", "check", NODE).returncode, 0)


def _refused(*words):
    with Unchanged(NODE):
        done = on(BOOTSTRAP, *_in_group("metalform", *words), timeout=150)
        expect_refusal(done, 6, r"API", r":(6443|7443)")


def _in_group(*command):
    return ["setpriv", "--regid", _GROUP, "--clear-groups", "--", *command]
