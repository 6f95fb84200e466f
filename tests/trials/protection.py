"""The trial of what protection costs: the hardened program, the sandbox, the process of the key."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace

from collect.bench_request_cost import Bench, opened
from collect.measure.server_commands import Setting
from trials.trial import PROJECT, Context, Row, Trial

# A process for each connection pays for most of it each time, a loop of events once.
MODELS = ("fork", "epoll")
SOFT = PROJECT / "build/soft"
REQUESTS = 4000
HANDSHAKES_OF_REQUESTS = 1 / 4  # each takes longer
MOST_HARDENING, MOST_KEY_PROCESS = 2, 10


@dataclass(frozen=True)
class Part:
    """A part of the protection, and the server that lacks it."""

    case: str
    measure: str
    without: Setting
    most: float | None = None


def _parts(plain: Setting, secure: Setting, name: str, *, quick: bool) -> Iterator[Part]:
    if not quick:  # it takes a build of its own
        yield Part("the hardened program", "more CPU time a request",
                   replace(plain, folder=SOFT), MOST_HARDENING)  # fmt: skip
    yield Part("the sandbox", "more CPU time a request",
               replace(plain, label=f"{name}+no-sandbox"))  # fmt: skip
    yield Part("the TLS key in a process of its own", "more CPU time a handshake",
               replace(secure, label=f"{name}+key-process=off"), MOST_KEY_PROCESS)  # fmt: skip


def _rows(context: Context, bench: Bench, name: str, part: Part) -> Iterator[Row]:
    """Compares the server that lacks a part with the one that has all."""
    is_secure = part.without.scheme == "https"
    load = bench.load
    if is_secure:
        handshakes = int((load.requests or 0) * HANDSHAKES_OF_REQUESTS)
        bench.load = replace(load, generator="witness", requests=handshakes, scheme="https",
                             sessions="new", duration=60)  # fmt: skip
    more, low, high = bench.compare(replace(part.without, label=name, folder=None), part.without)
    bench.load = load
    case = context.case(name, part.case, bench.starts * bench.pairs)
    if part.most is None:
        yield case.fact(part.measure, f"{more:.1f}%")
    else:
        yield case.judge(part.measure, round(more, 1), part.most, "%", is_time=True)
    yield case.fact("95% interval", f"{low:.1f} to {high:.1f}%")


def _build_soft(names: list[str]) -> None:
    programs = [f"{SOFT.relative_to(PROJECT)}/{name}_server" for name in names]
    command = ["make", "-s", f"-j{os.cpu_count()}", "SOFT=1", *programs]
    subprocess.run(command, cwd=PROJECT, check=True)


def run(context: Context) -> Iterator[Row]:
    names = [name for name in MODELS if name in context.models]
    if not context.quick:
        _build_soft(names)
    requests, starts, pairs = (400, 2, 2) if context.quick else (REQUESTS, 6, 8)
    with opened(requests, 10, starts, pairs) as bench:
        for name in names:
            plain = replace(bench.setting, label=name)
            secure = replace(plain, scheme="https", certificate="p256")
            for part in _parts(plain, secure, name, quick=context.quick):
                yield from _rows(context, bench, name, part)


TRIAL = Trial(
    name="protection",
    title="What protection costs",
    tried=(
        "A server, and one that lacks a part of its protection, run at the same time and get short "
        "loads in turn: small.txt with a connection for each request, or a new TLS session each "
        "(P-256). The program without hardening has no canaries, no checks of buffers and stacks, "
        "no marked targets of branches, and data that stay writable after the relocations."
    ),
    counted=(
        "How much more CPU time a request takes with that part: the median of pairs of loads, the "
        "geometric mean over starts of both servers, and its interval. The hardened program may "
        f"cost {MOST_HARDENING}%, the process that keeps the key {MOST_KEY_PROCESS}%."
    ),
    run=run,
    needs={"ab": "apache2-utils", "make": "make", "gcc": "gcc"},
)
