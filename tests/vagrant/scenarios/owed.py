"""What a change requires of services and commands is done by a later run, whatever ended the run of the change."""

from checks import check, expect, expect_equal
from cluster import lab, shell, succeed
from engine import HOST as HOST_CODE
from engine import Tree, expect_failure
from processes import commands, send

HOST = "node-1"
UNIT = "owed.service"
CONFIGURATION = "/etc/owed.conf"
CAUSE = "line:The configuration is good"
_state = {}

# As haproxy and nginx: a reload with a configuration that is wrong fails, and the service runs on.
_UNIT = f"""[Service]
ExecStart=/bin/sleep infinity
ExecReload=/bin/sh -c 'cat {CONFIGURATION} >>/run/owed-reloads; ! grep -q bad {CONFIGURATION}'

[Install]
WantedBy=multi-user.target
"""


def _resources(setting, between="true"):
    return [
        {"unit": UNIT, "content": _UNIT},
        {"line": CAUSE.partition(":")[2], "path": CONFIGURATION, "text": f"setting={setting}", "match": "setting=.*", "create": True},
        {"command": "Something between", "run": between, "creates": "/run/owed-passed"},
        {"command": "React", "run": "cat /etc/owed.conf >>/var/lib/owed-reactions", "only_if_changed": [CAUSE]},
        {"service": "owed", "reload_when_changed": [CAUSE]},
    ]


def _apply(setting, between="true"):
    _state["tree"].state(_resources(setting, between))
    return _state["tree"].run("apply")


def _log(name):
    return shell(HOST, 'cat "$1" 2>/dev/null || :', name)


def _owed():
    plan = _state["tree"].run("plan")
    expect_equal("exit code of the plan", plan.returncode, 0)
    return [resource for resource in ("command:React", "service:owed") if resource in plan.stdout]


def _expect_made_up_for(setting):
    """The plan shows both, one run does them, and then nothing is left to do."""
    expect_equal("owed, in the plan", _owed(), ["command:React", "service:owed"])
    shell(HOST, "touch /run/owed-passed")
    _state["tree"].converge()
    for log in ("/run/owed-reloads", "/var/lib/owed-reactions"):
        expect(f"setting={setting}\n" in _log(log), f"{log}: {_log(log)}")
    expect_equal("markers", shell(HOST, "find /run/metalform/owed /var/lib/metalform/owed -type f 2>/dev/null || :"), "")


def set_up():
    _state["tree"] = Tree(HOST, _resources("first"))
    shell(HOST, "touch /run/owed-passed")
    _state["tree"].converge()


def tear_down():
    shell(
        HOST,
        f"systemctl disable --now {UNIT} || :; rm -rf /etc/systemd/system/{UNIT} {CONFIGURATION} /run/owed-* /var/lib/owed-reactions"
        " /run/metalform/owed /var/lib/metalform/owed; systemctl daemon-reload",
    )
    _state["tree"].remove()


@check("a reload that failed is repeated by the next run, which fails as well until the configuration is good")
def failed_reload():
    for _ in range(2):
        expect_failure(_apply("bad"), HOST_CODE, HOST)
    expect_equal("reloads with the bad configuration", _log("/run/owed-reloads").count("setting=bad"), 2)
    done = _apply("good")
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
    _state["tree"].converge()


@check("a command that fails after a change: the next run reacts to the change")
def failure_between():
    shell(HOST, "rm -f /run/owed-passed")
    expect_failure(_apply("after-failure", "exit 9"), HOST_CODE, HOST)
    expect_equal("owners and modes", shell(HOST, "stat -c '%U %a' /run/metalform/owed /var/lib/metalform/owed").split(), ["root", "700"] * 2)
    _expect_made_up_for("after-failure")


@check("a run that is killed after a change: the next run reacts to the change")
def killed_between():
    shell(HOST, "rm -f /run/owed-passed")
    _state["tree"].state(_resources("after-kill", "touch /run/owed-waits; sleep 60"))
    running = _state["tree"].start()
    succeed(HOST, "timeout", "30", "sh", "-c", "until [ -e /run/owed-waits ]; do sleep 0.1; done")
    running.kill()
    running.communicate(timeout=60)
    send(commands(HOST))
    _expect_made_up_for("after-kill")


@check("a host that loses power after a change: the command is still owed, the service has started with the change")
def power_cut_between():
    shell(HOST, "rm -f /run/owed-passed")
    expect_failure(_apply("after-power-cut", "exit 9"), HOST_CODE, HOST)
    lab("power-off", HOST)
    lab("power-on", HOST)
    expect_equal("owed, in the plan", _owed(), ["command:React"])
    shell(HOST, "touch /run/owed-passed")
    _state["tree"].converge()
    expect("setting=after-power-cut\n" in _log("/var/lib/owed-reactions"), "the command did not run")
