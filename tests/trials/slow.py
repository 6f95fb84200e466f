"""The trial of slow clients: thousands that hold connections from many addresses, and probes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trials import servers
from trials.clients import Crowd, make_documents, probe
from trials.trial import Context, Row, Trial, default_connections, skipped

PROBES = 90
ADDRESSES = 1000
# Slow readers leave a few MiB each in the buffers of the kernel.
QUICK_CLIENTS = 60
# The peers' limits of connections are raised so that the clients fit.
CONNECTIONS = 8192
KINDS = ("slow headers", "slow body", "slow reading", "idle")


def _crowd(kind: str, count: int, port: int, body: Path) -> Crowd:
    options = ["--addresses", str(ADDRESSES), "--patience", "1"]
    if kind == "slow headers":
        return Crowd("slow", count, port, "/small.txt", *options)
    if kind == "slow body":
        return Crowd("slow", count, port, "/", *options, "--send", str(body))
    if kind == "slow reading":
        return Crowd("read", count, port, "/big.bin", *options)
    return Crowd("idle", count, port, "/small.txt", *options, "--again")


def _promises(name: str) -> bool:
    """Returns true if a server of ours promises to serve others whatever slow clients do. Workers
    with one connection each do not promise that."""
    one_each = default_connections(name) in (0, 1)
    return not one_each


def _full(name: str) -> int:
    """Returns how many connections mean that a server of ours has hardly a place left."""
    return default_connections(name) * 9 // 10 or CONNECTIONS


def _try(
    context: Context, name: str, kind: str, count: int, documents: Path, body: Path
) -> Iterator[Row]:
    made = 10 if context.quick else PROBES
    options = ["--max-connections", str(count // 2)] if context.quick else []
    ours = name not in servers.RECIPES
    if ours:
        server = servers.start(context, name, documents, *(options if _promises(name) else []))
    else:
        server = servers.start(context, name, documents, change=_raised)
    crowd = _crowd(kind, count, server.port, body)
    seen = probe(server.port, made, 0.05)
    told = crowd.end()
    served = servers.answers(server)
    server.end()
    case = context.case(name, f"{count:,} clients: {kind}", made)
    yield from case.premise(
        "too few clients were connected",
        crowd.connected > (min(count // 4, _full(name)) if ours else count // 4),
    )
    yield case.fact("connected", crowd.connected)
    yield case.fact("cut off", told.get("cut", 0) + told.get("lost", 0))
    promises = not ours or _promises(name)
    failed = "probes that failed"
    yield case.judge(failed, seen.failed, 0) if promises else case.fact(failed, seen.failed)
    longest = f"{seen.longest:.3f} s" if seen.failed < made else "none was answered"
    yield case.fact("longest wait of a probe", longest)
    yield case.served(served)


def _raised(text: str) -> str:
    """Gives a peer room for all the clients, where its model has a limit that can be raised."""
    limits = {
        "worker_connections 4096": f"worker_connections {CONNECTIONS}",
        "server.max-connections = 4096": f"server.max-connections = {CONNECTIONS}",
        "server.max-fds = 8192": f"server.max-fds = {2 * CONNECTIONS}",
    }
    for old, new in limits.items():
        text = text.replace(old, new)
    return text


def run(context: Context) -> Iterator[Row]:
    documents = make_documents(context.folder())
    body = context.folder() / "body"
    body.write_bytes(
        b"POST /small.txt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nx"
    )
    for name in context.models:
        if context.quick and not _promises(name):
            # Nothing of it would be judged, and its probes would wait long.
            yield skipped(
                name, "slow clients", "a server with one connection each promises nothing"
            )
            continue
        for count in (
            (QUICK_CLIENTS,) if context.quick else (2000, 5000) if _promises(name) else (2000,)
        ):
            for kind in KINDS:
                yield from _try(context, name, kind, count, documents, body)
    for name in context.peers:
        for kind in KINDS:
            yield from _try(context, name, kind, 2000, documents, body)


TRIAL = Trial(
    "slow",
    "Slow clients",
    f"2,000 and 5,000 clients from {ADDRESSES:,} addresses, each of which sends a byte of its "
    "request's head a second, or of its body, or reads a byte of an 8 MiB document a second, or "
    "does nothing after a first request. Those that are cut off connect again at once. Beside them, "
    f"{PROBES} requests from another address, 20 a second, on a connection each.",
    "A probe fails that has no whole response in 3 s. A server whose workers serve a connection "
    "each (iterative, prefork, pool) promises nothing here: its probes have no limit.",
    run,
    peers=f"nginx and lighttpd have room for {CONNECTIONS:,} connections; Apache has its 512 threads, and queues "
    "the rest of its connections in an event loop.",
)
