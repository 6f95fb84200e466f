"""Figures in rows: averages of servers, studies without an x axis, studies of other clients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from collect.infer.cells import FAULT, PERCENTILES, SURGE, Part
from collect.present.chart import Figure, Line, Mark, RowFigure
from collect.present.results_view import Slice, View, parsed
from collect.present.scales import Scale, log_scale, value_scale, zero_scale
from collect.present.server_groups import group_servers
from collect.present.server_looks import level_look, look_of
from collect.readable_numbers import DASH, estimate_text, human, plural, thousands

LOG = " (logarithmic)"
MANY_SERVERS = 5
# The kind of a figure of memory: the client does not limit that.
MEMORY = "memory"


# --- averages ---


def average_rows(view: View, part: Part, file: str, prefix: str) -> list[Figure]:
    """CPU per request, a bar for each server: one figure of all slices where the study shows `ways`
    first, else one of each slice where servers are many."""
    servers = part.subjects
    slices = view.slices(part, file)
    if view.study.figure == "ways" and not part.x_name and len(slices) > 1:
        return _average_figure(view, part, file, prefix + "ways", "ways", slices)
    if len(servers) <= MANY_SERVERS:
        return []
    figures = []
    for number, one in enumerate(slices, 1):
        name = prefix + "bars" + (f"-{number}" if len(slices) > 1 else "")
        figures += _average_figure(view, part, file, name, "bars", [one])
    return figures


def _average_figure(
    view: View, part: Part, file: str, name: str, kind: str, slices: list[Slice]
) -> list[Figure]:
    groups: list[tuple[str, list[Line]]] = []
    blocks = 0
    for one in slices:
        lines = []
        for server in part.levels["server"]:
            row = view.average(part, "server_cpu_us", server, one.first)
            if row:
                blocks = int(row["blocks"])
                lines.append(_average_line(server, row))
        if len(slices) == 1 and not view.study.steps:
            lines.sort(key=lambda line: line.marks[0].value)
        if lines:
            groups.append((one.text if len(slices) > 1 else "", lines))
    marks = [mark for _, lines in groups for line in lines for mark in line.marks]
    if len(marks) < 2:
        return []
    over = ""
    if part.x_name:
        over = f" over {len(part.levels[part.x_name])} levels of {part.x_words}"
    subtitle = (
        f"Less is better. Geometric mean{over}, with its 95% interval from "
        f"{plural(blocks, view.data.unit, view.data.unit + 's')}."
    )
    part_text = view.part_text(part)
    if len(slices) == 1 and slices[0].text:
        part_text = ", ".join(text for text in (part_text, slices[0].text) if text)
    figure = RowFigure(
        name, kind, file, view.cpu_title + view.of_file(file), subtitle, part.number,
        part_text, x_title="microseconds of CPU", groups=groups, bars=True,
    )  # fmt: skip
    top = min(max(mark.high for mark in marks), 1.5 * max(mark.value for mark in marks))
    figure.x = zero_scale(top)
    return [figure]


def _average_line(server: str, row: dict[str, str]) -> Line:
    mean, low, high = (float(row[name]) for name in ("mean", "low", "high"))
    text = f"{server}: {estimate_text(mean, low, high)} µs/request"
    return Line(server, (Mark(0, mean, low, high, False, text, look_of(server), human(mean)),))


# --- no x axis ---


@dataclass(frozen=True)
class Measure:
    """A figure of a study without an x axis."""

    name: str
    kind: str
    column: str
    title: str
    axis: str
    factor: float = 1.0


CATEGORY_MEASURES = (
    Measure("cpu", "cpu", "server_cpu_us", "Server CPU per request", "microseconds/request"),
    Measure("requests", "requests", "rps", "Requests per second", "requests/s"),
    Measure("time-median", "time", "p50_ms", "Time of a request, median", "milliseconds"),
    Measure("time-p99", "time", "p99_ms", "Time of a request, 99th percentile", "milliseconds"),
    Measure("memory", "memory", "peak_kib", "Peak memory of the server", "MiB", 1 / 1024),
)
MEAN_TIME = Measure("time", "time", "mean_ms", "Time of a request, mean", "milliseconds")


def category_figures(view: View, part: Part, file: str, prefix: str) -> list[Figure]:
    """A row for each server and slice, with the mean of its runs."""
    measures = list(CATEGORY_MEASURES)
    if view.study.figure == "ways":  # average_rows shows the CPU per request already
        measures.pop(0)
    if not any(view.estimate(cell, "p99_ms") for cell in part.cells):
        measures[-3:-1] = [MEAN_TIME]
    figures = [_category_figure(view, part, file, prefix, measure) for measure in measures]
    return [figure for figure in figures if figure]


def _category_figure(
    view: View, part: Part, file: str, prefix: str, measure: Measure
) -> RowFigure | None:
    groups: list[tuple[str, list[Line]]] = []
    for one in view.slices(part, file):
        lines = []
        for server in part.levels["server"]:
            cell = view.at(part, one.first, server, "")
            estimate = view.estimate(cell, measure.column)
            if cell is None or estimate is None:
                continue
            mean, low, high = (
                value * measure.factor for value in (estimate.mean, estimate.low, estimate.high)
            )
            bound = view.bound(cell)
            text = (
                f"{server}{', ' + one.text if one.text else ''}: {human(mean)} {measure.axis}"
                f"{'' if estimate.n < 2 else f' ({human(low)} to {human(high)})'}, "
                f"{plural(estimate.n, 'run', 'runs')}{'; the client is the limit' if bound else ''}"
            )
            mark = Mark(0, mean, low, high, bound, text, look_of(server), human(mean))
            lines.append(Line(server, (mark,)))
        if lines:
            groups.append((one.text, lines))
    if not groups:
        return None
    bound_words = " Hollow: the client is the limit." if view.any_bound(part) else ""
    what = "Geometric mean" if measure.column in PERCENTILES else "Mean"
    subtitle = f"{what} of {view.runs_said(part)} with its 95% interval.{bound_words}"
    title = view.cpu_title if measure.column == "server_cpu_us" else measure.title
    figure = RowFigure(
        prefix + measure.name, measure.kind, file, title + view.of_file(file), subtitle,
        part.number, view.part_text(part), x_title=measure.axis, groups=groups,
    )  # fmt: skip
    _scale(figure)
    return figure


def _scale(figure: RowFigure, log: bool = False) -> None:
    """Gives the rows their axis."""
    marks = [mark for _, lines in figure.groups for line in lines for mark in line.marks]
    values = [mark.value for mark in marks]
    lows, highs = [mark.low for mark in marks], [mark.high for mark in marks]
    positive = [low for low in lows if low > 0]
    if log and positive:
        figure.x = log_scale(min(positive), max(highs))
    elif values:
        figure.x = value_scale(values, highs, lows)
    if figure.x.log:
        figure.x_title += LOG


# --- studies of other clients ---


@dataclass
class _Outcome:
    """A figure of a study of what happens to others, under construction."""

    view: View
    part: Part
    figure: RowFigure
    lines: dict[str, tuple[list[Mark], list[tuple[int, float | None, str]]]] = field(
        default_factory=dict
    )

    @property
    def levels(self) -> list[str]:
        return self.view.x_values(self.part)

    def level_text(self, level: int) -> str:
        value = self.levels[level]
        return self.view.say(self.part.x_name, value) if self.part.x_name else value

    def cells(self, first: int) -> list[tuple[str, int, int]]:
        """Server, number of the level and cell of what was measured."""
        found = []
        for server in self.part.levels["server"]:
            for level, value in enumerate(self.levels):
                cell = self.view.at(self.part, first, server, value)
                if cell is not None:
                    found.append((server, level, cell))
        return found

    def row(self, server: str) -> tuple[list[Mark], list[tuple[int, float | None, str]]]:
        return self.lines.setdefault(server, ([], []))

    def mark(
        self, server: str, level: int, cell: int, value: float, low: float, high: float, unit: str
    ) -> None:
        said = self.level_text(level)
        spread = f", from {human(low)} to {human(high)}" if low < high else ""
        runs = plural(int(self.view.row(cell)["n"]), "run", "runs")
        bound = self.figure.kind != MEMORY and self.view.bound(cell)
        limit = "; the client is the limit" if bound else ""
        text = (
            f"{server}{', ' + said if said else ''}: {human(value)} {unit}{spread}, {runs}{limit}"
        )
        look = level_look(level, len(self.levels))
        self.row(server)[0].append(Mark(level, value, low, high, bound, text, look, ""))

    def note(self, server: str, level: int, place: float | None, words: str) -> None:
        notes = self.row(server)[1]
        said_before = any(known == words for _, _, known in notes)
        if not (place is None and said_before and "cannot hold" not in words):
            notes.append((level, place, words))

    def shown_levels(self) -> list[int]:
        """The levels of which the figure shows or says something."""
        rows = self.lines.values()
        marked = {mark.level for marks, _ in rows for mark in marks}
        return sorted(marked | {level for _, notes in rows for level, _, _ in notes})

    def line(self, server: str) -> Line:
        place = {level: place for place, level in enumerate(self.shown_levels())}
        marks, notes = self.lines[server]
        return Line(
            server,
            tuple(replace(mark, level=place[mark.level]) for mark in marks),
            tuple((place[level], at, words) for level, at, words in notes),
        )

    def finish(self, log: bool) -> RowFigure | None:
        groups = []
        for group in group_servers(self.part.levels["server"]):
            lines = [self.line(server) for server in group.servers if server in self.lines]
            if lines:
                groups.append((group.title, lines))
        self.figure.groups = groups
        if not any(line.marks for _, lines in groups for line in lines):
            return None
        if len(self.levels) > 1:
            self.figure.levels = [
                (self.level_text(level), level_look(level, len(self.levels)))
                for level in self.shown_levels()
            ]
        _scale(self.figure, log)
        # The ends of a range are runs: none is cut off.
        most = max(mark.high for _, lines in groups for line in lines for mark in line.marks)
        if not self.figure.x.log and most > self.figure.x.high:
            self.figure.x = zero_scale(most)
        if not log and self.figure.x.low == 0:
            self.figure.x = Scale(0, self.figure.x.high * 1.25, False, self.figure.x.tics)
        return self.figure


def outcome_figures(view: View, part: Part, file: str, prefix: str) -> list[Figure]:
    """The figures of a study of what happens to others, or afterwards."""
    runs = max((int(view.row(cell)["n"]) for cell in part.cells), default=0)
    spread = f"Median and range of {plural(runs, 'run', 'runs')}."
    hollow = " Hollow: the client is the limit." if view.any_bound(part) else ""
    slices = view.slices(part, file)
    figures = []
    for number, one in enumerate(slices, 1):
        base = prefix + (f"slice{number}-" if len(slices) > 1 else "")

        def begin(
            name: str, kind: str, title: str, axis: str, one: Slice = one, base: str = base
        ) -> _Outcome:
            figure = RowFigure(
                base + name, kind, file, title + view.of_file(file),
                spread + (hollow if kind != MEMORY else ""), part.number, one.text, x_title=axis,
            )  # fmt: skip
            return _Outcome(view, part, figure)

        makers = {FAULT: _fault_figures, SURGE: _surge_figures}.get(part.kind, _held_figures)
        figures += [figure for figure in makers(begin, one.first, part) if figure]
    return list(figures)


Begin = Callable[[str, str, str, str], _Outcome]


def _fault_figures(begin: Begin, first: int, part: Part) -> list[RowFigure | None]:
    lost = begin("lost", "requests", "Requests of others lost with one crash",
                 "requests lost, the fatal one not counted")  # fmt: skip
    _column(lost, first, "lost", 1, "requests lost")
    again = begin("again", "time", "Until all clients were served again",
                  "milliseconds from the fatal request on")  # fmt: skip
    _column(again, first, "again_ms", 1, "ms")
    return [lost.finish(False), again.finish(True)]


def _surge_figures(begin: Begin, first: int, part: Part) -> list[RowFigure | None]:
    again = begin(
        "again", "time", "Until no request failed any more", "milliseconds after the surge"
    )
    _column(again, first, "again_ms", 1, "ms")
    failed = begin("failed", "requests", "Requests that failed after the surge", "requests")
    _column(failed, first, "unanswered", 1, "requests")
    return [again.finish(False), failed.finish(False)]


def _held_figures(begin: Begin, first: int, part: Part) -> list[RowFigure | None]:
    requests = begin("requests", "requests", "Requests per second of the others", "requests/s")
    _column(requests, first, "rps", 1, "requests/s")
    time = begin("time", "time", "Time of a request, 99th percentile", "milliseconds")
    _column(time, first, "p99_ms", 1, "ms")
    if part.x_name == "slow":
        wait = begin("wait", "time", "The longest wait for a response", "milliseconds")
        wait.figure.subtitle += " A client that was not answered has waited so long."
        _column(wait, first, "max_ms", 1, "ms")
        return [requests.finish(False), time.finish(True), wait.finish(True)]
    memory = begin("memory", MEMORY, "Peak memory of the server", "MiB")
    _column(memory, first, "peak_kib", 1024, "MiB")
    each = begin("memory-each", MEMORY, "Memory for each idle connection", "KiB")
    each.figure.subtitle = (
        "How much the server grew while they came, for each of them. Median and range."
    )
    for server, level, cell in each.cells(first):
        value = memory_each(each.view, part, cell)
        if level and value is not None and value > 0:
            row = each.view.row(cell)
            low, high = parsed(row.get("each_kib_least")), parsed(row.get("each_kib_most"))
            each.mark(server, level, cell, value, low or value, high or value, "KiB")
        _say(each, server, level, cell, "memory")
    return [requests.finish(False), time.finish(True), memory.finish(True), each.finish(True)]


def _column(outcome: _Outcome, first: int, column: str, unit_of: float, unit: str) -> None:
    """Adds the median and the range of a column of the summary."""
    for server, level, cell in outcome.cells(first):
        row = outcome.view.row(cell)
        middle = parsed(row.get(f"{column}_middle"))
        low, high = parsed(row.get(f"{column}_least")), parsed(row.get(f"{column}_most"))
        if middle is not None and low is not None and high is not None:
            outcome.mark(server, level, cell, middle / unit_of, low / unit_of, high / unit_of, unit)
        _say(outcome, server, level, cell, column)


def _say(outcome: _Outcome, server: str, level: int, cell: int, column: str) -> None:
    """Notes what a server could not do."""
    row = outcome.view.row(cell)
    n, cannot, never = (int(row.get(name, "0")) for name in ("n", "n_cannot", "n_never"))
    if cannot:
        many = f"in {cannot} of {n + cannot} runs " if n else ""
        held = row["held_of_cannot"]
        holds = "" if held == "-" else f": holds {thousands(float(held))}"
        wanted = thousands(float(outcome.levels[level]))
        outcome.note(server, level, None, f"{many}cannot hold {wanted}{holds}")
    if column == "again_ms" and never:
        many = f"in {never} of {n} runs " if never < n else ""
        is_fault = outcome.part.kind == FAULT
        ends = "until restarted by hand" if is_fault else "as long as the run lasts"
        outcome.note(server, level, None, f"{many}not again, {ends}")
    if column == "lost" and never:
        outcome.note(server, level, parsed(row["lost_most"]), "and all that follow")
    if column == "rps" and parsed(row["rps_most"]) == 0:
        outcome.note(server, level, 0, "nobody is answered")


def memory_each(view: View, part: Part, cell: int) -> float | None:
    """Memory in KiB for each connection that is held in a cell.

    That is what the server grew by while they came; else its peak beyond that without them.
    """
    grown = parsed(view.row(cell).get("each_kib_middle"))
    if grown is not None and grown > 0:
        return grown
    lowest = part.levels[part.x_name][0]
    base = view.data.like(cell, **{part.x_name: lowest})
    peak, before = view.number(cell, "peak_kib"), view.number(base, "peak_kib")
    if base is None or base == cell or peak is None or before is None:
        return None
    held = float(view.data.value(cell, part.x_name)) - float(lowest)
    return (peak - before) / held


def memory_text(view: View, part: Part, cell: int) -> str:
    value = memory_each(view, part, cell)
    return DASH if value is None else human(value)
