"""With no API server in reach nothing is started, and the exit code is that of the API."""

from checks import check, expect, expect_equal
from closed_api import close_api, in_group, open_api
from cluster import BOOTSTRAP, forget, introduce, metalform, on
from refusal import Unchanged, expect_refusal

NODE = "spare-2"


def set_up():
    introduce(NODE)
    close_api()


def tear_down():
    open_api()
    forget(NODE)


@check("kubectl in that group cannot reach it, so metalform cannot either")
def closed():
    done = on(BOOTSTRAP, *in_group(), "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "get", "nodes")
    expect(done.returncode != 0 and "refused" in done.stderr, done.stderr)


@check("deploy-node names the API, its address and what to look at")
def deploy_node():
    _refused("deploy-node", NODE)


@check("so does node list")
def node_list():
    _refused("node", "list")


@check("outside that group node check succeeds")
def reachable_again():
    expect_equal("exit code", metalform("node", "check", NODE).returncode, 0)


def _refused(*words):
    with Unchanged(NODE):
        done = on(BOOTSTRAP, *in_group(), "metalform", *words, timeout=150)
        expect_refusal(done, 6, r"API", r":(6443|7443)")

