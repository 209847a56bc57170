"""A run's figures for people, in Markdown. Pure."""

from .bounds import verdicts
from .scenario import SCENARIOS

_MET = {True: "met", False: "**not met**", None: "not measured"}


def markdown(figures):
    return "\n".join([*_head(figures), *_bounds(figures), *_measured(figures), *_memory(figures), *_fleet(figures)]) + "\n"


def _head(figures):
    versions = ", ".join(f"{name} {version}" for name, version in figures["versions"].items())
    haste = " Made with --hasty: other work may have run meanwhile." if figures["hasty"] else ""
    return [
        "# metalform beside other agentless engines",
        "",
        f"One run of `make bench-engines`, {figures['began']}: medians of {figures['repetitions']}, on a machine with"
        f" {figures['processors']} processors that is client and hosts at once. The [README](../README.md) explains what is"
        f" measured, and what to beware of.{haste}",
        "",
        f"{versions}.",
        "",
    ]


def _bounds(figures):
    rows = [[bound.about, bound.limit, bound.measured, _MET[bound.met]] for bound in verdicts(figures)]
    return ["## Bounds", "", *_table(["", "bound", "measured", ""], rows, "llll")]


def _measured(figures):
    lines = []
    for title, text in (
        ("Seconds", lambda cell, _: f"{cell['wall']:.3f}" if cell["wall"] < 10 else f"{cell['wall']:.1f}"),
        ("Least and most seconds", lambda cell, _: _spread(cell)),
        ("Times the floor", lambda cell, floor: f"{cell['wall'] / floor['wall']:.2f}"),
        ("KiB at the client, sent + received", lambda cell, _: f"{cell['sent'] / 1024:.0f} + {cell['received'] / 1024:.0f}"),
        ("Processor seconds, client + hosts", lambda cell, _: f"{cell['client_cpu']:.2f} + {cell['host_cpu']:.2f}"),
    ):
        lines += [f"## {title}", "", *_by_scenario(figures, text)]
    return lines


def _by_scenario(figures, text):
    scenarios = [one for one in SCENARIOS if one.name in figures["scenarios"]]

    def cell(column, scenario):
        cells = figures["scenarios"][scenario.name]
        return text(cells[column], cells["floor"]) if column in cells else "–"

    rows = [[_named(figures, column), *(cell(column, one) for one in scenarios)] for column in _columns(figures)]
    return _table(["", *(one.title for one in scenarios)], rows, "l" + "r" * len(scenarios))


def _spread(cell):
    noisy = f", {cell['noisy']} noisy" if cell["noisy"] else ""
    return f"{min(cell['walls']):.3f}–{max(cell['walls']):.3f}{noisy}"


def _memory(figures):
    scenarios = [one for one in SCENARIOS if one.name in figures["memory"]]
    if not scenarios:
        return []

    def cells(column):
        for one in scenarios:
            peak = figures["memory"][one.name].get(column)
            yield from (f"{peak['together_kib'] / 1024:.1f}", f"{peak['largest_kib'] / 1024:.1f}") if peak else ("–", "–")

    head = [word for one in scenarios for word in (f"{one.title}: all processes", "largest process")]
    rows = [[_named(figures, column), *cells(column)] for column in _columns(figures)]
    about = "All processes: the peak of their summed proportional set size. Largest process: its peak resident size."
    return ["## The client's memory, MiB", "", about, "", *_table(["", *head], rows, "l" + "r" * len(head))]


def _fleet(figures):
    if not figures.get("fleet"):
        return []
    about = "One SSH server in one process stands for all of them; they are as they should be."
    head = ["hosts", "resources of each", "seconds", "hosts a second", "the client's peak, MB"]
    rows = [
        [f"{run['hosts']}", f"{run['resources']}", f"{run['seconds']:.2f}", f"{run['hosts_per_second']:.0f}", f"{run['peak_mb']:.0f}"]
        for run in figures["fleet"]["runs"]
    ]
    return ["## Simulated hosts", "", about, "", *_table(head, rows, "rrrrr")]


def _columns(figures):
    return [name for name in figures["columns"] if any(name in cells for cells in figures["scenarios"].values())]


def _named(figures, column):
    return f"{column}: {figures['columns'][column]}"


def _table(head, rows, sides):
    rule = ["---:" if side == "r" else "---" for side in sides]
    return ["| " + " | ".join(cells) + " |" for cells in (head, rule, *rows)] + [""]
