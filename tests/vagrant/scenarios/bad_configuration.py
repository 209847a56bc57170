"""A bootstrap.yaml that is wrong is refused before anything is done, on a host that is bare."""

import os

import yaml

from checks import check
from cluster import BOOTSTRAP, LAB_DIRECTORY, copy, discard, fresh, on, succeed
from refusal import Unchanged, expect_refusal

HOST = "spare-2"
FILE = "/etc/metalform/bootstrap.yaml"


def set_up():
    fresh(HOST)
    copy("/usr/local/bin/metalform", BOOTSTRAP, HOST)


def tear_down():
    discard(HOST)


@check("an unknown field is refused with its line and column")
def unknown_field():
    configuration = _configuration()
    configuration["networks"]["workloadPlane"]["mtuu"] = 9000
    line = 1 + next(n for n, line in enumerate(_text(configuration).splitlines()) if "mtuu" in line)
    _refused(configuration, rf"bootstrap\.yaml:{line}:\d+", "mtuu")


@check("networks that overlap are refused, and both are named")
def overlapping_networks():
    configuration = _configuration()
    configuration["networks"]["pods"] = "10.20.0.0/16"
    _refused(configuration, "overlap", r"10\.20\.0\.0/16", r"10\.20\.0\.0/24")


@check("every invalid value is reported at once")
def all_at_once():
    configuration = _configuration()
    configuration["networks"].update(pods="10.20.0.0/16", services="10.21.0.0/16")
    _refused(configuration, "networks.pods", "networks.services", errors=2)


@check("a file that does not exist is named")
def no_file():
    succeed(HOST, "rm", "-f", FILE)
    with Unchanged(HOST):
        expect_refusal(on(HOST, "metalform", "bootstrap"), 1, r"/etc/metalform/bootstrap\.yaml")


def _configuration():
    with open(os.path.join(LAB_DIRECTORY, "bootstrap.yaml"), encoding="utf-8") as file:
        return yaml.safe_load(file)


def _text(configuration):
    return yaml.safe_dump(configuration, sort_keys=False)


def _refused(configuration, *patterns, errors=1):
    succeed(HOST, "sh", "-c", f"mkdir -p /etc/metalform && cat > {FILE}", stdin=_text(configuration))
    with Unchanged(HOST):
        expect_refusal(on(HOST, "metalform", "bootstrap"), 1, *patterns, errors=errors)
