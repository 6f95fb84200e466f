"""The trial of killed processes: kill -9 of children ten times a second under load."""

from __future__ import annotations

import math
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median

from collect.infer.statistics import mean_test
from trials import process_tree, servers
from trials.clients import Counts, Load, Plan, is_whole, make_documents
from trials.patience import patience
from trials.trial import Context, Row, Trial, makes_processes, skipped

KILLS_A_SECOND = 10
ROUNDS, SECONDS = 5, 3
# Connections whose end is timed.
KEPT = 4
# A share that is less than a tenth above that of nginx counts as the same, if it is not shown to be larger.
MOST = 1.1


# The names of processes that serve nobody. A process that has ended has the name "".
HELPERS = (
    "", "cache_keeper", "handover", "key_process", "key_reader", "log_opener", "names", "oom_guard"
)  # fmt: skip


def _serving(server: servers.Server) -> list[int]:
    """Returns the processes that serve. A child that the first process needs for itself, and does
    not serve with, is left alone."""
    below = process_tree.tree(server.pid)[1:]
    return [pid for pid in below if process_tree.name_of(pid) not in HELPERS]


def _kill(pids: list[int]) -> None:
    for pid in pids:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def _kill_one(server: servers.Server) -> bool:
    """Kills a process that serves, at random."""
    serving = _serving(server)
    if serving:
        _kill([random.choice(serving)])
    return bool(serving)


def _connect(port: int) -> socket.socket:
    """Returns a connection on which a request was answered."""
    connection = socket.create_connection(("127.0.0.1", port), patience(5))
    connection.sendall(b"GET /small.txt HTTP/1.1\r\nHost: localhost\r\n\r\n")
    received = b""
    while not is_whole(received) and (part := connection.recv(65536)):
        received += part
    return connection


def _await_end(connection: socket.socket) -> None:
    with suppress(ConnectionError):
        while connection.recv(65536):
            pass


def _time_ends(server: servers.Server) -> float:
    """Kills all that serve. Returns after how many milliseconds the kernel has ended their
    connections: as long, clients take these for living ones."""
    with ExitStack() as stack:
        kept = [stack.enter_context(_connect(server.port)) for _ in range(KEPT)]
        serving = _serving(server)
        began = time.perf_counter()
        _kill(serving)
        for connection in kept:
            _await_end(connection)
        took = time.perf_counter() - began
    return 1000 * took


@dataclass
class Seen:
    """What happened to a server in all rounds."""

    killed: int = 0
    served: bool = True
    rounds: list[Counts] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)  # milliseconds

    def total(self, of: Callable[[Counts], int]) -> int:
        return sum(of(counts) for counts in self.rounds)


def _try(context: Context, name: str, documents: Path, seconds: int, seen: Seen) -> None:
    server = servers.start(context, name, documents)
    load = Load(Plan(server.port, fresh=16, kept=16, patience=5))
    load.wait_for(50)
    begin = time.monotonic()
    for number in range(seconds * KILLS_A_SECOND):
        time.sleep(max(begin + number / KILLS_A_SECOND - time.monotonic(), 0))
        seen.killed += _kill_one(server)
    seen.rounds.append(load.end())
    seen.ends.append(_time_ends(server))
    seen.served = seen.served and server.runs() and servers.answers(server)
    server.end()


def _share(counts: Counts) -> float:
    """Returns how many of 10,000 requests were lost. None counts as a half, so that it has a
    logarithm."""
    return 10000 * max(counts.lost, 0.5) / max(counts.answered + counts.lost, 1)


def _rows(context: Context, name: str, seen: Seen, yardstick: Seen | None) -> Iterator[Row]:
    case = context.case(name, f"{KILLS_A_SECOND} kills a second", seen.killed)
    yield from case.premise("no process was killed", seen.killed > 0)
    yield case.fact("requests answered", seen.total(lambda counts: counts.answered))
    yield case.fact("lost", seen.total(lambda counts: counts.lost))
    shares = [_share(counts) for counts in seen.rounds]
    yield case.fact("lost of 10,000", f"{fmean(shares):.2f}")
    if yardstick and yardstick is not seen and len(shares) > 1:
        pairs = zip(shares, map(_share, yardstick.rounds), strict=True)
        test = mean_test([math.log(own / other) for own, other in pairs])
        ratio, low, high = (math.exp(value) for value in (test.estimate, *test.interval()))
        yield case.judge("share lost, relative to nginx", round(ratio, 2), MOST)
        yield case.fact("95% interval", f"{low:.2f} to {high:.2f}")
        yield case.judge("is shown to lose more", int(low > 1), 0)
    yield case.judge("late by 5 s", seen.total(lambda counts: counts.late), 0)
    wrong = seen.total(lambda counts: counts.refused + counts.wrong)
    yield case.judge("refused or wrong", wrong, 0)
    yield case.fact("connections end after", f"{median(seen.ends):.1f} ms")
    yield case.fact("longest wait", f"{max(counts.longest for counts in seen.rounds):.3f} s")
    yield case.served(seen.served)


def _has_one_process(name: str) -> bool:
    if name in servers.RECIPES:
        return name == "lighttpd" and os.cpu_count() == 1
    return not makes_processes(name)


def run(context: Context) -> Iterator[Row]:
    """Servers take turns: each round kills processes of each of them for some seconds."""
    documents = make_documents(context.folder())
    names = [*context.peers, *context.models]
    all_seen = {name: Seen() for name in names if not _has_one_process(name)}
    rounds, seconds = (1, 2) if context.quick else (ROUNDS, SECONDS)
    for _ in range(rounds):
        for name, seen in all_seen.items():
            _try(context, name, documents, seconds, seen)
    for name in names:
        if name in all_seen:
            yield from _rows(context, name, all_seen[name], all_seen.get("nginx"))
        else:
            yield skipped(name, "kills", "it has one process, and ends with it")


TRIAL = Trial(
    "kill",
    "Killed processes",
    "SIGKILL to a process that serves, chosen at random, ten times a second, while 16 clients with "
    "a connection for each request and 16 with persistent connections ask as fast as they can. The "
    "first process and those that serve nobody, such as that of the key, are left alone.",
    "A process that is killed takes its connections with it: the requests on these are lost. All "
    "others must be answered, and nobody may wait for 5 s. The servers take turns, in five rounds. "
    "Where nginx is tried, too, ours may lose no larger share than it does: the ratio, a geometric "
    f"mean over rounds, may be {MOST} at most, and its 95% interval must not lie above 1. A request is lost, "
    "too, if a client sends it on a connection whose server is dead, because the kernel has not ended it yet: "
    f"*connections end after* is how long that takes, for {KEPT} connections, by the median of the rounds. The "
    "kernel winds up a ring (io_uring) in the background, and ends its connections later than others.",
    run,
)
