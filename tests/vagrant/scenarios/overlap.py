"""Phases of a deployment that do not need each other run side by side."""

from checks import State, check, expect, expect_equal
from cluster import metalform, ready
from control_plane_node import ETCD, MASTER, forget, introduce, member_of
from deployment import Deployment

NODE = "spare-2"
# What does not need the phases beside it: the kubelet registers while etcd's member starts, the control plane's files and
# images come while it copies and until it votes, and the proxies of other nodes are updated during the final check.
BESIDE = {
    "Node joined": ("etcd member", "etcd voter"),
    "Control plane files": ("etcd voter",),
    "End state verified": ("API server proxies",),
}
# Of the time of those that is hidden, at the least: the rest is between the end of one phase and the start of the next.
HIDDEN = 0.85
_state = State()


def set_up():
    introduce(NODE, MASTER, ETCD)


def tear_down():
    forget(NODE)


@check("an etcd and master node is deployed")
def deployed():
    with Deployment(NODE) as running:
        running.succeed()
        _state["table"] = running.table()
        _state["text"] = running.stdout
    expect(ready(NODE), "not Ready")
    expect(not member_of(NODE).get("isLearner"), "its etcd member does not vote")


@check("its total is less than the sum of its phases, by all that runs beside something longer")
def total_is_less():
    table = _state["table"]
    phases = table.phases
    gain = sum(min(phases[one], sum(phases[other] for other in others)) for one, others in BESIDE.items())
    saved = table.sum - table.total
    print(f"# {NODE}: total {table.total:.2f} s, sum of {len(phases)} phases {table.sum:.2f} s, {saved:.2f} of {gain:.2f} s hidden", flush=True)
    expect(saved >= HIDDEN * gain, f"{saved:.2f} s of {gain:.2f} s are hidden\n{_state['text']}")


@check("the table shows when each phase started, and two of them overlap")
def table_shows_overlap():
    table = _state["table"]
    expect_equal(f"phases with a start\n{_state['text']}", sorted(table.starts), sorted(table.phases))
    spans = sorted((start, start + table.phases[phase], phase) for phase, start in table.starts.items())
    # A hundredth is lost where both columns are rounded.
    pairs = [(one[2], two[2]) for one, two in zip(spans, spans[1:]) if two[0] < one[1] - 0.05]
    expect(pairs, f"no two phases overlap\n{_state['text']}")


@check("again, and nothing changes")
def unchanged():
    done = metalform("deploy-node", NODE)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    expect("(changed=0)" in done.stdout, done.stdout)
