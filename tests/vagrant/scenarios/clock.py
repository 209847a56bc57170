"""A clock that jumps, on either side, neither causes changes nor prevents convergence."""


from checks import check, expect, expect_equal
from cluster import shell
from engine import Tree, changed

HOST = "node-1"
UNIT = "[Service]\nExecStart=/bin/sleep infinity\n[Install]\nWantedBy=multi-user.target\n"
FILES = "/etc/clock /etc/clock/it /etc/systemd/system/clock.service"
RESOURCES = [
    {"file": "/etc/clock/it", "content": "1"},
    {"unit": "clock.service", "content": UNIT},
    {"service": "clock", "restart_when_changed": ["unit:clock.service", "file:/etc/clock/it"]},
]
_state = {}


def set_up():
    _state["tree"] = Tree(HOST, RESOURCES)
    _state["tree"].converge()


def tear_down():
    _state["tree"].remove()
    shell(HOST, "systemctl disable --now clock; rm -rf /etc/systemd/system/clock.service /etc/clock; systemctl daemon-reload")


@check("files dated {} are unchanged, and nothing is restarted", each=["tomorrow", "ten years ago"])
def other_times(when):
    shell(HOST, f"touch -d '{when.replace('ten years ago', '10 years ago')}' {FILES}; systemctl daemon-reload")
    done = _state["tree"].run("apply")
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    expect_equal("changed", changed(done), {HOST: 0})


@check("a file written while the clock was ahead is corrected, and its service restarted once")
def corrected_once():
    started = _started()
    shell(HOST, "echo by-hand > /etc/clock/it; touch -d tomorrow /etc/clock/it")
    _state["tree"].converge()
    expect(_started() != started, "the service was not restarted")
    done = _state["tree"].run("apply")
    expect_equal("changed after that", changed(done), {HOST: 0})


def _started():
    return shell(HOST, "systemctl show -P MainPID clock")
