"""The trial of memory: what servers hold before, during and after thousands of slow clients."""

from __future__ import annotations

import ssl
import subprocess
import time
from collections.abc import Callable, Iterator

from trials import process_tree, servers
from trials.clients import Crowd, make_documents, trusting
from trials.trial import PROJECT, Context, Row, Trial, default_connections

CLIENTS = 2000
PATIENCE = 60.0
# Memory at most this many percent, or SPARE_KIB, above that before the clients counts as unchanged.
MARGIN = 10
# Pieces of the heap stay scattered: up to 130 KiB a worker after half handshakes, whether they come once or eight times.
SPARE_KIB = 512
# Crowds of so many clients, so many times, reach all workers: each then has what it keeps for good.
WORKERS, TIMES = 300, 2
# A server gives memory back when it has had few connections for a second.
STILL = 2.5


def _hello() -> bytes:
    """The first message of a TLS client."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = trusting().wrap_bio(incoming, outgoing)
    try:
        connection.do_handshake()
    except ssl.SSLWantReadError:
        return outgoing.read()
    raise AssertionError("a handshake without a server")


def _warm(server: servers.Server, crowd: Callable[[int], Crowd], count: int, still: float) -> None:
    """Lets all workers serve, so that what they keep for good counts as before."""
    for _ in range(10):
        servers.answers(server)
    for _ in range(TIMES):
        crowd(count).end()
        process_tree.held_at_rest(server.pid, still)


def _rows(
    context: Context,
    name: str,
    clients: int,
    server: servers.Server,
    what: list[str],
) -> Iterator[Row]:
    still = 0.2 if context.quick else STILL

    def crowd_of(count: int) -> Crowd:
        return Crowd(what[0], count, server.port, "/", *what[1:], "--patience", "2")

    _warm(server, crowd_of, min(WORKERS, clients), still)
    before = process_tree.held_at_rest(server.pid, still).kib
    crowd = crowd_of(clients)
    held = process_tree.held(server.pid).kib
    crowd.end()
    begin = time.monotonic()
    margin = max(MARGIN, 100 * SPARE_KIB / max(before, 1))
    most = before * (100 + margin) / 100
    process_tree.wait_until(
        lambda: process_tree.held_at_rest(server.pid).kib <= most, PATIENCE, 0.5
    )
    after = process_tree.held_at_rest(server.pid, still).kib
    seconds = time.monotonic() - begin
    case = context.case(server.name, f"{clients:,} {name}")
    yield from case.premise("most clients were not connected", crowd.connected > clients // 4)
    yield case.fact("connected", crowd.connected)
    yield case.fact("before", f"{before:,} KiB")
    yield case.fact("with them", f"{held:,} KiB")
    yield case.fact("when they have left", f"{after:,} KiB")
    yield case.fact("waited", f"{seconds:.0f} s")
    percent = round(100 * (after / max(before, 1) - 1), 1)
    yield case.judge("more than before", percent, round(margin, 1), "%")
    yield case.served(servers.answers(server))
    server.end()


def _options(name: str, clients: int) -> list[str]:
    """Room for all clients, where the model is not bound by its workers."""
    return ["--max-connections", str(clients + 100)] if default_connections(name) > 1 else []


def run(context: Context) -> Iterator[Row]:
    documents = make_documents(context.folder())
    clients = 100 if context.quick else CLIENTS
    folder = context.folder()
    (folder / "body").write_bytes(
        b"POST /small.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nx"
    )
    (folder / "hello").write_bytes(_hello())
    certificate = folder / "certificate"
    command = [str(PROJECT / "collect/certificate.sh"), str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    tls = ["--tls", "--cert", str(certificate / "cert.pem"), "--key", str(certificate / "key.pem")]
    for name in context.models:
        options = _options(name, clients)
        server = servers.start(context, name, documents, *options)
        slow = ["slow", "--send", str(folder / "body")]
        yield from _rows(context, "slow bodies", clients, server, slow)
        server = servers.start(context, name, documents, *options, *tls)
        half = ["hold", "--send", str(folder / "hello")]
        yield from _rows(context, "half handshakes", clients, server, half)
    for name in context.peers:
        server = servers.start(context, name, documents)
        yield from _rows(context, "slow bodies", clients, server, slow)


TRIAL = Trial(
    "memory",
    "Memory after attacks",
    f"{CLIENTS:,} clients that send a byte of a request's body a second; {CLIENTS:,} that send the "
    "first message of a TLS handshake and then nothing. Then all of them leave. Before, "
    f"{WORKERS} of them come and leave {TIMES} times so that all workers have served.",
    "The memory of all processes of the server (`Pss_Anon`: without files) must come back to that "
    f"before within {MARGIN}% (or {SPARE_KIB} KiB, where that is more), in {PATIENCE:.0f} s.",
    run,
    peers="Peers are tried with slow bodies alone.",
)
