"""What the API says of a cluster whose hosts lost power, since they have it again."""

import datetime

from checks import Failed
from cluster import get


def now():
    """To compare with times of the API."""
    return datetime.datetime.now(datetime.timezone.utc)


def all_is_back(since):
    """Every node is Ready and every pod runs; what the API has from before `since` does not count."""
    for node in get("nodes")["items"]:
        ready = _condition(node, "Ready")
        if ready["status"] != "True" or _time(ready["lastHeartbeatTime"]) < since:
            raise Failed(f"{node['metadata']['name']}: {ready['reason']}, seen at {ready['lastHeartbeatTime']}")
    for pod in get("pods", "--all-namespaces")["items"]:
        name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        containers = pod["status"].get("containerStatuses", [])
        started = [each.get("state", {}).get("running", {}).get("startedAt") for each in containers] or [None]
        if _condition(pod, "Ready")["status"] != "True" or not all(started) or _time(min(started)) < since:
            raise Failed(f"{name}: not ready since, started {started}")
    return True


def _condition(thing, kind):
    found = (each for each in thing["status"].get("conditions", []) if each["type"] == kind)
    return next(found, {"status": "Unknown", "reason": "no such condition", "lastHeartbeatTime": "1970-01-01T00:00:00Z"})


def _time(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
