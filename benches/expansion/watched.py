"""A client of the API that reads objects since before a clock runs, so that its own start is not measured."""

import contextlib

from checks import Failed
from cluster import ADMIN, BOOTSTRAP, begin

# Seconds.
_PATIENCE = 600


@contextlib.contextmanager
def watched(kind, namespace, path, expected):
    """Yields a function that returns as soon as an object of the namespace shows this at a JSONPath. There must be none."""
    command = ["timeout", str(_PATIENCE), "kubectl", f"--kubeconfig={ADMIN}", "get", kind, "-n", namespace, "--watch"]
    client = begin(BOOTSTRAP, *command, "-o", f"jsonpath={{.metadata.name}} {path}{{'\\n'}}")

    def wait():
        for line in client.stdout:
            if line.split()[1:] == [expected]:
                return
        raise Failed(f"no {kind} of {namespace} has shown {expected} at {path}")

    try:
        yield wait
    finally:
        client.terminate()
        client.wait(timeout=10)
