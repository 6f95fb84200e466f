"""The trial of overload: five times as many clients at once as the server may hold."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

from trials import servers
from trials.clients import Load, Plan, make_documents
from trials.trial import Context, Row, Trial, default_connections, has_option

FACTOR = 5
PATIENCE = 10


def _limited(name: str, most: int) -> servers.Change:
    """Gives a peer the same limit of connections."""

    def change(text: str) -> str:
        if name == "nginx":
            text = re.sub(r"worker_processes \d+", "worker_processes 1", text)
            return re.sub(r"worker_connections \d+", f"worker_connections {most}", text)
        if name == "lighttpd":
            text = re.sub(r"server.max-worker = \d+", "server.max-worker = 0", text)
            return re.sub(r"server.max-connections = \d+", f"server.max-connections = {most}", text)
        text = re.sub(r"ThreadsPerChild \d+", "ThreadsPerChild 32", text)
        return re.sub(
            r"MaxRequestWorkers \d+", f"MaxRequestWorkers {max(most // 32, 1) * 32}", text
        )

    return change


def _try(context: Context, name: str, documents: Path) -> Iterator[Row]:
    most = 20 if context.quick else 64
    if name in servers.RECIPES:
        server = servers.start(context, name, documents, change=_limited(name, most))
    else:
        if default_connections(name) == 1:
            most = 1
        options = ["--max-connections", str(most)] if has_option(name, "max-connections") else []
        server = servers.start(context, name, documents, *options)
    clients = FACTOR * most
    kept = clients // 4
    load = Load(Plan(server.port, fresh=clients - kept, kept=kept, patience=PATIENCE))
    load.wait_for(200)
    time.sleep(0 if context.quick else 2 * PATIENCE)
    counts = load.end()
    served = servers.answers(server)
    server.end()
    case = context.case(name, f"{FACTOR} times the limit")
    yield case.fact("clients", clients)
    yield case.fact("limit", most)
    yield case.fact("requests answered", counts.answered)
    yield case.judge("lost, refused, late or wrong", counts.failed, 0)
    yield case.judge("clients without a response", counts.unserved, 0, is_time=True)
    yield case.fact("longest wait", f"{counts.longest:.3f} s")
    yield case.served(served)


def run(context: Context) -> Iterator[Row]:
    documents = make_documents(context.folder())
    for name in [*context.models, *context.peers]:
        yield from _try(context, name, documents)


TRIAL = Trial(
    "overload",
    "Overload",
    "Five times as many clients as `--max-connections` allows, all at once and without a pause, for "
    f"{2 * PATIENCE} s; a quarter of them has persistent connections. Peers have the same limit by "
    "their own settings.",
    f"Those that find no place wait in the kernel's queue. None may be lost, refused or late by "
    f"{PATIENCE} s, and each must get a response.",
    run,
)
