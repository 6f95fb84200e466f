"""The tables of a report, as rows of text."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from collect.infer.cells import Part
from collect.infer.statistics import mean_test
from collect.present.facts import (
    CLIENT_CPU,
    CPU,
    RPS,
    Average,
    average_of,
    is_asked,
    is_open,
    state_of,
)
from collect.present.results_view import Row, Slice, View, parsed
from collect.present.row_figures import memory_text
from collect.readable_numbers import (
    DASH,
    estimate_text,
    factor_text,
    human,
    p_text,
    percent_text,
    thousands,
)


@dataclass(frozen=True)
class Overall:
    """A server in a slice, averaged over the x axis."""

    where: str
    server: str
    cpu: str
    cpu_ratio: str
    to_floor: str
    rps: str
    rps_ratio: str
    client_cpu: str
    peak: str
    bound: bool


def ratio_text(row: Row | None) -> str:
    if row is None:
        return DASH
    return estimate_text(float(row["ratio"]), float(row["low"]), float(row["high"]))


def overall_rows(view: View, part: Part) -> list[Overall]:
    scope = "x" if part.x_name else "cell"
    rows = []
    for one in view.slices(part):
        for server in part.levels["server"]:
            cells = [view.at(part, one.first, server, x) for x in view.x_values(part)]
            if not any(cell is not None for cell in cells):
                continue
            cpu, floor, rps, client = (
                average_of(view, part, measure, server, one.first)
                for measure in (CPU, f"{CPU}_to_floor", RPS, CLIENT_CPU)
            )
            star = " \\*" if rps and rps.bound else ""
            peaks = [peak for cell in cells if (peak := view.number(cell, "peak_kib_max"))]
            ratios = [
                "1"
                if server == part.baseline
                else ratio_text(view.comparison(part, scope, measure, server, one.first))
                for measure in (CPU, RPS)
            ]
            peak_text = human(max(peaks) / 1024) if peaks else DASH
            rows.append(
                Overall(
                    one.text, server, _mean(cpu), ratios[0], _mean(floor), _mean(rps) + star,
                    ratios[1] + star, _mean(client), peak_text, bool(star),
                )
            )  # fmt: skip
    return rows


def _mean(average: Average | None) -> str:
    if average is None:
        return DASH
    return f"{human(average.mean)} ({human(average.low)} to {human(average.high)})"


@dataclass(frozen=True)
class Latency:
    """The time of a request of a server in a slice: its median and its slowest percent."""

    where: str
    server: str
    p50: str
    p50_ratio: str
    p99: str
    p99_ratio: str


def latency_rows(view: View, part: Part) -> list[Latency]:
    """Returns the times of requests, where the load generator tells them."""
    scope = "x" if part.x_name else "cell"
    rows = []
    for one in view.slices(part):
        for server in part.levels["server"]:
            texts = []
            for measure in ("p50_ms", "p99_ms"):
                average = average_of(view, part, measure, server, one.first)
                row = view.comparison(part, scope, measure, server, one.first)
                ratio = "1" if server == part.baseline and average else ratio_text(row)
                words = {"same": ", within a tenth", "open": ", cannot tell"}
                texts += [_mean(average), ratio + (words.get(state_of(row), "") if row else "")]
            if texts[0] != DASH:
                rows.append(Latency(one.text, server, *texts))
    return rows


def answered_rows(view: View, part: Part, one: Slice) -> list[list[str]]:
    """Returns which share of the requests that were due each server answered, by x."""
    rows = []
    for server in part.levels["server"]:
        row = [server]
        for x in view.x_values(part):
            cell = view.at(part, one.first, server, x)
            good, *lost = (
                0.0 if cell is None else float(view.data.sample(cell, name).sum())
                for name in ("complete", "unanswered", "lost")
            )
            row.append(percent_text(good / (good + sum(lost))) if good + sum(lost) else DASH)
        rows.append(row)
    return rows


def other_rows(view: View, part: Part, one: Slice) -> list[list[str]]:
    """Returns the 99th percentile of the requests for the other document of each server, by x,
    below the names of the columns; nothing, if nobody asks for it."""

    def time(server: str, x: str) -> str:
        cell = view.at(part, one.first, server, x)
        times = np.zeros(0) if cell is None else view.data.unit_sample(cell, "other_p99_ms")
        if len(times) < 2:
            return DASH
        mean = mean_test(np.log(times))
        return estimate_text(*map(math.exp, (mean.estimate, *mean.interval())))

    times = {x: [time(server, x) for server in part.levels["server"]] for x in view.x_values(part)}
    known = {x: column for x, column in times.items() if set(column) != {DASH}}
    if not known:
        return []
    names = ["server", *(view.say(part.x_name, x) for x in known)]
    return [names, *(list(row) for row in zip(part.levels["server"], *known.values(), strict=True))]


def any_lacking(view: View, part: Part) -> bool:
    """Returns true if a server has a measure of the tables at other x than its baseline."""
    measures = [CPU, CLIENT_CPU] if is_asked(view, RPS) else [CPU, CLIENT_CPU, RPS]
    if latency_rows(view, part):
        measures += ["p50_ms", "p99_ms"]
    return any(
        view.data.has_data(cell, measure)
        and view.data.lacks_levels(view.data.value(cell, "server"), cell, part, measure)
        for cell in part.cells
        for measure in measures
    )


@dataclass(frozen=True)
class CellRow:
    """A cell, with all that was measured."""

    x: str
    server: str
    cpu: str
    cpu_ratio: str
    rps: str
    rps_ratio: str
    p_holm: str
    p50: str
    p99: str
    lost: str
    voluntary: str
    involuntary: str
    peak: str
    load_cpu: str


def cell_rows(view: View, part: Part, one: Slice) -> list[CellRow]:
    rows = []
    for x in view.x_values(part):
        for server in part.levels["server"]:
            cell = view.at(part, one.first, server, x)
            if cell is not None:
                rows.append(_cell_row(view, part, server, x, cell))
    return rows


def _cell_row(view: View, part: Part, server: str, x: str, cell: int) -> CellRow:
    row = view.row(cell)
    runs = int(row["n"])
    star = " \\*" if view.bound(cell) else ""
    few = f" (n = {runs})" if runs < view.most_runs else ""
    cpu_row = view.comparison(part, "cell", CPU, server, cell)
    rps_row = view.comparison(part, "cell", RPS, server, cell)
    is_base = server == part.baseline
    load = parsed(row.get("load_cpu"))
    peak = parsed(row.get("peak_kib"))
    return CellRow(
        thousands(float(x)) if x else "",
        server,
        _spread(view, cell, CPU),
        "1" if is_base else ratio_text(cpu_row),
        _spread(view, cell, RPS) + star + few,
        "1" if is_base else ratio_text(rps_row),
        DASH if is_base or rps_row is None else p_text(rps_row.get("p_holm", "-")),
        _interval(view, cell, "p50_ms"),
        _interval(view, cell, "p99_ms"),
        human(row.get("lost", "-")),
        human(row.get("voluntary")),
        human(row.get("involuntary")),
        DASH if peak is None else human(peak / 1024),
        DASH if load is None else f"{load * 100:.0f}%{star}",
    )


def _spread(view: View, cell: int, column: str) -> str:
    """A mean with half the width of its interval."""
    estimate = view.estimate(cell, column)
    if estimate is None:
        return DASH
    half = (estimate.high - estimate.low) / 2
    return human(estimate.mean) + (f" ± {human(half)}" if half > 0 else "")


def _interval(view: View, cell: int, column: str) -> str:
    """A geometric mean with its interval, which is not symmetric."""
    estimate = view.estimate(cell, column)
    if estimate is None:
        return DASH
    if estimate.low == estimate.high:
        return human(estimate.mean)
    return f"{human(estimate.mean)} ({human(estimate.low)} to {human(estimate.high)})"


# --- the numbers of a checked report ---


@dataclass(frozen=True)
class TheirRow:
    """A number of a report beside ours, each with what it is of the first of its column."""

    where: str
    x: str
    theirs: str
    ours: tuple[str, ...]


def their_rows(view: View, part: Part) -> list[TheirRow]:
    rows: list[TheirRow] = []
    if not part.x_name:
        return rows
    for one in view.slices(part):
        first: dict[str, float] = {}

        def relative(key: str, value: float | None, first: dict[str, float] = first) -> str:
            if not value:
                return DASH
            first.setdefault(key, value)
            return f"{human(value)} ({factor_text(value / first[key])})"

        values = view.cell_values(one.first)
        for x in part.levels[part.x_name]:
            theirs = view.study.theirs_of({**values, part.x_name: x}, "rps")
            if theirs is None:
                continue
            ours = []
            for server in part.subjects:
                estimate = view.estimate(view.at(part, one.first, server, x), "rps")
                ours.append(relative(server, estimate.mean if estimate else None))
            rows.append(TheirRow(one.text, thousands(float(x)), relative("", theirs), tuple(ours)))
    return rows


R1_COLUMNS = ("time_ms", "across_ms", "min_ms", "mean_ms", "sd_ms", "p50_ms", "max_ms")


def r1_rows(view: View) -> list[list[str]]:
    """The table of the report R1, `ab -n 10000 -c 10` in milliseconds, beside ours."""
    rows = []
    for cell in range(view.data.count):
        values = view.cell_values(cell)
        theirs = [view.study.theirs_of(values, column) for column in R1_COLUMNS]
        if values["concurrency"] != "10" or theirs[0] is None:
            continue
        head = [values["file"], values["server"]]
        rows.append([*head, "report", *("" if n is None else f"{n:g}" for n in theirs)])
        rps = view.estimate(cell, "rps")
        if rps:
            ours = [10 * 1000 / rps.mean, 1000 / rps.mean]
            ours += [view.number(cell, column) or float("nan") for column in R1_COLUMNS[2:]]
            rows.append([*head, "here", *(DASH if n != n else f"{n:.3f}" for n in ours)])
    return rows


# Figure 30.1 of UNP: what a server is called there, and its seconds of CPU for process control.
UNP_FORK = 20.90
UNP = (
    ("fork", "a fork per client", 20.90),
    ("prefork", "children made in advance, each calls accept", 1.80),
    ("thread", "a thread per client", 0.99),
    ("pool+accept=mutex", "threads made in advance, a mutex around accept", 1.93),
    ("prefork+accept=lock", "children made in advance, a file lock around accept", None),
    ("prefork+accept=mutex", "children made in advance, a mutex around accept", None),
    ("prefork+accept=pass", "children made in advance, the parent passes connections", None),
    ("pool+accept=queue", "threads made in advance, the main thread accepts", None),
    ("prefork+accept=reuseport", "(not in the book) a listener for each child", None),
    ("pool", "(not in the book) all threads block in accept", None),
    ("pool+accept=reuseport", "(not in the book) a listener for each thread", None),
    ("epoll", "(not in the book) event loops, of which as few listen as the load needs", None),
    ("epoll+accept=shared", "(not in the book) the same, all listen", None),
    ("epoll+accept=reuseport", "(not in the book) the same, a listener for each", None),
)


def unp_rows(view: View, part: Part) -> list[list[str]]:
    """The book's seconds of process control beside our microseconds per request."""
    first = part.cells[0]
    fork = average_of(view, part, "control_us", "fork", first)
    rows = []
    for server, design, seconds in UNP:
        ours = average_of(view, part, "control_us", server, first)
        if fork is None or ours is None:
            continue
        here = f"{human(ours.mean)} ({human(ours.low)} to {human(ours.high)})"
        book = [f"{seconds:.2f}", f"{seconds / UNP_FORK:.3f}"] if seconds else [DASH, DASH]
        share = f"{ours.mean / fork.mean:.3f}" if fork.mean > 0 else DASH
        rows.append([design, server, *book, here, share])
    return rows


# --- studies of other clients: idle, slow, crashes ---


def counted(value: float) -> str:
    """A number that may be a count."""
    return str(int(value)) if value == int(value) and value < 1000 else human(value)


def median_range(row: Row, column: str, unit_of: float = 1) -> str:
    """A median with its range, where there is one."""
    middle = parsed(row.get(f"{column}_middle"))
    low, high = parsed(row.get(f"{column}_least")), parsed(row.get(f"{column}_most"))
    if middle is None or low is None or high is None:
        return DASH
    low, high = low / unit_of, high / unit_of
    said = counted(middle / unit_of)
    if human(low) == human(high):
        return said
    return f"{said} ({counted(low)} to {counted(high)})"


def runs_text(row: Row) -> str:
    """Returns the number of runs, and of those in which a server could not hold connections."""
    texts = [row["n"]] if int(row["n"]) else []
    if int(row.get("n_cannot", "0")):
        held = row["held_of_cannot"]
        holds = "" if held == "-" else f": holds {thousands(float(held))}"
        texts.append(f"{row['n_cannot']} × cannot hold{holds}".replace(" ", "\u00a0"))
    if int(row["n_invalid"]):
        texts.append(f"{row['n_invalid']} invalid")
    return ", ".join(texts)


def held_rows(view: View, part: Part, one: Slice) -> list[list[str]]:
    rows = []
    idle = part.x_name == "idle"
    for server in part.levels["server"]:
        for level, x in enumerate(part.levels[part.x_name]):
            cell = view.at(part, one.first, server, x)
            if cell is None:
                continue
            row = view.row(cell)
            ratio = view.comparison(part, "cell", RPS, server, cell)
            star = " \\*" if view.bound(cell) else ""
            last = (
                [human(row.get("idle_kib")), memory_text(view, part, cell) if level else DASH]
                if idle
                else [median_range(row, "unanswered"), median_range(row, "cut")]
            )
            rows.append(
                [
                    server,
                    thousands(float(x)),
                    median_range(row, RPS) + star,
                    ratio_text(ratio) if level else "1",
                    median_range(row, "p99_ms"),
                    median_range(row, "max_ms"),
                    human(row["server_cpu_us_mean"]),
                    median_range(row, "peak_kib", 1024),
                    *last,
                    runs_text(row),
                ]
            )
    return rows


def _again_rows(view: View, part: Part, one: Slice, failed: str) -> list[tuple[Row, list[str]]]:
    """The rows of servers that are to serve everybody again; `failed` counts what was lost."""
    rows = []
    for server in part.levels["server"]:
        for x in view.x_values(part):
            cell = view.at(part, one.first, server, x)
            if cell is None:
                continue
            row = view.row(cell)
            never = int(row["n_never"])
            follow = ", and all that follow" if never and failed == "lost" else ""
            texts = [
                server,
                *([x] if part.x_name else []),
                median_range(row, failed) + follow,
                median_range(row, "again_ms"),
                f"{never} of {row['n']} runs" if never else DASH,
            ]
            rows.append((row, texts))
    return rows


def fault_rows(view: View, part: Part, one: Slice) -> list[list[str]]:
    return [texts for _, texts in _again_rows(view, part, one, "lost")]


def surge_rows(view: View, part: Part, one: Slice) -> list[list[str]]:
    return [[*texts, runs_text(row)] for row, texts in _again_rows(view, part, one, "unanswered")]


# --- the findings of those studies, by server ---


@dataclass(frozen=True)
class Outcome:
    """The results of a server at the greatest number of clients; `numbers` by name."""

    server: str
    runs: int
    numbers: dict[str, float]
    state: str = ""
    ratio: float = 0.0
    memory: float | None = None


NUMBERS = ("n_cannot", "held_of_cannot", "n_never", "rps_middle", "max_ms_middle", "lost_middle",
           "lost_most", "again_ms_middle", "unanswered_middle", "unanswered_most",
           "idle_kib")  # fmt: skip


def outcomes(view: View, part: Part) -> list[Outcome]:
    from collect.present.row_figures import memory_each

    found = []
    top = view.x_values(part)[-1]
    for server in part.levels["server"]:
        cell = view.at(part, part.cells[0], server, top)
        if cell is None:
            continue
        row = view.row(cell)
        numbers = {name: n for name in NUMBERS if (n := parsed(row.get(name))) is not None}
        comparison = view.comparison(part, "cell", RPS, server, cell)
        state, ratio = "", 0.0
        if comparison:
            ratio = float(comparison["ratio"])
            shown = comparison["difference"]
            state = shown if shown != "not shown" else "open" if is_open(comparison) else "same"
        memory = memory_each(view, part, cell) if part.x_name == "idle" else None
        found.append(Outcome(server, int(row["n"]), numbers, state, ratio, memory))
    return found
