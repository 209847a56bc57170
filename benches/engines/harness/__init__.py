"""The benchmark of engines.

Read `session.py` first: one run of the benchmark, from clean hosts to a set of figures. What is measured are the
scenarios (`scenario.py`) of the columns (`column.py`); how one run of one column is measured is `measure.py`; what
the figures must be is `bounds.py`, which knows nothing but the figures.
"""
