"""The trial of symlinks: a folder that is exchanged with a symlink out of the root, again and again."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import re
import time
from collections.abc import Iterator
from ctypes import c_longlong
from pathlib import Path

from trials import servers
from trials.clients import fetch
from trials.trial import Context, Row, Trial

RENAME_EXCHANGE = 2
AT_FDCWD = -100
SECRET = b"this is outside of the root"


def _exchange(one: Path, other: Path) -> None:
    """Exchanges two names in one step."""
    library = ctypes.CDLL(None, use_errno=True)
    names = (AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other))
    if library.renameat2(*names, RENAME_EXCHANGE):
        raise OSError(ctypes.get_errno(), "renameat2")


def _race(folder: Path, link: Path, count: c_longlong) -> None:
    """Exchanges the folder and the symlink as fast as it can, until it is killed."""
    while True:
        _exchange(folder, link)
        count.value += 1


def _tree(folder: Path) -> Path:
    """Makes a root with `d/file.txt` and a symlink `other` to a folder outside of it."""
    outside, root = folder / "outside", folder / "root"
    for place, text in ((outside, SECRET), (root / "d", b"inside")):
        place.mkdir(parents=True)
        (place / "file.txt").write_bytes(text)
        (place / "file.txt").chmod(0o644)
    (root / "other").symlink_to(outside)
    (root / "small.txt").write_bytes(b"s" * 1000)
    return root


def _strict(name: str) -> servers.Change:
    """Has a peer refuse symlinks."""

    def change(text: str) -> str:
        if name == "nginx":
            return text.replace("sendfile on;", "sendfile on;\n    disable_symlinks on;")
        if name == "lighttpd":
            return text + 'server.follow-symlink = "disable"\n'
        return re.sub(r"(Require all granted)", r"\1\n    Options None", text)

    return change


def _try(context: Context, name: str) -> Iterator[Row]:
    root = _tree(context.folder())
    change = _strict(name) if name in servers.RECIPES else None
    server = servers.start(context, name, root, change=change)
    context_of = multiprocessing.get_context("fork")
    count = context_of.RawValue("q", 0)
    racer = context_of.Process(target=_race, args=(root / "d", root / "other", count), daemon=True)
    racer.start()
    end = time.monotonic() + 60
    most = 300 if context.quick else 8000
    asked = leaked = inside = naive = 0
    raced = False
    while (asked < most or not raced) and time.monotonic() < end:
        response = fetch(server.port, "/d/file.txt")
        asked += 1
        leaked += SECRET in response
        inside += response.endswith(b"inside")
        naive += (root / "d" / "file.txt").read_bytes() == SECRET
        raced = count.value > asked and 0 < inside < asked and naive > 0
    racer.kill()
    racer.join()
    served = servers.answers(server)
    server.end()
    case = context.case(name, "requests in a race", asked)
    yield from case.premise("the folder and the symlink did not change places", raced)
    yield case.fact("exchanges", count.value)
    yield case.fact("of as many plain open(), from outside", naive)
    yield case.fact("responses from inside", inside)
    yield case.judge("responses from outside of the root", leaked, 0)
    yield case.served(served)


def run(context: Context) -> Iterator[Row]:
    for name in [*context.models, *context.peers]:
        yield from _try(context, name)


TRIAL = Trial(
    "symlinks",
    "Symlinks",
    "A folder of the root and a symlink to a folder outside of it exchange their names as fast as "
    "possible (`renameat2`), while a client asks for a file below that name.",
    "A response with a document from outside of the root is a leak. Beside each request the trial opens "
    "the same name by `open()`, which follows symlinks: so it is seen that a careless server would leak.",
    run,
    peers="Peers are told to follow no symlinks: `disable_symlinks on`, `server.follow-symlink`, `Options None`.",
)
