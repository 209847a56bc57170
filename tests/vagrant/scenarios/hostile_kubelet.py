"""A rooted worker: what its kubelet's credentials can write gets it no certificate and changes no other host."""

import base64
import json
import ssl

import yaml

from checks import check, expect, expect_equal, until
from cluster import (
    ADMIN,
    BOOTSTRAP,
    NODES,
    address,
    apply,
    copy,
    get,
    kubectl,
    metalform,
    on,
    shell,
    succeed,
    with_role,
)
from kubelet_request import CLIENT, SERVING, answer, certificate_request, denied, node_subject

NODE = "node-1"
OTHER = "node-2"
POLICY = "metalform-node-identities"
KUBECTL = "/usr/bin/kubectl"
KUBECONFIG = "/etc/kubernetes/kubelet.conf"
DIRECTORY = "/run/hostile"
OWN = f"/api/v1/nodes/{NODE}"
HAPROXY = "/etc/haproxy/haproxy.cfg"

OWN_SANS = [f"DNS:{NODE}", f"IP:{address(NODE)}", f"IP:{address(NODE, 'workload-plane')}"]

STATE = {}


def set_up():
    STATE["had kubectl"] = on(NODE, "test", "-e", KUBECTL).returncode == 0
    if not STATE["had kubectl"]:
        copy(KUBECTL, BOOTSTRAP, NODE)
    STATE["haproxy"] = _proxies()
    STATE["records"] = _records()
    own = STATE["records"][NODE]
    expect(own.get("metalform.dev/addresses"), f"no address is recorded: {own}")


def tear_down():
    if not STATE.get("had kubectl", True):
        succeed(NODE, "rm", "-f", KUBECTL)
    succeed(NODE, "rm", "-rf", DIRECTORY)
    requests = [csr["metadata"]["name"] for csr in get("csr")["items"]]
    hostile = [name for name in requests if name.startswith("hostile-")]
    if hostile:
        kubectl("delete", "csr", *hostile)
    if "binding" in STATE:
        apply(STATE["binding"])


# What it may do, so that a refusal below is one.


@check("its credentials are those of the kubelet, and it may annotate its own Node with other keys")
def is_the_kubelet():
    who = _kubelet("auth", "whoami", "-o", "json")
    expect_equal(f"exit code\n{who.stderr}", who.returncode, 0)
    expect_equal("user", json.loads(who.stdout)["status"]["userInfo"]["username"], f"system:node:{NODE}")
    for annotation in ("example.com/hostile=true", "example.com/hostile-"):
        done = _kubelet("annotate", "node", NODE, annotation)
        expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)


@check("it gets a serving certificate for its name and its recorded addresses")
def own_serving_certificate():
    _signed(_requested("own", SERVING, sans=OWN_SANS))


@check("it gets a client certificate for 20 minutes where it requests 20 minutes")
def short_client_certificate():
    certificate = _signed(_requested("short", CLIENT, seconds=1200))
    dates = succeed(NODE, "openssl", "x509", "-noout", "-startdate", "-enddate", stdin=certificate)
    start, end = (ssl.cert_time_to_seconds(line.split("=", 1)[1]) for line in dates.splitlines())
    # Its validity begins five minutes in the past.
    expect_equal("seconds of validity", end - start, 1200 + 300)


# Its own Node.

RECORDED = {
    "metalform.dev/control-plane-ip": "127.0.0.1",
    "metalform.dev/workload-plane-ip": "127.0.0.1",
    "metalform.dev/addresses": "127.0.0.1",
    "metalform.dev/api-server": "ready",
    "metalform.dev/ssh-host": address(BOOTSTRAP),
    "metalform.dev/ssh-port": "2222",
    "metalform.dev/ssh-user": "hostile",
    "metalform.dev/ssh-key-path": "/etc/kubernetes/pki/ca.key",
    "metalform.dev/ssh-sudo": "true",
    "metalform.dev/ssh-host-key": "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "metalform.dev/ssh-bastion": "hostile@10.20.0.21",
    "metalform.dev/anything": "at-all",
    "metalk8s.scality.com/ssh-host": address(BOOTSTRAP),
    "metalk8s.scality.com/control-plane-ip": address(BOOTSTRAP),
}


@check("it may not annotate its own Node with {}", each=RECORDED)
def annotates(key):
    _refused(_kubelet("annotate", "node", NODE, "--overwrite", f"{key}={RECORDED[key]}"), POLICY)


@check("it may not annotate its own Node through its status")
def annotates_by_status():
    node = get("node", NODE)
    node["metadata"]["annotations"]["metalform.dev/api-server"] = "ready"
    _refused(_replace(f"{OWN}/status", node), POLICY)


KEPT = ["metalform.dev/addresses", "metalform.dev/ssh-host"]


@check("it may not remove the annotation {} of its own Node", each=KEPT)
def removes_annotation(key):
    _refused(_kubelet("annotate", "node", NODE, f"{key}-"), POLICY)


@check("it may not label its own Node {}", each=["metalform.dev/version", "metalk8s.scality.com/version"])
def labels(key):
    _refused(_kubelet("label", "node", NODE, "--overwrite", f"{key}=1.0.0"), POLICY)


@check("it may not give its own Node the role {}", each=["master", "control-plane", "etcd", "bootstrap"])
def takes_role(role):
    _refused(_kubelet("label", "node", NODE, f"node-role.kubernetes.io/{role}="), "not allowed to modify labels")


ADDRESSES = {
    "loopback": "127.0.0.1",
    "the bootstrap node's": address(BOOTSTRAP),
    "another worker's": address(OTHER),
    "a Service's": "10.96.0.1",
}


@check("it may not set the addresses of its own Node to {}", each=ADDRESSES)
def readdresses(title):
    node = get("node", NODE)
    node["status"]["addresses"] = [{"type": "InternalIP", "address": ADDRESSES[title]}]
    _refused(_replace(f"{OWN}/status", node), POLICY)


@check("it may not add an address to its own Node")
def adds_address():
    node = get("node", NODE)
    node["status"]["addresses"].append({"type": "ExternalIP", "address": "127.0.0.1"})
    _refused(_replace(f"{OWN}/status", node), POLICY)


@check("it may not remove the addresses of its own Node")
def removes_addresses():
    node = get("node", NODE)
    del node["status"]["addresses"]
    _refused(_replace(f"{OWN}/status", node), POLICY)


@check("it may not change the taints of its own Node")
def taints():
    _refused(_kubelet("taint", "node", NODE, "hostile=true:NoSchedule"))


@check("it may not set the provider ID of its own Node")
def sets_provider_id():
    patch = json.dumps({"spec": {"providerID": f"metalform://{OTHER}/0"}})
    _refused(_kubelet("patch", "node", NODE, "--type=merge", f"--patch={patch}"), POLICY)


@check("it may not delete its own Node")
def deletes_itself():
    _refused(_kubelet("delete", "node", NODE, "--wait=false"))


# Other objects. Each is a command that an administrator may run.

API_SERVER_POD = f"kube-apiserver-{BOOTSTRAP}"
OTHERS = {
    "delete another Node": ["delete", "node", OTHER, "--wait=false"],
    "read the lease on etcd's membership": ["get", "lease", "metalform-etcd-membership", "--namespace=kube-system"],
    "list secrets": ["get", "secrets", "--all-namespaces"],
    "list join tokens": ["get", "secrets", "--namespace=kube-system"],
    "read a join token": ["get", "secret", "bootstrap-token-abcdef", "--namespace=kube-system"],
    "create a join token": [
        "create", "secret", "generic", "bootstrap-token-hostil", "--namespace=kube-system",
        "--type=bootstrap.kubernetes.io/token", "--from-literal=token-id=hostil",
        "--from-literal=token-secret=0123456789abcdef", "--from-literal=usage-bootstrap-authentication=true",
    ],
    "create a token of a controller": ["create", "token", "node-controller", "--namespace=kube-system"],
    "delete the admission policy": ["delete", "validatingadmissionpolicy", POLICY],
    "delete the binding of the admission policy": ["delete", "validatingadmissionpolicybinding", POLICY],
    "grant itself a role": [
        "create", "clusterrolebinding", "hostile", "--clusterrole=cluster-admin", f"--user=system:node:{NODE}",
    ],
    "delete a pod of another node": ["delete", "pod", API_SERVER_POD, "--namespace=kube-system", "--wait=false"],
    "enter a pod of another node": ["exec", API_SERVER_POD, "--namespace=kube-system", "--", "id"],
    "reach another node's kubelet": ["get", "--raw", f"/api/v1/nodes/{BOOTSTRAP}/proxy/pods"],
    "act as an administrator": ["get", "nodes", "--as=admin", "--as-group=system:masters"],
}


@check("it may not {}", each=OTHERS)
def touches(attempt):
    _refused(_kubelet(*OTHERS[attempt]))


# Objects that it writes without reading them first.
WRITTEN = {
    "annotate another Node": (
        f"/api/v1/nodes/{OTHER}",
        lambda node: node["metadata"]["annotations"].update({"metalform.dev/control-plane-ip": "127.0.0.1"}),
    ),
    "label another Node": (
        f"/api/v1/nodes/{OTHER}",
        lambda node: node["metadata"]["labels"].update({"node-role.kubernetes.io/master": ""}),
    ),
    "change the status of another Node": (
        f"/api/v1/nodes/{OTHER}/status",
        lambda node: node["status"].update({"addresses": []}),
    ),
    "take the lease on etcd's membership": (
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/metalform-etcd-membership",
        lambda lease: lease.update({"spec": {"holderIdentity": "hostile"}}),
    ),
    "take the lease of another node": (
        f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{OTHER}",
        lambda lease: lease["spec"].update({"holderIdentity": "hostile"}),
    ),
    "change CoreDNS": (
        "/api/v1/namespaces/kube-system/configmaps/coredns",
        lambda configuration: configuration["data"].update({"Corefile": ""}),
    ),
}


@check("it may not {}", each=WRITTEN)
def writes(attempt):
    path, change = WRITTEN[attempt]
    target = json.loads(kubectl("get", "--raw", path.removesuffix("/status")))
    change(target)
    _refused(_replace(path, target))


POD = {
    "containers": [{"name": "shell", "image": "none", "securityContext": {"privileged": True}}],
    "nodeName": BOOTSTRAP,
}
CREATED = {
    "another Node": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "hostile"}},
    "a pod on the bootstrap node": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hostile"}, "spec": POD},
    "a static pod's mirror on the bootstrap node": {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "hostile", "annotations": {"kubernetes.io/config.mirror": "hostile"}},
        "spec": POD,
    },
    "a lease beside the one on etcd's membership": {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "hostile", "namespace": "kube-system"},
    },
}


@check("it may not create {}", each=CREATED)
def creates(title):
    _refused(_kubelet("create", "--validate=false", "-f", "-", stdin=yaml.safe_dump(CREATED[title])))


# Certificates.

SERVING_SANS = {
    "loopback": "IP:127.0.0.1",
    "IPv6 loopback": "IP:::1",
    "mapped loopback": "IP:::ffff:127.0.0.1",
    "no address": "IP:0.0.0.0",
    "a link-local address": "IP:169.254.1.1",
    "a multicast address": "IP:224.0.0.1",
    "the API's Service": "IP:10.96.0.1",
    "the DNS Service": "IP:10.96.0.10",
    "a pod": "IP:10.233.0.1",
    "the bootstrap node": f"IP:{address(BOOTSTRAP)}",
    "another worker": f"IP:{address(OTHER)}",
    "another worker on the workload plane": f"IP:{address(OTHER, 'workload-plane')}",
    "an address that no node has": "IP:10.20.0.99",
    "localhost": "DNS:localhost",
    "the API server's name": "DNS:kubernetes",
    "the API server's full name": "DNS:kubernetes.default.svc.cluster.local",
    "the bootstrap node's name": f"DNS:{BOOTSTRAP}",
    "every name": "DNS:*",
}


@check("it gets no serving certificate for {}", each=SERVING_SANS)
def serves(title):
    denied(_requested("serving", SERVING, sans=[SERVING_SANS[title]]))
    # Nor beside what is its own.
    denied(_requested("serving", SERVING, sans=[f"DNS:{NODE}", SERVING_SANS[title]]))


SUBJECTS = {
    "another node": f"/O=system:nodes/CN=system:node:{OTHER}",
    "an administrator": f"/O=system:masters/CN=system:node:{NODE}",
    "an administrator too": f"/O=system:nodes/O=system:masters/CN=system:node:{NODE}",
    "the API server's kubelet client": "/O=system:nodes/CN=kube-apiserver-kubelet-client",
    "no node": "/O=system:nodes/CN=system:node:hostile",
}


@check("it gets no client certificate as {}", each=SUBJECTS)
def claims(title):
    _unsigned("client", CLIENT, subject=SUBJECTS[title])


@check("it gets no serving certificate as another node")
def serves_as_another():
    sans = [f"DNS:{OTHER}", f"IP:{address(OTHER)}"]
    _unsigned("serving", SERVING, subject=SUBJECTS["another node"], sans=sans)


@check("it gets no client certificate with an address, and no certificate for both purposes")
def mixes():
    denied(_requested("client", CLIENT, sans=[f"IP:{address(NODE)}"]))
    denied(_requested("both", (SERVING[0], "client auth"), sans=[f"IP:{address(NODE)}"]))


@check("it may not approve a request")
def approves():
    # The signer of other clients: no controller answers it.
    name = _requested("other", ("kubernetes.io/kube-apiserver-client", "client auth"), subject="/CN=hostile")
    _refused(_kubelet("certificate", "approve", name))
    expect(not get("csr", name).get("status", {}).get("certificate"), "it was signed")


@check("a proxy does not take its server for an API server")
def is_no_api_server():
    script = """
        mkdir -p "$1"; cd "$1"; echo ok > readyz
        pem=/var/lib/kubelet/pki/kubelet-server-current.pem
        openssl s_server -accept 16443 -cert $pem -key $pem -WWW >server.log 2>&1 & server=$!
        socket="s|^global|global\\n    stats socket $1/socket|"
        sed -e 's/127.0.0.1:7443/127.0.0.1:17443/' -e "$socket" "$3" > haproxy.cfg
        echo "    server hostile $2:16443" >> haproxy.cfg
        haproxy -db -f haproxy.cfg >haproxy.log 2>&1 & proxy=$!
        trap 'kill $server $proxy' EXIT
        for _ in $(seq 100); do
            sleep 0.2
            echo 'show stat' | socat - "UNIX-CONNECT:$1/socket" > stat 2>/dev/null || continue
            grep -q '^kube-apiservers,hostile,.*,DOWN,' stat && break
        done
        grep '^kube-apiservers,' stat
    """
    rows = [line.split(",") for line in shell(NODE, script, DIRECTORY, address(NODE), HAPROXY).splitlines()]
    status = {row[1]: (row[17], row[36]) for row in rows if row[1] != "BACKEND"}
    expect_equal("its server", status.pop("hostile", None), ("DOWN", "L6RSP"))
    expect_equal("API servers", sorted(status), sorted(with_role("master")))
    expect(all(state == "UP" for state, _ in status.values()), f"{status}")


# Nothing has come of it.


@check("what metalform recorded of {} is unchanged", each=NODES)
def records_are_unchanged(node):
    expect_equal("metalform's keys", _records()[node], STATE["records"][node])


@check("deploying another worker changes no haproxy.cfg")
def proxies_are_unchanged():
    done = metalform("deploy-node", OTHER)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)
    expect_equal("digests", _proxies(), STATE["haproxy"])


@check("it reports the machine ID of another worker, which is deployed all the same")
def claims_machine():
    def reported(name):
        return get("node", name)["status"]["nodeInfo"]["machineID"]

    machine = reported(OTHER)
    # A kubelet that runs reports its own again.
    succeed(NODE, "systemctl", "stop", "kubelet")
    try:
        node = get("node", NODE)
        node["status"]["nodeInfo"]["machineID"] = machine
        done = _replace(f"{OWN}/status", node)
        expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)
        done = metalform("deploy-node", OTHER)
        expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)
        expect_equal("machine ID", reported(NODE), machine)
    finally:
        succeed(NODE, "systemctl", "start", "kubelet")
    until("the kubelet reports its own machine ID again", 60, lambda: reported(NODE) != machine)


# Without the policy.

PROBE = ["annotate", "node", NODE, "metalform.dev/policy-probe=scenario", "--dry-run=server"]


@check("while the policy is not enforced, no serving certificate is issued")
def without_the_policy():
    binding = get("validatingadmissionpolicybinding", POLICY)
    STATE["binding"] = {key: binding[key] for key in ("apiVersion", "kind", "spec")}
    STATE["binding"]["metadata"] = {"name": POLICY}
    kubectl("delete", "validatingadmissionpolicybinding", POLICY)
    _everywhere("the policy is not enforced", lambda done: done.returncode == 0)
    reason = denied(_requested("unguarded", SERVING, sans=OWN_SANS))
    expect("metalform bootstrap" in reason, reason)


@check("metalform bootstrap restores the policy")
def restored():
    done = metalform("bootstrap")
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)
    STATE.pop("binding", None)
    _everywhere("the policy is enforced", lambda done: POLICY in done.stderr)
    _signed(_requested("guarded", SERVING, sans=OWN_SANS))


def _everywhere(sentence, holds):
    """Each API server has its own view of the policy, and the signer may ask any of them."""
    words = [*PROBE, f"--as=system:node:{NODE}", "--as-group=system:nodes"]
    for master in with_role("master"):
        server = f"--server=https://{address(master)}:6443"
        probe = ["kubectl", f"--kubeconfig={ADMIN}", server, *words]
        until(f"{sentence} on {master}", 30, lambda probe=probe: holds(on(BOOTSTRAP, *probe)))


def _kubelet(*words, stdin=None):
    """kubectl on the worker, with the kubelet's credentials."""
    return on(NODE, KUBECTL, f"--kubeconfig={KUBECONFIG}", f"--cache-dir={DIRECTORY}", *words, stdin=stdin)


def _replace(path, target):
    """PUT of an object with the kubelet's credentials, whatever its version is by now."""
    target["metadata"].pop("resourceVersion")
    return _kubelet("replace", "--raw", path, "-f", "-", stdin=json.dumps(target))


def _refused(done, *reasons):
    """The API server refused it (403), for one of these reasons; another failure proves nothing."""
    text = done.stdout + done.stderr
    expect(done.returncode != 0, f"it was accepted: {text}")
    expect("forbidden" in text.lower(), f"it failed, but was not refused: {text}")
    expect(not reasons or any(reason in text for reason in reasons), f"refused for another reason: {text}")


def _request(title, signer, subject=node_subject(NODE), sans=(), seconds=None):
    """Creates a certificate request with the kubelet's credentials; returns its name and how that ended."""
    STATE["requests"] = STATE.get("requests", 0) + 1
    name = f"hostile-{title}-{STATE['requests']}"
    csr = certificate_request(name, NODE, signer, subject, sans, seconds)
    return name, _kubelet("create", "--validate=false", "-f", "-", stdin=yaml.safe_dump(csr))


def _requested(*words, **more):
    """As `_request`, which the API server accepts; returns the name alone."""
    name, done = _request(*words, **more)
    expect_equal(f"exit code of the request\n{done.stderr}", done.returncode, 0)
    return name


def _unsigned(*words, **more):
    """The request is denied by the signer, or refused by the API server before."""
    name, done = _request(*words, **more)
    if done.returncode == 0:
        denied(name)
    else:
        _refused(done)


def _signed(name):
    certificate, reasons = answer(name)
    expect(certificate and not reasons, f"{name} was denied: {reasons}")
    return base64.b64decode(certificate).decode()


def _records():
    """Node → metalform's annotations and labels."""
    prefixes = ("metalform.dev/", "metalk8s.scality.com/")
    found = {}
    for node in get("nodes")["items"]:
        both = {**node["metadata"].get("labels", {}), **node["metadata"].get("annotations", {})}
        found[node["metadata"]["name"]] = {key: value for key, value in both.items() if key.startswith(prefixes)}
    return found


def _proxies():
    return {node: succeed(node, "sha256sum", HAPROXY).split()[0] for node in NODES}
