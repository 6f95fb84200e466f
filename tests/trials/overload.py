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
    load = Load(Plan(server.port, fresh=clients - clients // 4, kept=clients // 4, patience=20))
    load.wait_for(200)
    time.sleep(0 if context.quick else 8)
    counts = load.end()
    served = servers.answers(server)
    server.end()
    case = f"{clients} clients, {most} at once: {counts.answered} requests answered"
    yield context.judge(
        name, case, counts.answered, "requests lost, refused, late or wrong", counts.failed, 0
    )
    yield Row(name, case, str(counts.answered), "longest wait", f"{counts.longest:.3f} s")
    yield context.judge(
        name, case, counts.answered, "times not serving afterwards", int(not served), 0
    )


def run(context: Context) -> Iterator[Row]:
    documents = make_documents(context.folder())
    for name in [*context.models, *context.peers]:
        yield from _try(context, name, documents)


TRIAL = Trial(
    "overload",
    "Overload",
    "Five times as many clients as `--max-connections` allows, all at once and without a pause; a "
    "quarter of them has persistent connections. Peers have the same limit by their own settings.",
    "Those that find no place wait in the kernel's queue. None may be lost, refused or late by 20 s.",
    run,
)
