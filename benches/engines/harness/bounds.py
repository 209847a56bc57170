"""What the figures must be. Pure: reads nothing but the figures of one run."""

from bound import Bound

# Two medians of the same thing differ by so much on a machine that is also the hosts'.
NOISE = 1.05
MIB = 1024 * 1024


def verdicts(figures):
    """Every bound, in order. `figures` is a run's document (`figures.py`)."""
    return [
        _times_floor(figures, "noop1", "a no-op on one host, times the floor", 1.5),
        _ahead(figures, "noop1", "a no-op on one host, ahead of the best rival as it ships", 10),
        _times_floor(figures, "first1", "a first apply on a clean host, times the floor", 1.5),
        _ahead(figures, "first1", "a first apply on a clean host, ahead of the best rival as it ships", 5),
        _plan(figures),
        _four_to_one(figures, "first4", "first1", "four clean hosts at once to one, times the floor's own ratio"),
        _four_to_one(figures, "noop4", "noop1", "no-op on four hosts at once to one, times the floor's own ratio"),
        _times_floor(figures, "noop1rtt20", "a no-op over 20 ms of round trip, times the floor", 1.5),
        _bytes(figures),
        *_fleet(figures.get("fleet")),
    ]


def _median(figures, scenario, column, what="wall"):
    return figures["scenarios"].get(scenario, {}).get(column, {}).get(what)


def _at_most(about, limit, text, ratio, unit=""):
    measured = "not measured" if ratio is None else f"{ratio:.2f}{unit}{text}"
    return Bound(about, f"at most {limit}{unit}", measured, None if ratio is None else ratio <= limit)


def _over(one, other):
    return None if one is None or other is None else one / other


def _times_floor(figures, scenario, about, limit):
    ours, floor = _median(figures, scenario, "metalform"), _median(figures, scenario, "floor")
    ratio = _over(ours, floor)
    return _at_most(about, limit, "" if ratio is None else f" ({ours:.3f} s to {floor:.3f} s)", ratio)


def _ahead(figures, scenario, about, limit):
    ours = _median(figures, scenario, "metalform")
    rivals = {name: _median(figures, scenario, name) for name in figures["rivals"]}
    if ours is None or not rivals or None in rivals.values():
        return Bound(about, f"at least {limit}", "not measured", None)
    best = min(rivals, key=rivals.get)
    ratio = rivals[best] / ours
    return Bound(about, f"at least {limit}", f"{ratio:.1f} ({best}: {rivals[best]:.2f} s)", ratio >= limit)


def _plan(figures):
    about = f"a plan, times a no-op apply ({NOISE - 1:.0%} is noise)"
    return _at_most(about, NOISE, "", _over(_median(figures, "check1", "metalform"), _median(figures, "noop1", "metalform")))


def _four_to_one(figures, four, one, about):
    ratio = {
        column: _over(_median(figures, four, column), _median(figures, one, column)) for column in ("metalform", "floor")
    }
    relative = _over(ratio["metalform"], ratio["floor"])
    text = "" if relative is None else f" ({ratio['metalform']:.2f} to {ratio['floor']:.2f})"
    return _at_most(about, 1.1, text, relative)


def _bytes(figures):
    total = {}
    for column in ("metalform", "floor"):
        both = [_median(figures, "noop1", column, way) for way in ("sent", "received")]
        total[column] = None if None in both else sum(both)
    ratio = _over(total["metalform"], total["floor"])
    text = "" if ratio is None else f" ({total['metalform'] / 1024:.0f} KiB to {total['floor'] / 1024:.0f} KiB)"
    return _at_most("bytes on the wire of a no-op, times the floor's", 2, text, ratio)


def _fleet(fleet):
    """What `cargo bench --bench fleet -- --json` printed; it checks its own bounds."""
    if not fleet:
        return [Bound("simulated hosts: time linear, memory under 200 MB", "", "not measured", None)]
    return [Bound(f"simulated hosts: {one['about']}", one["limit"], one["measured"], one["met"]) for one in fleet["bounds"]]
