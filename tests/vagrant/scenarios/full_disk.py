"""No room, or a file system that cannot be written: one line names the resource and the reason, and a later run converges."""

import contextlib

from checks import check, expect_equal
from cluster import on, shell
from engine import HOST as HOST_CODE
from engine import changed, expect_failure, tree

HOST = "node-2"
ROOM = "/srv/room"
LARGE = "a line of a file that does not fit\n" * 20_000


def tear_down():
    shell(HOST, f"! mountpoint -q {ROOM} || umount {ROOM}; rm -rf {ROOM} /srv/beside")


@contextlib.contextmanager
def _mounted(where, options):
    shell(HOST, 'mkdir -p "$1" && mount -t tmpfs -o "$2" tmpfs "$1"', where, options)
    try:
        yield
    finally:
        shell(HOST, 'umount "$1"', where)


def _files(where):
    return shell(HOST, 'find "$1" -mindepth 1', where).split()


@check("a payload that does not fit: resources before it are applied, those after it are not, nothing is left of it")
def payload_does_not_fit():
    resources = [{"file": f"{ROOM}/before", "content": "1"}, {"file": f"{ROOM}/large", "content": LARGE}, {"file": f"{ROOM}/after", "content": "2"}]
    with _mounted(ROOM, "size=256k"), tree(HOST, *resources) as it:
        expect_failure(it.run("apply"), HOST_CODE, HOST, f"file:{ROOM}/large", "No space left on device")
        expect_equal("files", [path for path in _files(ROOM) if path != f"{ROOM}/before"], [])
        shell(HOST, f"mount -o remount,size=4m {ROOM}")
        it.converge()


@check("an old version stays whole where the new one does not fit")
def old_version_stays():
    resource = {"file": f"{ROOM}/it", "content": LARGE}
    with _mounted(ROOM, "size=256k"), tree(HOST, resource) as it:
        shell(HOST, f"echo old > {ROOM}/it")
        expect_failure(it.run("apply"), HOST_CODE, HOST, f"file:{ROOM}/it", "No space left on device")
        expect_equal("the file", shell(HOST, f"cat {ROOM}/it"), "old\n")


@check("no inode is left")
def no_inode():
    with _mounted(ROOM, "nr_inodes=2"), tree(HOST, {"file": f"{ROOM}/a", "content": "1"}, {"file": f"{ROOM}/b", "content": "2"}) as it:
        expect_failure(it.run("apply"), HOST_CODE, HOST, f"file:{ROOM}/", "No space left on device")
        shell(HOST, f"mount -o remount,nr_inodes=100 {ROOM}")
        it.converge()


@check("a read-only file system: {}", each=["file", "directory", "symlink", "removal"])
def read_only(what):
    path = f"{ROOM}/it"
    resource = {
        "file": {"file": path, "content": "1"},
        "directory": {"directory": path},
        "symlink": {"symlink": path, "target": "x"},
        "removal": {"file": f"{ROOM}/there", "ensure": "absent"},
    }[what]
    with _mounted(ROOM, "size=256k"), tree(HOST, resource) as it:
        shell(HOST, f"echo > {ROOM}/there; mount -o remount,ro {ROOM}")
        expect_failure(it.run("apply"), HOST_CODE, HOST, f":{resource[next(iter(resource))]} ", "Read-only file system")
        shell(HOST, f"mount -o remount,rw {ROOM}")
        it.converge()


# Files that the engine itself writes temporarily must not be what fails.
_TMP = {"is full": "size=4k", "has no inode": "nr_inodes=1", "is read-only": "ro", "is noexec": "noexec"}


@check("/tmp {}: files are written all the same, and a command's output is not lost", each=_TMP)
def tmp(state):
    talks = {"command": "Talk", "run": "seq 2000 && echo last words && exit 9", "unless": "test -e /srv/beside/it.done"}
    with _mounted("/tmp", _TMP[state]), tree(HOST, {"file": "/srv/beside/it", "content": state}, talks) as it:
        on(HOST, "sh", "-c", "head -c 100000 /dev/zero > /tmp/filling")
        done = it.run("apply")
        expect_failure(done, HOST_CODE, HOST, "command:Talk failed with status 9: last words")
        expect_equal("the file", shell(HOST, "cat /srv/beside/it"), state)
        shell(HOST, "touch /srv/beside/it.done")
        it.converge()
        shell(HOST, "rm -r /srv/beside")


@check("a plan, and an apply that changes nothing, need no writable directory")
def no_room_needed():
    with tree(HOST, {"file": "/srv/beside/it", "content": "1"}) as it:
        it.converge()
        with _mounted("/tmp", "ro"), _mounted(ROOM, "ro"):
            done = it.run("apply")
        expect_equal(f"exit code\n{done.stderr}", done.returncode, 0)
        expect_equal("changed", changed(done), {HOST: 0})
