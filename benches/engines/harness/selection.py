"""What a run of the benchmark measures: which columns in which scenarios, how often."""

import dataclasses

from .failure import BenchError
from .scenario import AGAINST_RIVALS, SCENARIOS


@dataclasses.dataclass(frozen=True)
class Selection:
    """`cells` are the columns of each scenario, `columns` all of them; both in the order of the tables."""

    cells: dict
    columns: list
    repetitions: int
    # Whether it is a part only, which is not published.
    partial: bool


def choose(columns, *, names, scenarios, repetitions, full):
    """By default the other engines are measured where a bound names them, which is half of the time; `full` is all.

    Columns that are named are measured in every scenario. The floor always is.
    """
    wanted = _known("column", names, [column.name for column in columns])
    chosen = _known("scenario", scenarios, [scenario.name for scenario in SCENARIOS])

    def belongs(column, scenario):
        if column.name == "ssh-true" and scenario.clean:
            return False
        if wanted:
            return column.name in wanted or column.name == "floor"
        quick = column.is_floor or column.name == "metalform"
        return full or quick or scenario.name in AGAINST_RIVALS

    cells = {
        scenario: [column for column in columns if belongs(column, scenario)]
        for scenario in SCENARIOS
        if not chosen or scenario.name in chosen
    }
    used = [column for column in columns if any(column in of_scenario for of_scenario in cells.values())]
    return Selection(cells, used, repetitions, bool(wanted or chosen))


def _known(what, words, known):
    for word in words:
        if word not in known:
            raise BenchError(f"there is no {what} {word!r}", f"there are: {', '.join(known)}")
    return words
