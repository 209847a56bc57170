"""A client of etcd that writes without pause, one key a write, and prints each confirmed write with its time.

    etcd_writer.py DIRECTORY write URL...       until it is ended
    etcd_writer.py DIRECTORY fill N URL...      N values of 1 MB each

DIRECTORY has ca.crt, client.crt and client.key. A write whose fate is unknown is repeated through the next URL.
"""

import base64
import http.client
import itertools
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.parse

PREFIX = "metalform-scenario/"
# Seconds for one member, and between a confirmation and the next write.
_PATIENCE, _PAUSE = 1, 0.02
_MEGABYTE = 1_000_000


class Gateway:
    """etcd's HTTP gateway, through one member until it fails."""

    def __init__(self, directory, urls, patience):
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.load_verify_locations(os.path.join(directory, "ca.crt"))
        self._context.load_cert_chain(os.path.join(directory, "client.crt"), os.path.join(directory, "client.key"))
        self._urls, self._patience, self._connection = itertools.cycle(urls), patience, None

    def put(self, key, value):
        """Returns when etcd has confirmed it."""
        body = json.dumps({"key": _encoded(key.encode()), "value": _encoded(value)})
        while not self._post("/v3/kv/put", body):
            self._connection = None
            # A refused connection fails at once; the member may be the only one for a moment.
            time.sleep(0.01)

    def _post(self, path, body):
        try:
            if self._connection is None:
                url = urllib.parse.urlsplit(next(self._urls))
                self._connection = http.client.HTTPSConnection(url.hostname, url.port, timeout=self._patience, context=self._context)
            self._connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = self._connection.getresponse()
            return "header" in json.loads(answer.read()) and answer.status == 200
        except (OSError, http.client.HTTPException, ValueError):
            return False


def _encoded(data):
    return base64.b64encode(data).decode("ascii")


def key(number):
    return f"{PREFIX}{number:08}"


class Writer:
    """The program above, started at the operator's place; what it prints is kept."""

    def __init__(self, lab, directory, urls):
        command = [lab, "run", "--", sys.executable, os.path.realpath(__file__), directory]
        self._fill = lambda megabytes: [*command, "fill", str(megabytes), *urls]
        self._record = os.path.join(directory, "confirmed")
        with open(self._record, "wb") as record:
            self._process = subprocess.Popen([*command, "write", *urls], stdin=subprocess.DEVNULL, stdout=record)
        self._began = time.monotonic()

    def fill(self, megabytes):
        """Makes the database larger, while the writer writes on."""
        subprocess.run(self._fill(megabytes), stdin=subprocess.DEVNULL, check=True, timeout=300)

    def confirmed(self):
        """The time of each confirmed write, by CLOCK_MONOTONIC, which all processes of a machine share."""
        with open(self._record, encoding="ascii") as record:
            return {int(number): float(when) for number, when in (line.split() for line in record if line.endswith("\n"))}

    def gap(self, since):
        """The longest time without a confirmation that ended after `since`, up to now; in seconds."""
        times = [self._began, *sorted(self.confirmed().values()), time.monotonic()]
        return max(after - before for before, after in zip(times, times[1:]) if after > since)

    def runs(self):
        return self._process.poll() is None

    def end(self):
        self._process.terminate()
        self._process.wait(timeout=10)


def main(directory, what, *words):
    if what == "fill":
        gateway = Gateway(directory, words[1:], 10)
        for number in range(int(words[0])):
            gateway.put(f"{PREFIX}fill/{number}", os.urandom(_MEGABYTE))
        return
    gateway = Gateway(directory, words, _PATIENCE)
    for number in itertools.count(1):
        gateway.put(key(number), str(number).encode())
        print(number, time.monotonic(), flush=True)
        time.sleep(_PAUSE)


if __name__ == "__main__":
    main(*sys.argv[1:])
