"""The trial of slow clients: thousands that hold connections from many addresses, and probes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trials import servers
from trials.clients import Crowd, make_documents, probe
from trials.trial import Context, Row, Trial, default_connections, default_of, skipped

PROBES = 90
PACE = 0.05
CLIENTS = (2000, 5000)
ADDRESSES = 1000
# Slow readers leave a few MiB each in the buffers of the kernel.
QUICK_CLIENTS = 60
# The peers' limits of connections are raised so that the clients fit.
CONNECTIONS = 8192
# A path of requests with a body, and where a peer would forward them to: nobody listens there.
BODY, NOBODY = "/body", "127.0.0.1:9"
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
    return default_connections(name) * 9 // 10


def _pace(name: str, kind: str, count: int) -> float:
    """Returns after how many seconds the next probe is due. Where a server of ours promises something,
    the probes outlast its request timeout: all slow clients are cut off, and connect again."""
    if name in servers.RECIPES or not _promises(name):
        return PACE
    cut_off = kind in ("slow headers", "slow body") and count == CLIENTS[0]
    return 1.2 * default_of(name, "request_timeout") / PROBES if cut_off else PACE


def _try(
    context: Context, name: str, kind: str, count: int, documents: Path, body: Path
) -> Iterator[Row]:
    made = 10 if context.quick else PROBES
    options = ["--max-connections", str(count // 2)] if context.quick else []
    ours = name not in servers.RECIPES
    promises = not ours or _promises(name)
    if ours:
        server = servers.start(context, name, documents, *(options if promises else []))
    else:
        server = servers.start(context, name, documents, change=_changed)
    crowd = _crowd(kind, count, server.port, body)
    seen = probe(server.port, made, _pace(name, kind, count))
    told = crowd.end()
    served = servers.answers(server)
    server.end()
    case = context.case(name, f"{count:,} clients: {kind}", made)
    enough = min(count // 4, _full(name)) if ours else count // 4
    yield from case.premise(
        "too few clients were connected", not promises or crowd.connected > enough
    )
    yield case.fact("connected", crowd.connected)
    yield case.fact("cut off", told.get("cut", 0) + told.get("lost", 0))
    failed = "probes that failed"
    yield case.judge(failed, seen.failed, 0) if promises else case.fact(failed, seen.failed)
    longest = f"{seen.longest:.3f} s" if seen.failed < made else "none was answered"
    yield case.fact("longest wait of a probe", longest)
    yield case.served(served)


def _changed(text: str) -> str:
    """Gives a peer room for all the clients, where its model has a limit that can be raised, and a
    path whose requests may have a body: nginx and lighttpd end a connection at once that has one
    for a document. They wait for the whole body of what they forward."""
    limits = {
        "worker_connections 4096": f"worker_connections {CONNECTIONS}",
        "server.max-connections = 4096": f"server.max-connections = {CONNECTIONS}",
        "server.max-fds = 8192": f"server.max-fds = {2 * CONNECTIONS}",
    }
    for old, new in limits.items():
        text = text.replace(old, new)
    if "events {" in text:
        return text.replace(
            "        root ",
            f"        location {BODY} {{ proxy_pass http://{NOBODY}; }}\n        root ",
        )
    if "server.max-fds" in text:
        host, port = NOBODY.split(":")
        text += 'server.modules += ( "mod_proxy" )\n'
        text += f'proxy.server = ( "{BODY}" => (( "host" => "{host}", "port" => {port} )) )\n'
    return text


def run(context: Context) -> Iterator[Row]:
    documents = make_documents(context.folder())
    body = context.folder() / "body"
    body.write_bytes(
        f"POST {BODY} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nx".encode()
    )
    for name in context.models:
        if context.quick and not _promises(name):
            # Nothing of it would be judged, and its probes would wait long.
            yield skipped(
                name, "slow clients", "a server with one connection each promises nothing"
            )
            continue
        for count in (
            (QUICK_CLIENTS,) if context.quick else CLIENTS if _promises(name) else CLIENTS[:1]
        ):
            for kind in KINDS:
                yield from _try(context, name, kind, count, documents, body)
    for name in context.peers:
        for kind in KINDS:
            yield from _try(context, name, kind, CLIENTS[0], documents, body)


TRIAL = Trial(
    "slow",
    "Slow clients",
    f"2,000 and 5,000 clients from {ADDRESSES:,} addresses, each of which sends a byte of its "
    "request's head a second, or of its body, or reads a byte of an 8 MiB document a second, or "
    "does nothing after a first request. Those that are cut off connect again at once. Beside them, "
    f"{PROBES} requests from another address, 20 a second, on a connection each; beside {CLIENTS[0]:,} clients with a "
    "slow head or body so many in the time after which these are cut off, and a little longer.",
    "A probe fails that has no whole response in 3 s. A server whose workers serve a connection "
    "each (iterative, prefork, pool) promises nothing here: its probes have no limit.",
    run,
    peers=f"nginx and lighttpd have room for {CONNECTIONS:,} connections; Apache has its 512 threads, and queues "
    "the rest of its connections in an event loop. nginx and lighttpd forward what has a body, since they end other "
    "connections at once.",
)
