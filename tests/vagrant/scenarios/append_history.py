"""Whether a history of reads of a list, and of appends to it, is linearizable. Pure.

Every entry is appended once at most, and the final list is the order of all that succeeded: so each operation's place is
known, and only real time remains to be checked (Herlihy and Wing, Linearizability, 1990, theorem 1, for one object).
"""

import dataclasses

READ, APPENDED, REFUSED, UNKNOWN = "read", "appended", "refused", "unknown"


@dataclasses.dataclass(frozen=True)
class Operation:
    """`entry` is what was appended, or the last that was read (`-`: none); `length` that of the list afterwards."""

    what: str
    entry: str
    length: int
    began: int
    ended: int


def parse(line):
    what, entry, length, began, ended = line.split()
    return Operation(what, entry, int(length), int(began), int(ended))


def violations(history, final):
    """One sentence for each operation that no order of single operations explains."""
    found = []
    place = {entry: number for number, entry in enumerate(final, 1)}
    if len(place) != len(final):
        found.append("an entry is there twice")
    known = {one.entry for one in history if one.what != READ}
    found += [f"{entry} was never appended" for entry in final if entry not in known]
    placed = []
    for one in history:
        if one.what == APPENDED and place.get(one.entry) != one.length:
            found.append(f"{one} was confirmed, and is number {place.get(one.entry)} of the list")
        elif one.what == REFUSED and one.entry in place:
            found.append(f"{one} was refused, and is in the list")
        elif one.what == READ and one.length and (one.length > len(final) or final[one.length - 1] != one.entry):
            found.append(f"{one} is no beginning of the list")
        else:
            placed += _placed(one, place)
    return found + _out_of_time(placed)


def _placed(one, place):
    """The list's length after it, and its time; that of an unknown outcome has no end."""
    if one.what == UNKNOWN and one.entry in place:
        yield place[one.entry], one.began, float("inf"), one
    elif one.what in (READ, APPENDED):
        yield one.length, one.began, one.ended, one


def _out_of_time(placed):
    """What begins after another has ended comes after it: an append strictly."""
    found = []
    longest = 0
    ends = sorted(placed, key=lambda each: each[2])
    next_end = 0
    for length, began, _, one in sorted(placed, key=lambda each: each[1]):
        while next_end < len(ends) and ends[next_end][2] < began:
            longest = max(longest, ends[next_end][0])
            next_end += 1
        if length < longest or (length == longest and one.what != READ):
            found.append(f"{one} began when the list had {longest} entries already")
    return found


def gap(history, what, ended):
    """The longest time without an operation that ended so, from the first one to `ended` (microseconds): its seconds, and when
    it began.
    """
    times = [*sorted(one.ended for one in history if one.what in what), ended]
    longest, began = max((after - before, before) for before, after in zip(times, times[1:]))
    return longest / 1e6, began
