"""The trial of crashes: requests that a worker dies of, at a steady pace, beside other clients."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from trials import servers
from trials.clients import Load, Plan, make_documents
from trials.trial import CRASH_BUILD, Context, Row, Trial, makes_processes, skipped

LONGEST_WAIT = 0.3


def _poison(port: int) -> None:
    """A request that ends the process that serves it."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 2) as client:
        client.settimeout(2)
        client.sendall(b"GET /crash HTTP/1.1\r\nHost: localhost\r\n\r\n")
        client.recv(1)


def _try(context: Context, name: str, documents: Path, pace: int) -> Iterator[Row]:
    seconds = 2 if context.quick else 12
    server = servers.start(context, name, documents, build=CRASH_BUILD)
    load = Load(Plan(server.port, fresh=4, kept=0, pause=0.01))
    load.wait_for(20)
    begin = time.monotonic()
    for number in range(seconds * pace):
        time.sleep(max(begin + number / pace - time.monotonic(), 0))
        _poison(server.port)
    counts = load.end()
    served = servers.answers(server)
    server.end()
    case = f"{pace} crashes a second for {seconds} s, {counts.answered} requests of others answered"
    crashes = seconds * pace
    yield context.judge(
        name,
        case,
        crashes,
        "longest wait of others",
        counts.longest,
        LONGEST_WAIT,
        " s",
        is_time=True,
    )
    yield Row(name, case, str(crashes), "requests of others cut off by a crash", str(counts.lost))
    failed = counts.refused + counts.late + counts.wrong + (not served)
    yield context.judge(name, case, crashes, "requests of others refused, late or wrong", failed, 0)


def run(context: Context) -> Iterator[Row]:
    documents = make_documents(context.folder())
    for name in context.models:
        if not makes_processes(name):
            yield skipped(name, "crashes", "all connections are in one process, which a crash ends")
            continue
        for pace in (5, 10):
            yield from _try(context, name, documents, pace)


TRIAL = Trial(
    "crash",
    "Crashes of workers",
    "Servers of `make crash`, in which a request for `/crash` ends the process that serves it: 5 "
    "and 10 of these a second, while four other clients make a request each 10 ms, on a new "
    "connection each.",
    "The longest wait of the other clients, from the first try to the whole response; those that "
    "were served by the same process try again.",
    run,
    peers="No peer has a request that crashes it: [Killed processes](#killed-processes) compares with peers.",
)
