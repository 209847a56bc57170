"""What a pod on any node can do: be read, be entered, find a Service, reach every other pod."""

import echo_image
from checks import Failed, check, expect, expect_equal, until
from cluster import NODES, apply, get, kubectl

NAMESPACE = "scenario-pods"
PORT = 8080
LABELS = {"app": "echo"}


def set_up():
    echo_image.load(NODES)
    container = {
        "name": "echo",
        "image": echo_image.REFERENCE,
        "imagePullPolicy": "Never",
        "args": ["serve", "$(NODE)"],
        "env": [{"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "readinessProbe": {"httpGet": {"path": "/", "port": PORT}, "periodSeconds": 1},
    }
    pod = {
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "echo", "namespace": NAMESPACE},
            "spec": {
                "selector": {"matchLabels": LABELS},
                "template": {"metadata": {"labels": LABELS}, "spec": pod},
            },
        },
        _service("echo"),
    )
    until("a ready pod on every node", 90, _all_ready)


def tear_down():
    kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", timeout=120)
    echo_image.unload(NODES)


@check("kubectl logs shows the pod's on {}", each=NODES)
def logs(node):
    expect_equal("log", kubectl("logs", "--namespace", NAMESPACE, _pods()[node][0]).strip(), f"serving on {node}")


@check("kubectl exec enters a pod on {}", each=NODES)
def enters(node):
    name = _pods()[node][0]
    expect_equal("host name", _inside(node, "hostname"), name)


@check("a pod on {} finds a Service by its name", each=NODES)
def finds_service(node):
    for name in ("echo", f"echo.{NAMESPACE}.svc.cluster.local"):
        # A node's rules may be some seconds old after a change of endpoints, so it is tried again.
        answer = until(f"http://{name}/ answers", 15, lambda: _fetch(node, name))
        expect(answer in NODES, f"http://{name}/ answered {answer!r}")


@check("a pod finds a Service that is created after its name was asked for")
def finds_new_service():
    node = NODES[0]
    for _ in range(10):
        # So often that both replicas of CoreDNS have been asked, with one exception in five hundred.
        expect(not _found(node, "later"), "the Service later was found before it existed")
    apply(_service("later"))
    # Shorter than the 30 s for which answers are cached.
    until("the Service later has an address", 10, lambda: _found(node, "later"))


@check("a pod on {} finds the API by its name", each=NODES)
def finds_api(node):
    address = get("service", "kubernetes", "--namespace=default")["spec"]["clusterIP"]
    expect_equal("addresses", _inside(node, "lookup", "kubernetes.default"), f"[{address}]")


@check("a pod on {} reaches the pod of every other node", each=NODES)
def reaches_pods(node):
    answers = {}
    for other, (_, address) in _pods().items():
        answers[other] = _fetch(node, f"{address}:{PORT}")
    expect_equal("answers", answers, {other: other for other in NODES})


def _all_ready():
    pods = _pods(ready=True)
    if sorted(pods) != sorted(NODES):
        raise Failed(f"ready on {sorted(pods)}; " + kubectl("get", "pods", "-n", NAMESPACE, "--no-headers"))
    return True


def _pods(ready=False):
    """Node → name and address of its pod."""
    found = {}
    for pod in get("pods", "--namespace", NAMESPACE)["items"]:
        conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions", [])}
        if not ready or conditions.get("Ready") == "True":
            found[pod["spec"].get("nodeName")] = (pod["metadata"]["name"], pod["status"].get("podIP"))
    return found


def _service(name):
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"selector": LABELS, "ports": [{"port": 80, "targetPort": PORT}]},
    }


def _found(node, name):
    try:
        return _inside(node, "lookup", name)
    except Failed:
        return ""


def _inside(node, *command):
    return kubectl("exec", "--namespace", NAMESPACE, _pods()[node][0], "--", "/echo", *command).strip()


def _fetch(node, place):
    return _inside(node, "get", f"http://{place}/")
