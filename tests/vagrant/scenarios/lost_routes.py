"""Rules and routes of the pod network that a node has lost while it runs are back after the next deployment."""

from checks import check, expect, expect_equal, until
from cluster import metalform, shell, succeed

NODE = "node-2"
SERVICE = "metalform-pod-network.service"
TABLE = ["table", "ip", "metalform"]
# Those that the service adds.
_ROUTES = "sed -n 's/^ExecStart=.*ip route replace //p' \"/etc/systemd/system/$1\""
# nftables.service flushes every table; here that of pods alone, or kube-proxy would lose its own.
_DROP_IN = "/run/systemd/system/nftables.service.d/scenario.conf"
_FLUSH = "-/usr/sbin/nft delete table ip metalform"
_SERVICE = f"[Service]\nExecStart=\nExecStart={_FLUSH}\nExecReload=\nExecReload={_FLUSH}\nExecStop=\n"


def set_up():
    _deploy()


def tear_down():
    shell(NODE, 'systemctl stop nftables; rm -rf "${1%/*}"; systemctl daemon-reload; systemctl restart "$2"', _DROP_IN, SERVICE)


@check("deploy-node adds them again where another program has removed them")
def removed():
    routes = shell(NODE, _ROUTES, SERVICE).splitlines()
    expect(routes, f"{SERVICE} adds no route")
    succeed(NODE, "nft", "delete", *TABLE)
    for route in routes:
        succeed(NODE, "ip", "route", "del", *route.split())
    done = _deploy()
    expect("(changed=0)" not in done, done)
    succeed(NODE, "nft", "list", *TABLE)
    for route in routes:
        _expect_route(route)


@check("the same again changes nothing")
def again():
    done = _deploy()
    expect("(changed=0)" in done, done)


@check("a {} of nftables.service, which flushes the rules, adds them again", each=["restart", "reload"])
def flushed(verb):
    shell(NODE, 'mkdir -p "${1%/*}"; cat > "$1"; systemctl daemon-reload; systemctl start nftables', _DROP_IN, stdin=_SERVICE)
    succeed(NODE, "systemctl", "restart", SERVICE)
    succeed(NODE, "systemctl", verb, "nftables.service")
    until("the table of pods", 20, lambda: succeed(NODE, "nft", "list", *TABLE))
    until(f"{SERVICE} to be active", 20, lambda: succeed(NODE, "systemctl", "is-active", SERVICE))


def _expect_route(route):
    words = route.split()
    selector = ["type", words[0], "exact", words[1]] if words[0] == "unreachable" else ["exact", words[0]]
    expect(succeed(NODE, "ip", "route", "show", *selector).strip(), f"no route {route}")


def _deploy():
    done = metalform("deploy-node", NODE)
    expect_equal(f"exit code\n{done.stdout}{done.stderr}", done.returncode, 0)
    return done.stdout
