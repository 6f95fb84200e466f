"""Lets one study measure at a time: two at once would measure each other."""

from __future__ import annotations

import socket
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from collect.project import say

LOOK_SECONDS = 0.5


def _address() -> str:
    """Returns the name of a socket without a file, which ends with its process. Studies with
    another temporary folder do not wait for each other: tests use this."""
    return f"\0fork-vs-thread: a study measures, {tempfile.gettempdir()}"[:100]


def _holder() -> str:
    """Returns the number of the process that measures."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        try:
            asking.settimeout(1)
            asking.connect(_address())
            credentials = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        except OSError:
            return "unknown"
    return str(struct.unpack("3i", credentials)[0])


@contextmanager
def study_lock(check: Callable[[], None]) -> Iterator[None]:
    """Waits until no other study measures; `check` raises an exception to end the wait."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as held:
        told = False
        while True:
            check()
            try:
                held.bind(_address())
                break
            except OSError:
                if not told:
                    say(
                        f"Another study measures on this machine (process {_holder()}): this one "
                        "begins when it has ended. Ctrl-C gives up"
                    )
                told = True
                time.sleep(LOOK_SECONDS)
        held.listen(16)
        yield


@contextmanager
def study_lock_if_free() -> Iterator[None]:
    """Has other studies wait, if none measures: what is done here would be measured by them."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as held:
        with suppress(OSError):
            held.bind(_address())
            held.listen(16)
        yield
