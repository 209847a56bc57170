"""What the figures must be. Pure: reads nothing but the medians of one run."""

from bound import Bound

# Its figures are `{row} metalform`, `{row} nginx` (MB/s) and `{row} ratio`, the median of the pairs' own ratios.
ROWS = ["indexes", "packages", "blobs"]


def verdicts(medians):
    """Every bound, in order. `medians` has each figure by its name."""
    return [
        *(_throughput(medians, row) for row in ROWS),
        _below(medians, "peak memory of the server with 100 clients, MB", "memory", 100, 1),
        _times(medians, "one image to five hosts at once, times what the link takes", "five hosts", "five hosts link", 1.1),
        _below(medians, "bundle build with nothing new, seconds", "build again", 0.2, 2),
        _times(medians, "bundle build with one new patch version, times its component alone", "build patch", "build component", 1.1),
        _verify(medians),
    ]


def _throughput(medians, row):
    about, limit = f"{row} to 100 clients at once, times nginx", "at least 0.9"
    names = [f"{row} {part}" for part in ("metalform", "nginx", "ratio")]
    if any(name not in medians for name in names):
        return _not_measured(about, limit)
    ours, other, ratio = (medians[name] for name in names)
    return Bound(about, limit, f"{ratio:.2f} ({ours:.0f} MB/s to {other:.0f} MB/s)", ratio >= 0.9)


def _below(medians, about, name, limit, digits):
    if name not in medians:
        return _not_measured(about, f"below {limit}")
    return Bound(about, f"below {limit}", f"{medians[name]:.{digits}f}", medians[name] < limit)


def _times(medians, about, ours, other, limit):
    if ours not in medians or other not in medians:
        return _not_measured(about, f"at most {limit}")
    mine, beside = medians[ours], medians[other]
    return Bound(about, f"at most {limit}", f"{mine / beside:.2f} ({mine:.2f} s to {beside:.2f} s)", mine / beside <= limit)


def _verify(medians):
    about, limit = "the speed of bundle verify, times sha256sum on all processors", "at least 0.8"
    if "verify" not in medians or "sha256sum" not in medians:
        return _not_measured(about, limit)
    ours, other = medians["verify"], medians["sha256sum"]
    return Bound(about, limit, f"{other / ours:.2f} ({ours:.2f} s to {other:.2f} s)", other / ours >= 0.8)


def _not_measured(about, limit):
    return Bound(about, limit, "not measured", None)
