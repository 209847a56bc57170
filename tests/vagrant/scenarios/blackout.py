"""All hosts lose power at the same instant: the cluster comes back without a command, with all that was acknowledged."""

import datetime
import json
import time

from checks import Failed, State, check, expect, expect_equal, until
from cluster import NODES, get, kubectl, lab, metalform, with_role

_LIMIT = 90
_NAME = "scenario-blackout"
_state = State()


def tear_down():
    kubectl("delete", "configmap", _NAME, "--namespace=default", "--ignore-not-found")


@check(f"every node is Ready again within {_LIMIT} s of power, and every pod runs again")
def comes_back():
    kubectl("create", "configmap", _NAME, "--namespace=default", "--from-literal=acknowledged=yes")
    lab("power-off", *NODES)
    began, _state["since"] = time.monotonic(), datetime.datetime.now(datetime.timezone.utc)
    lab("power-on", *NODES, timeout=_LIMIT)
    until("every node and pod is as before", _LIMIT - (time.monotonic() - began), _is_back)
    print(f"# all is back after {time.monotonic() - began:.0f} s", flush=True)


@check("what was acknowledged an instant before is there")
def acknowledged():
    expect_equal("data", get("configmap", _NAME, "--namespace=default").get("data"), {"acknowledged": "yes"})


@check("every member of etcd votes and is healthy")
def healthy():
    done = metalform("etcd", "health", "-o", "json")
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)
    members = {member["name"]: member["status"] for member in json.loads(done.stdout)}
    expect_equal("members", members, dict.fromkeys(with_role("etcd"), "voter"))


@check("and nothing is left to do")
def nothing_to_do():
    done = metalform("expand", "--dry-run", "--detailed-exitcode")
    expect(done.returncode == 0, f"exit {done.returncode}\n{done.stdout}{done.stderr}")


def _is_back():
    """What the API has from before the cut does not count."""
    for node in get("nodes")["items"]:
        ready = _condition(node, "Ready")
        if ready["status"] != "True" or _time(ready["lastHeartbeatTime"]) < _state["since"]:
            raise Failed(f"{node['metadata']['name']}: {ready['reason']}, seen at {ready['lastHeartbeatTime']}")
    for pod in get("pods", "--all-namespaces")["items"]:
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        containers = pod["status"].get("containerStatuses", [])
        started = [each.get("state", {}).get("running", {}).get("startedAt") for each in containers] or [None]
        if _condition(pod, "Ready")["status"] != "True" or not all(started) or _time(min(started)) < _state["since"]:
            raise Failed(f"{name}: not ready since, started {started}")
    return True


def _condition(thing, kind):
    found = (each for each in thing["status"].get("conditions", []) if each["type"] == kind)
    return next(found, {"status": "Unknown", "reason": "no such condition", "lastHeartbeatTime": "1970-01-01T00:00:00Z"})


def _time(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
