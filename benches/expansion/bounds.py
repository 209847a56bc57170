"""What the figures must be. Pure: reads nothing but the medians of one run."""

from bound import Bound


def verdicts(medians):
    """Every bound, in order. `medians` has the seconds of each measurement by its name."""
    return [
        _ratio(medians, "a worker, times its floor", "worker", "worker floor", 1.25),
        _ratio(medians, "a worker with 30 other nodes, times one with 4", "worker of 30", "worker of 4", 1.10),
        _ratio(medians, "an etcd and master node, times its floor", "control plane", "control plane floor", 1.5),
        _ratio(medians, "four workers at once, times one", "four workers", "one worker", 2.2),
        _cluster(medians),
        _ratio(medians, "expand of five nodes with nothing to do, times deploy-node of one", "expand again", "deploy again", 1.5),
        _seconds(medians, "deploy-node with nothing to do, seconds", "deploy again", 1.0),
        _ratio(medians, "the removal of a worker, times its floor", "removal", "removal floor", 1.25),
        _ratio(medians, "a Machine, times a Node with deploy-node of the same host", "machine", "node of that host", 1.1),
    ]


def _ratio(medians, about, ours, other, limit):
    if ours not in medians or other not in medians:
        return Bound(about, f"at most {limit}", "not measured", None)
    mine, beside = medians[ours], medians[other]
    return Bound(about, f"at most {limit}", f"{mine / beside:.2f} ({mine:.2f} s to {beside:.2f} s)", mine / beside <= limit)


def _seconds(medians, about, name, limit):
    if name not in medians:
        return Bound(about, f"below {limit:.0f}", "not measured", None)
    return Bound(about, f"below {limit:.0f}", f"{medians[name]:.2f}", medians[name] < limit)


def _cluster(medians):
    about, limit = "five nodes by bootstrap and expand, times one after the other", 0.6
    parts = ("bootstrap", "expand", "one after the other")
    if any(part not in medians for part in parts):
        return Bound(about, f"at most {limit}", "not measured", None)
    at_once, in_turn = medians["bootstrap"] + medians["expand"], medians["bootstrap"] + medians["one after the other"]
    return Bound(about, f"at most {limit}", f"{at_once / in_turn:.2f} ({at_once:.1f} s to {in_turn:.1f} s)", at_once / in_turn <= limit)
