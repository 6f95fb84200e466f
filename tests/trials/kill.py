"""The trial of killed processes: kill -9 of children ten times a second under load."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from trials import process_tree, servers
from trials.clients import Counts, Load, Plan, make_documents
from trials.trial import Context, Row, Trial, makes_processes, skipped

KILLS_A_SECOND = 10


# The names of processes that serve nobody. A process that has ended has the name "".
HELPERS = (
    "", "cache_keeper", "handover", "key_process", "key_reader", "log_opener", "names", "oom_guard"
)  # fmt: skip


def _kill_one(server: servers.Server) -> bool:
    """Kills a process that serves, at random."""
    below = process_tree.tree(server.pid)[1:]
    # A child that the first process needs for itself, and does not serve with, is left alone.
    serving = [pid for pid in below if process_tree.name_of(pid) not in HELPERS]
    if not serving:
        return False
    with suppress(OSError):
        os.kill(random.choice(serving), signal.SIGKILL)
    return True


def _try(context: Context, name: str, documents: Path) -> tuple[Counts, int, bool]:
    seconds = 2 if context.quick else 15
    server = servers.start(context, name, documents)
    load = Load(Plan(server.port, fresh=16, kept=16, patience=5))
    load.wait_for(50)
    begin, killed = time.monotonic(), 0
    for number in range(seconds * KILLS_A_SECOND):
        time.sleep(max(begin + number / KILLS_A_SECOND - time.monotonic(), 0))
        killed += _kill_one(server)
    counts = load.end()
    served = server.runs() and servers.answers(server)
    server.end()
    return counts, killed, served


def _rate(counts: Counts) -> float:
    """Returns how many of 10,000 requests were lost."""
    return 10000 * counts.lost / max(counts.answered + counts.lost, 1)


def _rows(
    context: Context, name: str, tried: tuple[Counts, int, bool], most: float | None
) -> Iterator[Row]:
    counts, killed, served = tried
    case = context.case(name, f"{KILLS_A_SECOND} kills a second", killed)
    yield case.fact("requests answered", counts.answered)
    yield case.fact("lost", counts.lost)
    rate, measure = round(_rate(counts), 2), "lost of 10,000"
    yield case.fact(measure, rate) if most is None else case.judge(measure, rate, round(most, 2))
    yield case.judge("late by 5 s", counts.late, 0)
    yield case.judge("refused or wrong", counts.refused + counts.wrong, 0)
    yield case.fact("longest wait", f"{counts.longest:.3f} s")
    yield case.served(served)


def run(context: Context) -> Iterator[Row]:
    documents = make_documents(context.folder())
    alone = "it has one process, and ends with it"
    most = None
    for name in context.peers:
        if name == "lighttpd" and os.cpu_count() == 1:
            yield skipped(name, "kills", alone)
            continue
        tried = _try(context, name, documents)
        if name == "nginx":
            most = _rate(tried[0])
        yield from _rows(context, name, tried, None)
    for name in context.models:
        if makes_processes(name):
            yield from _rows(context, name, _try(context, name, documents), most)
        else:
            yield skipped(name, "kills", alone)


TRIAL = Trial(
    "kill",
    "Killed processes",
    "SIGKILL to a process that serves, chosen at random, ten times a second, while 16 clients with "
    "a connection for each request and 16 with persistent connections ask as fast as they can. The "
    "first process and those that serve nobody, such as that of the key, are left alone.",
    "A process that is killed takes its connections with it: the requests on these are lost. All "
    "others must be answered, and nobody may wait for 5 s. Where nginx is tried, too, ours may lose "
    "no larger share than it does.",
    run,
)
