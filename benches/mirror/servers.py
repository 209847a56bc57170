"""metalform with its registry, and nginx: the same files, the same certificate, the same processors, the same user."""

import os
import socket
import subprocess

from checks import Failed, until
from load import on, processors

METALFORM_PORT, NGINX_PORT = 8443, 9443
_REGISTRY_PORT = 5000
_USER = 65534
_PATIENCE = 20
_TICKS = os.sysconf("SC_CLK_TCK")

_REGISTRY = """\
version: 0.1
log: {{ level: warn }}
storage:
  filesystem: {{ rootdirectory: {data} }}
  maintenance:
    readonly: {{ enabled: true }}
    uploadpurging: {{ enabled: false }}
http:
  addr: 127.0.0.1:{port}
"""
# Debian's nginx.conf, where it concerns files; without the log of requests, which metalform has none of either.
_NGINX = """\
worker_processes {workers};
daemon off;
pid {place}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 768; }}
http {{
    sendfile on;
    tcp_nopush on;
    default_type application/octet-stream;
    access_log off;
    keepalive_requests 1000000;
    client_body_temp_path {place}/body;
    proxy_temp_path {place}/proxy;
    fastcgi_temp_path {place}/fastcgi;
    uwsgi_temp_path {place}/uwsgi;
    scgi_temp_path {place}/scgi;
    server {{
        listen {port} ssl;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_certificate {place}/tls.crt;
        ssl_certificate_key {place}/tls.key;
        location /bundles/{kubernetes}/ {{ alias {bundle}/; }}
        location ~ ^/v2/.+/blobs/sha256:([0-9a-f]+)$ {{ alias {bundle}/images/blobs/sha256/$1; }}
    }}
}}
"""


class Servers:
    """Both of them, until they are closed. `place` is a directory that their user can write to."""

    def __init__(self, metalform, content, place):
        self.authority = os.path.join(place, "tls.crt")
        self._place, self._running = place, []
        self._make_certificate()
        os.chown(place, _USER, _USER)
        data = os.path.join(place, "registry")
        content.write_registry(data)
        subprocess.run(["dpkg-deb", "--extract", content.package("registry"), os.path.join(place, "root")], check=True)
        os.makedirs(indexes := os.path.join(place, "indexes"))
        registry = self._write("registry.yaml", _REGISTRY.format(data=data, port=_REGISTRY_PORT))
        nginx = self._write(
            "nginx.conf",
            _NGINX.format(
                workers=len(processors()[0]), place=place, port=NGINX_PORT, kubernetes=content.kubernetes, bundle=content.bundle
            ),
        )
        try:
            self.registry = self._start(os.path.join(place, "root/usr/bin/registry"), "serve", registry)
            self.metalform = self._start(
                metalform, "serve", f"--listen=0.0.0.0:{METALFORM_PORT}", f"--bundle={content.kubernetes}={content.bundle}",
                f"--indexes={indexes}", f"--certificate={self.authority}", f"--key={os.path.join(place, 'tls.key')}",
            )  # fmt: skip
            self.nginx = self._start("nginx", "-p", place, "-c", nginx, "-e", "stderr")
            for port in (_REGISTRY_PORT, METALFORM_PORT, NGINX_PORT):
                until(f"port {port} is open", _PATIENCE, lambda port=port: _is_open(port))
        except Failed as failure:
            self.close()
            raise Failed(f"{failure}\n{self.log()}") from failure

    def log(self):
        """The end of what the servers have printed."""
        with open(os.path.join(self._place, "log"), encoding="utf-8", errors="replace") as log:
            return log.read()[-1500:]

    def close(self):
        for process in self._running:
            process.terminate()
        for process in self._running:
            process.wait()

    def busy(self, *processes):
        """Seconds that these and their children have used processors for."""
        return sum(_seconds(pid) for process in processes for pid in _family(process.pid))

    def forget_peak(self):
        """What metalform has used before counts no more."""
        with open(f"/proc/{self.metalform.pid}/clear_refs", "w", encoding="ascii") as file:
            file.write("5")

    def peak(self, process):
        """Resident memory at its peak, in bytes."""
        with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024

    def _make_certificate(self):
        """With a key as those of metalform's own CA have."""
        names = "subjectAltName=IP:10.99.0.1,IP:127.0.0.1"
        key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", os.path.join(self._place, "tls.key")]
        certificate = ["-x509", "-days", "90", "-subj", "/CN=bench-mirror", "-addext", names, "-out", self.authority]
        subprocess.run(["openssl", "req", *key, *certificate], check=True, capture_output=True)
        os.chown(os.path.join(self._place, "tls.key"), _USER, _USER)

    def _write(self, name, text):
        path = os.path.join(self._place, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
        return path

    def _start(self, *command):
        user = ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups"]
        # The registry logs each request, here as in a cluster.
        with open(os.path.join(self._place, "log"), "ab") as log:
            process = subprocess.Popen(
                on(processors()[0], *user, *command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "OTEL_TRACES_EXPORTER": "none"},
                cwd=self._place,
            )
        self._running.append(process)
        return process


def _is_open(port):
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False


def _family(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        children = file.read().split()
    return [pid, *(each for child in children for each in _family(int(child)))]


def _seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
