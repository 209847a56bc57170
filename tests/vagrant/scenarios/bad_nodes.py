"""A Node whose manifest is wrong is refused before its host is touched."""

import copy

from checks import check
from cluster import apply, delete_node, forget, introduce, manifest, metalform
from refusal import Unchanged, expect_refusal

NODE = "spare-2"


def set_up():
    introduce(NODE)


def tear_down():
    forget(NODE)


@check("without ssh-host")
def no_host():
    _refused(_with(annotations={"metalform.dev/ssh-host": None}), NODE, "metalform.dev/ssh-host")


@check("with two meanings for one key")
def two_meanings():
    wrong = _with(annotations={"metalk8s.scality.com/ssh-host": "10.20.0.99"})
    _refused(wrong, NODE, "metalk8s.scality.com/ssh-host", r"10\.20\.0\.99", r"10\.20\.0\.32")


@check("with a role that does not exist")
def unknown_role():
    _refused(_with(labels={"node-role.kubernetes.io/worker": ""}), NODE, "node-role.kubernetes.io/worker")


@check("with a misspelt annotation")
def unknown_annotation():
    _refused(_with(annotations={"metalform.dev/ssh-prot": "2222"}), NODE, "metalform.dev/ssh-prot")


@check("with a port that is none")
def bad_port():
    _refused(_with(annotations={"metalform.dev/ssh-port": "ssh"}), NODE, "metalform.dev/ssh-port", "ssh")


@check("with a sudo that is neither true nor false")
def bad_sudo():
    _refused(_with(annotations={"metalform.dev/ssh-sudo": "yes"}), NODE, "metalform.dev/ssh-sudo", "yes")


@check("a Node that does not exist is named")
def no_such_node():
    with Unchanged(NODE):
        expect_refusal(metalform("deploy-node", "nowhere"), 1, "nowhere")


def _with(annotations=None, labels=None):
    node = copy.deepcopy(manifest(NODE))
    for field, changes in (("annotations", annotations), ("labels", labels)):
        for key, value in (changes or {}).items():
            node["metadata"][field].pop(key, None)
            if value is not None:
                node["metadata"][field][key] = value
    return node


def _refused(node, *patterns):
    # Deleted first: what kubectl apply finds there would be merged into it.
    delete_node(NODE)
    apply(node)
    try:
        with Unchanged(NODE):
            expect_refusal(metalform("deploy-node", NODE), 1, *patterns)
    finally:
        delete_node(NODE)
        apply(manifest(NODE))
