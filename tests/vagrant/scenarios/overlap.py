"""Phases of a deployment that do not need each other run side by side."""

from checks import State, check, expect, expect_equal
from cluster import metalform, ready
from control_plane_node import ETCD, MASTER, forget, introduce, member_of
from deployment import Deployment

NODE = "spare-2"
# A new etcd member takes seconds until it serves; the control plane's files and images come meanwhile, and the proxies of
# other nodes with the final check.
GAIN = 4.0
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


@check(f"its total is at least {GAIN:.0f} s less than the sum of its phases")
def total_is_less():
    table = _state["table"]
    print(f"# {NODE}: total {table.total:.2f} s, sum of {len(table.phases)} phases {table.sum:.2f} s", flush=True)
    expect(table.total <= table.sum - GAIN, f"total {table.total} s, sum {table.sum:.2f} s\n{_state['text']}")


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
