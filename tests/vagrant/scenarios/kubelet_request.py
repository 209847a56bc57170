"""Certificate requests as a kubelet makes them, and how the signer answers."""

import base64

from checks import Failed, Final, until
from cluster import get, succeed

CLIENT = ("kubernetes.io/kube-apiserver-client-kubelet", "client auth")
SERVING = ("kubernetes.io/kubelet-serving", "server auth")
_OPENSSL = ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def node_subject(node):
    return f"/O=system:nodes/CN=system:node:{node}"


def certificate_request(name, host, signer, subject, sans=(), seconds=None):
    """The object, with a key that this host makes and forgets."""
    extension = ["-addext", f"subjectAltName={','.join(sans)}"] if sans else []
    pem = succeed(host, *_OPENSSL, "-keyout", "/dev/null", "-subj", subject, *extension)
    signer_name, usage = signer
    spec = {
        "request": base64.b64encode(pem.encode()).decode(),
        "signerName": signer_name,
        "usages": ["digital signature", usage],
    }
    if seconds:
        spec["expirationSeconds"] = seconds
    metadata = {"name": name}
    return {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": metadata, "spec": spec}


def answer(name):
    """The certificate and the reasons of a denial, once there is either."""
    return until(f"{name} is answered", 30, lambda: _answer(name))


def denied(name):
    """The reason why it was denied."""
    certificate, reasons = answer(name)
    if certificate or not reasons:
        raise Final(f"{name} was signed")
    return reasons[0]


def _answer(name):
    status = get("csr", name).get("status", {})
    reasons = [one.get("message", "") for one in status.get("conditions", []) if one["type"] in ("Denied", "Failed")]
    if not reasons and not status.get("certificate"):
        raise Failed(f"status: {status}")
    return status.get("certificate"), reasons
