"""Tests of the claims about processes, threads and workers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collect.infer.cells import Cells
from collect.infer.claim_building_blocks import (
    by_block,
    found,
    has_level,
    highest,
    lowest,
    measure_text,
    of_pairs,
    of_servers,
    said,
    server_named,
    trend,
    varies,
    within_block_trend,
    without_mistake,
)
from collect.infer.claim_verdicts import CLAIM, CLAIM_ASIDE, READING, READING_ASIDE, Finding
from collect.infer.claims_file import LOG
from collect.infer.contrast import (
    Result,
    blocks_test,
    contrast_test,
    control_cost,
    mean_of_pairs,
    server_pairs,
    share_of_cost,
)
from collect.infer.statistics import holm, share_interval
from collect.readable_numbers import thousands

# The requests/s of the thread with ten connections in R1.1 (2.146 ms each), and the factor up to
# which another number is about as large.
R1_THREAD_RPS, R1_THREAD_NEAR = 4660, 1.2


def thread_and_fork(data: Cells) -> tuple[str, str]:
    return server_named(data, "thread"), server_named(data, "fork")


def r1_1(data: Cells) -> list[Finding]:
    findings = []
    for file in data.levels["file"]:
        cells = data.pick(concurrency=10, file=file)
        where = f" at concurrency 10, {file}"
        findings += of_servers(data, CLAIM, "lead", thread_and_fork(data), "rps", cells, where)
    return findings


def r1_2(data: Cells) -> list[Finding]:
    findings = []
    levels = data.levels["concurrency"]
    if len(levels) > 2:
        text = "{}: requests/s at concurrency {} / {}, fitted line"
        for server in data.subjects:
            rise = trend(data, data.pick(server=server), "rps", "concurrency", levels[0], "5")
            findings += found(CLAIM, "rise", text.format(server, 5, levels[0]), rise)
        first = next((v for v in levels if float(v) >= 5), levels[-1])
        for server in data.subjects:
            flat = trend(data, data.pick(server=server), "rps", "concurrency", first, levels[-1])
            findings += found(CLAIM, "flat", text.format(server, levels[-1], first), flat)
    for file in data.levels["file"]:
        where = f", mean over concurrency, {file}"
        servers = thread_and_fork(data)
        findings += of_servers(data, CLAIM, "alike", servers, "rps", data.pick(file=file), where)
    return findings


def r1_3(data: Cells) -> list[Finding]:
    if len(data.levels["concurrency"]) <= 2:
        return []
    top = min(int(highest(data, "concurrency")), 20)
    servers = thread_and_fork(data)
    high, low = data.pick(concurrency_min=top), data.pick(concurrency_max=5)
    return [
        *of_servers(
            data, CLAIM, "fork-ahead", servers, "rps", high, f", concurrency {top} and more"
        ),
        *of_servers(data, CLAIM, "thread-ahead", servers, "rps", low, ", concurrency up to 5"),
    ]


def r1_4(data: Cells) -> list[Finding]:
    servers = thread_and_fork(data)
    few, many = lowest(data, "processors"), highest(data, "processors")

    def at(processors: str, concurrency: str, rule: str) -> list[Finding]:
        cells = data.pick(processors=processors, concurrency=concurrency)
        where = f", {said(data, 'processors', processors)}, concurrency {concurrency}"
        return of_servers(data, CLAIM, rule, servers, "rps", cells, where)

    findings = at(many, lowest(data, "concurrency"), "thread-wins") if many != few else []
    if few == "1":
        cells = data.pick(processors=1)
        findings += [
            Finding(f.kind, f.tested, f.rule, result=f.result, untestable=_client_apart(data))
            for f in of_servers(
                data, CLAIM, "one-processor", servers, "rps", cells, ", 1 processor"
            )
        ]
    if many != few and varies(data, "concurrency"):
        findings += at(many, highest(data, "concurrency"), "fork-wins")
    return findings


def _client_apart(data: Cells) -> str:
    """Says why a server that is held to one processor is no machine of one processor."""
    if data.machine.get("processors") == "1":
        return ""
    return "the load generator had another processor"


def r1_5(data: Cells) -> list[Finding]:
    thread, fork = thread_and_fork(data)
    findings = _overload(data, CLAIM, CLAIM_ASIDE, thread, fork) if thread else []
    for server in data.subjects:
        if "+joinable" in server:
            other = without_mistake(data, server)
            findings += _overload(data, READING, READING_ASIDE, server, other)
    return findings


def _overload(data: Cells, kind: str, aside: str, server: str, other: str) -> list[Finding]:
    """The signs of a server that is overloaded in the course of a study, and another not."""
    text = "{}: {}, last run of a block / first, over the same of {}"
    memory = within_block_trend(data, server, other, "peak_kib")
    rate = within_block_trend(data, server, other, "rps")
    findings = [
        *found(aside, "memory", text.format(server, "memory", other), memory),
        *found(kind, "slower", text.format(server, "requests/s", other), rate),
    ]
    runs = data.runs[data.runs["server"] == server]
    if runs.empty:
        return findings
    failed = int((runs["valid"] != "yes").sum())
    tested = f"{server}: share of the runs that failed"
    return [*findings, Finding(kind, tested, "failures", "share", count=failed, of=len(runs))]


def unp_1(data: Cells) -> list[Finding]:
    findings = []
    for server in ("prefork", "pool"):
        if has_level(data, "server", server) and has_level(data, "server", "fork"):
            cells = data.pick(server="fork")
            own, fork = control_cost(data, server, cells), control_cost(data, "fork", cells)
            share = np.where(fork > 0, own / np.where(fork > 0, fork, 1), np.nan)
            tested = (
                f"{server} / fork, process control "
                f"({data.cpu_words} less that of iterative), mean over all cells"
            )
            findings += found(CLAIM, "tenth", tested, blocks_test(data, share), "of fork’s")
    return findings


def unp_2(data: Cells) -> list[Finding]:
    findings = []
    for name, handed in (("prefork", "prefork+accept=pass"), ("pool", "pool+accept=queue")):
        servers = server_named(data, name), server_named(data, handed)
        where = ", mean over all cells"
        cells = data.pick()
        findings += of_servers(data, CLAIM, "cheaper", servers, "server_cpu_us", cells, where)
    return findings


NOTHING, MEMORY, ALL = "clone", "clone+share=memory", "clone+share=all"
ALMOST_ALL = "clone+share=memory-files-fs-signals"


def dial_1(data: Cells) -> list[Finding]:
    ends = ("fork", "thread+no-file-cache")
    tested = f"({NOTHING} less {ALL}) / ({ends[0]} less {ends[1]}), {data.cpu_words}"
    return found(CLAIM, "whole", tested, share_of_cost(data, (NOTHING, ALL), ends), "")


def dial_2(data: Cells) -> list[Finding]:
    tested = f"({NOTHING} less {MEMORY}) / ({NOTHING} less {ALL}), {data.cpu_words}"
    return found(CLAIM, "most", tested, share_of_cost(data, (NOTHING, MEMORY), (NOTHING, ALL)), "")


def dial_3(data: Cells) -> list[Finding]:
    findings = []
    for servers in ((NOTHING, "fork"), (ALL, "thread+no-file-cache")):
        findings += of_servers(data, CLAIM, "end", servers, "server_cpu_us", data.pick(), "")
    return findings


def tlpi_1(data: Cells) -> list[Finding]:
    without = "iterative+no-file-cache"
    tested = f"{NOTHING} / {ALMOST_ALL}, process control ({data.cpu_words} less that of {without})"
    result = share_of_cost(data, (NOTHING, without), (ALMOST_ALL, without))
    return found(CLAIM, "ratio", tested, result, "")


GIBIBYTE = "1024"


def antirez_1(data: Cells) -> list[Finding]:
    small = lowest(data, "ballast")
    cells = [data.pick(server="fork", ballast=size) for size in (GIBIBYTE, small)]
    if small == GIBIBYTE or not all(cells):
        return []
    cpu = data.measured("server_cpu_us")
    cost = (cpu[cells[0][0]] - cpu[cells[1][0]]) / 1000
    sizes = [said(data, "ballast", size) for size in (GIBIBYTE, small)]
    tested = f"fork, {sizes[0]} less {sizes[1]}, {data.cpu_words}, milliseconds"
    return found(CLAIM, "cost", tested, blocks_test(data, cost), "ms")


def _grown(data: Cells, rule: str, server: str) -> list[Finding]:
    """Tests a server with the most ballast against the same one with the least."""
    small, large = lowest(data, "ballast"), highest(data, "ballast")
    if small == large:
        return []
    cells = data.pick(server=server, ballast=large)
    sizes = [said(data, "ballast", size) for size in (large, small)]
    tested = f"{server}, {sizes[0]} / {sizes[1]}, {data.cpu_words}"
    return of_pairs(data, rule, tested, "server_cpu_us", cells, {"ballast": small})


def road_1(data: Cells) -> list[Finding]:
    return [*_grown(data, "fork", "fork"), *_grown(data, "thread", "thread")]


def template_1(data: Cells) -> list[Finding]:
    return _grown(data, "same", "fork+template")


def _of_each(
    data: Cells, rule: str, servers: Sequence[str], what: str, measure: str,
    when: Mapping[str, str | float], changes: dict[str, str],
) -> list[Finding]:  # fmt: skip
    """Tests each of these servers in these cells against itself after the changes."""
    findings = []
    for server in servers:
        cells = data.pick(server=server, **when)
        findings += of_pairs(data, rule, f"{server}, {what}", measure, cells, changes)
    return findings


def overload_1(data: Cells) -> list[Finding]:
    what = "requests/s answered in time at 200% / at 100% of its capacity"
    servers = ("prefork", "pool", "epoll", "uring")
    return _of_each(data, "kept", servers, what, "rps", {"offered": 200}, {"offered": "100"})


def recovery_1(data: Cells) -> list[Finding]:
    top = highest(data, "surge")
    findings = []
    for server in data.subjects:
        if data.is_other(server):
            continue
        times = _mean_log_time(data, data.pick(server=server, surge=top), "again_ms", "never")
        tested = f"{server}: time until all requests are answered again, surge {top}%"
        findings += found(CLAIM, "soon", tested, by_block(data, times), LOG + "ms")
    return findings


def _mean_log_time(
    data: Cells, cells: Sequence[int], measure: str, never: str
) -> Callable[[int], float]:
    """Returns the mean logarithm of a time in a block. Where it was not over, it counts as the
    whole run; less than a millisecond counts as one."""
    runs = data.valid_runs[data.valid_runs["cell"].isin(cells)]
    whole = 1000.0 * (data.study.duration or 0)
    times = data.column(measure, runs).where(runs[measure] != never, whole)
    of_blocks = np.log(times.clip(lower=1.0)).groupby(runs["block_number"]).mean()
    return lambda block: float(of_blocks.get(block + 1, np.nan))


def open_1(data: Cells) -> list[Finding]:
    what = "99th percentile at 90% / at 30% of its capacity"
    servers = ("fork", "thread", "prefork", "epoll")
    return _of_each(data, "grows", servers, what, "p99_ms", {"offered": 90}, {"offered": "30"})


def calls_1(data: Cells) -> list[Finding]:
    findings = []
    for rule, calls in (("alone", "1"), ("shared", "100")):
        cells = data.pick(server="fork", calls=calls)
        tested = f"fork / thread, {data.cpu_words}, {said(data, 'calls', calls)}"
        findings += of_pairs(data, rule, tested, "server_cpu_us", cells, {"server": "thread"})
    return findings


def road_2(data: Cells) -> list[Finding]:
    tested = "fork: page faults a request, a connection for each"
    faults = data.measured("faults")[data.pick(server="fork", keepalive="off")]
    return found(CLAIM, "faults", tested, by_block(data, lambda b: float(faults[:, b].mean())), "")


def pai_2(data: Cells) -> list[Finding]:
    cells = data.pick(server="epoll", data_share=200)
    tested = "epoll / thread, requests per second, documents of twice the memory"
    return of_pairs(data, "disk", tested, "rps", cells, {"server": "thread"})


def distance_1(data: Cells) -> list[Finding]:
    cells = data.pick(server="fork", round_trip=60, keepalive="off")
    tested = "fork / thread, median time of a request, round trip of 60 ms"
    return of_pairs(data, "far", tested, "p50_ms", cells, {"server": "thread"})


def weight_1(data: Cells) -> list[Finding]:
    """Tests the ratio where a thread answers here about as many requests as in that report."""
    answered = {
        cell: float(data.sample(cell, "rps").mean())
        for cell in data.pick(server="thread")
        if data.has_data(cell, "rps")
    }
    if not answered:
        return []
    cell = min(answered, key=lambda one: abs(math.log(answered[one] / R1_THREAD_RPS)))
    if abs(math.log(answered[cell] / R1_THREAD_RPS)) > math.log(R1_THREAD_NEAR):
        return []
    where = f"where thread answers {answered[cell]:,.0f}"
    work = said(data, "amount", data.value(cell, "amount"))
    tested = f"thread / fork, requests per second, {where} ({work})"
    return of_pairs(data, "same", tested, "rps", [cell], {"server": "fork"})


def c10k_1(data: Cells) -> list[Finding]:
    cells = data.pick(server="epoll", concurrency=10000)
    tested = f"epoll, 10,000 connections / 1,000, {data.cpu_words}"
    return of_pairs(data, "same", tested, "server_cpu_us", cells, {"concurrency": "1000"})


def arena_1(data: Cells) -> list[Finding]:
    """Tests CPU per request: with servers this fast, the load generator limits the requests/s."""
    kept, ends = data.pick(keepalive="on"), data.pick(keepalive="off")
    ways = (("kept", kept, ", kept connections"), ("ends", ends, ", a connection for each request"))
    findings = []
    for kind, other, prefix in ((CLAIM, "nginx", ""), (READING, "epoll", "ring-")):
        servers = server_named(data, other), server_named(data, "uring")
        for rule, cells, where in ways:
            findings += of_servers(
                data, kind, prefix + rule, servers, "server_cpu_us", cells, where
            )
    return findings


def mixed_1(data: Cells) -> list[Finding]:
    what = "99th percentile of small requests with 5% large ones / without"
    findings = []
    for rule, servers in (("waits", ["iterative"]), ("passes", ["thread", "epoll"])):
        findings += _of_each(data, rule, servers, what, "p99_ms", {"mixed": 5}, {"mixed": "0"})
    return findings


def mixed_2(data: Cells) -> list[Finding]:
    what = "99th percentile with 20 slow readers / without"
    servers, when = ("fork", "thread", "epoll"), {"mixed": 0, "readers": 20}
    return _of_each(data, "passes", servers, what, "p99_ms", when, {"readers": "0"})


def pai_1(data: Cells) -> list[Finding]:
    findings = []
    for rule, file, amount in (("nothing", "cpu", "1"), ("blocks", "block", "10000")):
        cells = data.pick(server="epoll", file=file, amount=amount)
        what = f"{said(data, 'file', file)}, {said(data, 'amount', amount)}"
        tested = f"epoll / fork, requests per second, {what}"
        findings += of_pairs(data, rule, tested, "rps", cells, {"server": "fork"})
    return findings


def e07_1(data: Cells) -> list[Finding]:
    """Tests the CPU per request where the load generator limits most cells."""
    event, thread = server_named(data, "epoll"), server_named(data, "thread")
    if not event or not thread:
        return []
    pairs = server_pairs(data, event, thread, data.pick(), "rps")
    bound = sum(data.client_bound(a) or data.client_bound(b) for a, b in pairs)
    where = ", mean over all cells"
    if bound * 2 > len(pairs):
        where += f" (in {bound} of {len(pairs)} requests/s speaks of the load generator)"
        return of_servers(data, CLAIM, "lead", (thread, event), "server_cpu_us", data.pick(), where)
    return of_servers(data, CLAIM, "lead", (event, thread), "rps", data.pick(), where)


def cf_1(data: Cells) -> list[Finding]:
    """Tests it where the workers have time to spare, as in the source; other loads stand aside."""
    if "offered" not in data.factors or not varies(data, "offered"):
        return _shares(data, CLAIM, "mean over all cells", {})
    findings = []
    for load in data.levels["offered"]:
        kind = CLAIM if load == lowest(data, "offered") else CLAIM_ASIDE
        findings += _shares(data, kind, f"at {load}% of the capacity", {"offered": load})
    return findings


def _shares(data: Cells, kind: str, where: str, when: dict[str, str]) -> list[Finding]:
    findings = []
    share = "the busiest worker’s share of the requests"
    for server, rule, of_spare in (
        ("prefork", "even", True),
        ("pool", "even", True),
        ("epoll+accept=shared", "most", False),
        ("epoll+accept=shared", "uneven", True),
    ):
        between = ", between an even one (0) and all (1)" if of_spare else ""
        result = _busiest(data, data.pick(server=server, **when), even_is_zero=of_spare)
        findings += found(kind, rule, f"{server}: {share}{between}, {where}", result, "")
    return findings


def _busiest(data: Cells, cells: list[int], even_is_zero: bool) -> Result | None:
    share, workers = data.measured("busiest")[cells], data.measured("workers")[cells]
    workers = np.where(workers > 1, workers, np.nan)
    if even_is_zero:
        share = (share - 1 / workers) / (1 - 1 / workers)
    share = np.where(np.isnan(workers), np.nan, share)

    def of_block(block: int) -> float:
        known = share[:, block][~np.isnan(share[:, block])]
        return float(known.mean()) if len(known) else np.nan

    return by_block(data, of_block)


def doubles(data: Cells) -> Iterator[tuple[str, str]]:
    """Yields servers that the study names again, each with the first of that name."""
    for server in data.subjects:
        original = re.sub(r"~[0-9]+$", "", server)
        if original != server and has_level(data, "server", original):
            yield server, original


@dataclass(frozen=True)
class FalseAlarms:
    """The tests of single cells of servers against themselves: how many call them different."""

    measure: str
    of: int
    plain: int  # with p below 0.05
    adjusted: int  # also after Holm's adjustment

    def interval(self) -> tuple[float, float]:
        return share_interval(self.plain, self.of)


def false_alarms(data: Cells) -> list[FalseAlarms]:
    """Counts them for each measure by itself: the measures of a cell are of the same runs."""
    found = []
    for measure in ("server_cpu_us", "rps"):
        results = [
            contrast_test(data, mean_of_pairs(pairs), measure)
            for again, original in doubles(data)
            for cell in data.pick(server=again)
            if (pairs := server_pairs(data, again, original, [cell], measure))
        ]
        p = [result.test.p for result in results if result]
        if p:
            plain, adjusted = sum(value < 0.05 for value in p), int((holm(p) < 0.05).sum())
            found.append(FalseAlarms(measure, len(p), plain, adjusted))
    return found


def same_server(data: Cells) -> list[Finding]:
    """A server against itself: how many of the plain tests call it different."""
    findings = []
    for alarms in false_alarms(data):
        of, words = alarms.of, measure_text(data, alarms.measure)
        share = f"share of {thousands(of)} tests of {words} in a cell with p below 0.05"
        strict = f"tests of {words} in a cell that are below 0.05 after Holm’s adjustment"
        findings += [
            Finding(CLAIM, share, "share", "share", count=alarms.plain, of=of),
            Finding(CLAIM, strict, "adjusted", "share", count=alarms.adjusted, of=of),
        ]
        for servers in doubles(data):
            cells = data.pick(server=servers[0])
            where = ", mean over all cells"
            findings += of_servers(data, CLAIM, "same", servers, alarms.measure, cells, where)
    return findings


TESTS = {
    "R1.1": r1_1,
    "R1.2": r1_2,
    "R1.3": r1_3,
    "R1.4": r1_4,
    "R1.5": r1_5,
    "UNP.1": unp_1,
    "UNP.2": unp_2,
    "DIAL.1": dial_1,
    "DIAL.2": dial_2,
    "DIAL.3": dial_3,
    "TLPI.1": tlpi_1,
    "ANTIREZ.1": antirez_1,
    "ROAD.1": road_1,
    "TEMPLATE.1": template_1,
    "OVERLOAD.1": overload_1,
    "RECOVERY.1": recovery_1,
    "OPEN.1": open_1,
    "CALLS.1": calls_1,
    "ROAD.2": road_2,
    "PAI.2": pai_2,
    "DISTANCE.1": distance_1,
    "WEIGHT.1": weight_1,
    "C10K.1": c10k_1,
    "ARENA.1": arena_1,
    "MIXED.1": mixed_1,
    "MIXED.2": mixed_2,
    "PAI.1": pai_1,
    "E07.1": e07_1,
    "CF.1": cf_1,
    "A/A": same_server,
}
