"""A bundle with a file that is missing or altered does not verify; and is not used."""

import contextlib

from checks import check, expect, expect_equal
from cluster import BOOTSTRAP, metalform, shell, succeed
from refusal import expect_refusal

BUNDLE = "/srv/metalform/bundle"
COPY = "/srv/metalform/scenario-bundle"


def set_up():
    # Links: the files themselves are not copied, so what is altered must be replaced.
    succeed(BOOTSTRAP, "cp", "-al", BUNDLE, COPY)


def tear_down():
    succeed(BOOTSTRAP, "rm", "-rf", COPY)


@check("a whole bundle verifies")
def whole():
    done = metalform("bundle", "verify", COPY)
    expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)


@check("an image's layer that is missing is named")
def missing_layer():
    _spoilt(_some_file("images/blobs"), "rm \"$1\"")


@check("a package that is missing is named")
def missing_package():
    _spoilt(_some_file("apt/pool"), "rm \"$1\"")


@check("a package with one byte more is named")
def altered_package():
    _spoilt(_some_file("apt/pool"), 'cp "$1" "$1.new"; printf x >> "$1.new"; mv "$1.new" "$1"')


@check("a package with another byte at the same length is named")
def altered_byte():
    replace = "printf 'x' | dd of=\"$1.new\" bs=1 seek=100 conv=notrunc status=none"
    _spoilt(_some_file("apt/pool"), f'cp "$1" "$1.new"; {replace}; mv "$1.new" "$1"')


@check("every bad file is named at once")
def all_at_once():
    first, second = _some_file("apt/pool"), _some_file("images/blobs")
    with _change(first, 'rm "$1"'), _change(second, 'rm "$1"'):
        done = metalform("bundle", "verify", COPY)
        expect(first in done.stderr and second in done.stderr, done.stderr)


def _some_file(directory):
    return min(shell(BOOTSTRAP, f"cd {COPY} && find {directory} -type f").split())


def _spoilt(name, change):
    with _change(name, change):
        done = metalform("bundle", "verify", COPY)
        # Files that refer to it may be reported too, so there may be several lines.
        errors = sum(line.startswith("error: ") for line in done.stderr.splitlines())
        expect_refusal(done, 4, name, errors=max(errors, 1))


@contextlib.contextmanager
def _change(name, change):
    path = f"{COPY}/{name}"
    shell(BOOTSTRAP, change, path)
    try:
        yield
    finally:
        succeed(BOOTSTRAP, "ln", "-f", f"{BUNDLE}/{name}", path)
