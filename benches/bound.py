"""One line of a benchmark's verdict."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Bound:
    """What a figure must be; `met` is None where it was not measured."""

    about: str
    limit: str
    measured: str
    met: bool | None
