"""The trial of stops: SIGTERM under full load, and during a download."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from signal import SIGTERM

from trials import servers
from trials.clients import Download, Load, Plan, make_documents
from trials.patience import patience
from trials.trial import Context, Row, Trial

STOP_SECONDS = 5  # the default of our servers; those of the peers are near it
DOWNLOAD = 8 << 20
DOWNLOAD_SECONDS = 2.0


def _stop_under_load(context: Context, name: str, documents: Path) -> tuple[int, int, int, int]:
    """Stops a server that works for 32 clients. Returns how many requests were answered, how many
    were lost whose connections began before and after the signal, and how many were late or got
    another response."""
    options = ["--stop-timeout", f"{patience(STOP_SECONDS):.0f}"]
    server = servers.start(context, name, documents, *options)
    load = Load(Plan(server.port))
    load.wait_for(50 if context.quick else 500)
    signalled = time.monotonic()
    server.send(servers.GRACEFUL.get(name, SIGTERM))
    servers.wait_for_end(server)
    counts = load.end()
    server.end()
    before = sum(began < signalled for began in counts.losses)
    return counts.answered, before, counts.lost - before, counts.late + counts.wrong


def _under_load(context: Context, name: str, documents: Path) -> Iterator[Row]:
    times = 2 if context.quick else 10
    stops = [_stop_under_load(context, name, documents) for _ in range(times)]
    answered, before, after, wrong = (sum(column) for column in zip(*stops, strict=True))
    case = context.case(name, "stops under load", times)
    yield case.fact("requests answered", answered)
    yield case.judge("lost that began before the signal", before, 0)
    yield case.judge("lost that began after it", after, 0)
    yield case.judge("late or wrong", wrong, 0)


def _is_taken(port: int) -> bool:
    """Returns true if somebody takes a connection and then gives no response. A server of one
    client at a time may give it after the download."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.5) as client:
        try:
            client.settimeout(patience(3 * DOWNLOAD_SECONDS))
            client.sendall(b"GET /small.txt HTTP/1.0\r\nHost: localhost\r\n\r\n")
            return not client.recv(100)
        except OSError:
            return True
    return False


def _during_download(context: Context, name: str, documents: Path) -> Iterator[Row]:
    times = 1 if context.quick else 3
    broken = taken = 0
    for _ in range(times):
        server = servers.start(context, name, documents)
        download = Download(server.port, "/big.bin", int(DOWNLOAD / DOWNLOAD_SECONDS))
        download.start()
        download.begun.wait(10)
        server.send(servers.GRACEFUL.get(name, SIGTERM))
        servers.wait_for_signal(server)
        while not download.ended:
            taken += _is_taken(server.port)
            time.sleep(0.1)
        broken += not download.whole
        server.end()
    case = context.case(name, f"stops during a download of {DOWNLOAD_SECONDS:g} s", times)
    yield case.judge("downloads cut off", broken, 0)
    yield case.judge("new clients without a response", taken, 0)


def run(context: Context) -> Iterator[Row]:
    documents = make_documents(context.folder())
    for name in [*context.models, *context.peers]:
        yield from _under_load(context, name, documents)
        yield from _during_download(context, name, documents)


TRIAL = Trial(
    "stop",
    "Stops",
    "SIGTERM (of the peers: their graceful stop) while 16 clients with a connection for each "
    "request and 16 with persistent connections ask as fast as they can; and while one client "
    "downloads 8 MiB in two seconds.",
    "A request is lost if it was sent whole on a connection that the server took, and got no whole "
    "response. A connection that is refused is no loss.",
    run,
)
