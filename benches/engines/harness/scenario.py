"""What is done to the hosts while the clock runs."""

import dataclasses

HOSTS = ("b1", "b2", "b3", "b4")


@dataclasses.dataclass(frozen=True)
class Scenario:
    """`clean` hosts are replaced before each run; others match the workload already."""

    name: str
    title: str
    hosts: tuple
    mode: str = "apply"
    clean: bool = False
    # Round trip added to the network's own, in milliseconds.
    delay: int = 0


SCENARIOS = (
    Scenario("first1", "first apply, 1 clean host", HOSTS[:1], clean=True),
    Scenario("first4", "first apply, 4 clean hosts", HOSTS, clean=True),
    Scenario("noop1", "no-op, 1 host", HOSTS[:1]),
    Scenario("check1", "plan (check mode), 1 host", HOSTS[:1], mode="check"),
    Scenario("noop4", "no-op, 4 hosts", HOSTS),
    Scenario("noop1rtt20", "no-op, 1 host, 20 ms round trip", HOSTS[:1], delay=20),
)
# In these a bound names the other engines.
AGAINST_RIVALS = ("first1", "noop1")
