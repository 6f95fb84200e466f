"""The trial of crashes: requests that a worker dies of, at a steady pace, beside other clients."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from trials import servers
from trials.clients import Load, Plan, make_documents
from trials.patience import patience
from trials.trial import CRASH_BUILD, Context, Row, Trial, makes_processes, skipped

LONGEST_WAIT = 0.3
# Crashes a second, and for how many seconds.
PACES = {5: 5, 10: 20}


def _poison(port: int) -> bool:
    """A request that ends the process that serves it. Returns true if that process took it, and
    ended its connection without a response."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), patience(2)) as client:
        client.settimeout(patience(2))
        try:
            client.sendall(b"GET /crash HTTP/1.1\r\nHost: localhost\r\n\r\n")
            return client.recv(1) == b""
        except ConnectionError:
            return True
    return False


def _try(context: Context, name: str, documents: Path, pace: int) -> Iterator[Row]:
    seconds = 2 if context.quick else PACES[pace]
    server = servers.start(context, name, documents, build=CRASH_BUILD)
    load = Load(Plan(server.port, fresh=4, kept=0, pause=0.01))
    load.wait_for(20)
    begin = time.monotonic()
    crashed = 0
    for number in range(seconds * pace):
        time.sleep(max(begin + number / pace - time.monotonic(), 0))
        crashed += _poison(server.port)
    counts = load.end()
    served = servers.answers(server)
    server.end()
    case = context.case(name, f"{pace} crashes a second for {seconds} s", seconds * pace)
    yield from case.premise(f"{crashed} processes crashed", crashed == seconds * pace)
    yield case.fact("requests of others answered", counts.answered)
    yield case.fact("cut off by a crash", counts.lost)
    failed = counts.refused + counts.late + counts.wrong
    yield case.judge("refused, late or wrong", failed, 0)
    longest = round(counts.longest, 4)
    yield case.judge("longest wait", longest, LONGEST_WAIT, " s", is_time=True)
    yield case.served(served)


def run(context: Context) -> Iterator[Row]:
    documents = make_documents(context.folder())
    for name in context.models:
        if not makes_processes(name):
            yield skipped(name, "crashes", "a crash ends all connections: they are in one process")
            continue
        for pace in PACES:
            yield from _try(context, name, documents, pace)


TRIAL = Trial(
    "crash",
    "Crashes of workers",
    "Servers of `make crash`, in which a request for `/crash` ends the process that serves it: 5 "
    "and 10 of these a second, while four other clients make a request each 10 ms, on a new "
    "connection each.",
    "The longest wait of the other clients is from the first try to the whole response; those that "
    "were served by the same process are cut off, and try again.",
    run,
    peers="No peer has a request that crashes it: [Killed processes](#killed-processes) compares with peers.",
)
