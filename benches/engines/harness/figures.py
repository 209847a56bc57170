"""A run's figures as one document: what is kept, what the bounds and the tables are made from."""

import statistics

from . import quiet


def document(columns, runs, memory, about):
    """`about` is when and of what this was measured: see `about.py`."""
    return {
        **about,
        "processors": quiet.PROCESSORS,
        "columns": {column.name: column.about for column in columns},
        "rivals": [column.name for column in columns if column.rival],
        "scenarios": {
            name: {column: _cell(done) for column, done in by_column.items()} for name, by_column in runs.items()
        },
        "memory": memory,
    }


def _cell(runs):
    """Medians, with what they are the median of."""
    walls = [round(run.wall, 4) for run in runs]

    def median(value):
        return round(statistics.median(value(run) for run in runs), 4)

    return {
        "wall": median(lambda run: run.wall),
        "walls": walls,
        "client_cpu": median(lambda run: run.client_cpu),
        "host_cpu": median(lambda run: sum(run.host_cpu.values())),
        "sent": int(median(lambda run: run.sent)),
        "received": int(median(lambda run: run.received)),
        "noisy": sum(quiet.is_noisy(run) for run in runs),
    }
