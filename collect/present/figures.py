"""The figures of a study, and their contents.

For each part and file: CPU per request, requests/s, time of a request, ratio to the baseline,
memory; where they were measured, the busiest worker and the events of a wait. Studies of what
happens to others, studies without an x axis and averages are rows (row_figures.py). The runs are in
runs_figures.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from collect.infer.cells import ORDINARY, Part
from collect.present.anatomy_figures import anatomy_figures
from collect.present.chart import Figure, LineFigure, Panel, Point, Series
from collect.present.facts import RPS, answered_cells, is_asked, kind_of
from collect.present.results_view import Estimate, Slice, View
from collect.present.row_figures import average_rows, category_figures, outcome_figures
from collect.present.runs_figures import runs_figures
from collect.present.scales import Scale, level_scale, log_scale, ratio_scale, value_scale, x_shift
from collect.present.server_groups import Group, group_servers
from collect.present.server_looks import REPORT, look_of
from collect.present.where_ratio_crosses_bound import falling_ratio_figure
from collect.readable_numbers import estimate_text, human, plural

LOG = " (logarithmic)"
CEILING = "floor-one"

# A line lower than another one by this factor would lie on an axis that begins at zero.
FAR_LINES = 30.0
# Panels whose values differ by this factor get their own scales.
OWN_SCALES = 4.0


@dataclass(frozen=True)
class Measure:
    """The measure that a figure shows: a column of the runs."""

    name: str
    kind: str
    column: str
    title: str
    axis: str
    unit: str
    note: str = ""
    factor: float = 1.0


CPU = Measure("cpu", "cpu", "server_cpu_us", "Server CPU per request",
              "microseconds/request", "µs/request", " Less is better.")  # fmt: skip
REQUESTS = Measure("requests", "requests", "rps", "Requests per second", "requests/s", "requests/s",
                   " As this client sees them.")  # fmt: skip
MEMORY = Measure("memory", "memory", "peak_kib", "Peak memory of the server", "MiB", "MiB",
                 " The whole process tree.", 1 / 1024)  # fmt: skip
IDLE = Measure("idle-memory", "idle", "idle_kib", "Memory of a held connection, processes alone",
               "KiB", "KiB", " Less is better.")  # fmt: skip
KERNEL = Measure("idle-memory-kernel", "idle", "each_kib",
                 "Memory of a held connection, with what the kernel charges for it",
                 "KiB", "KiB", " Less is better.")  # fmt: skip
DISK = Measure("disk", "time", "disk_kib", "Read from the disk for a request", "KiB", "KiB",
               " Less is better.")  # fmt: skip
OTHER = Measure("other-time", "time", "other_p99_ms",
                "Time of a request for the other document, 99th percentile",
                "milliseconds", "ms", " Less is better.")  # fmt: skip
BUSIEST_TIME = Measure("busiest-time", "time", "busiest_p99_ms",
                       "Time of a request that the busiest worker answered, 99th percentile",
                       "milliseconds", "ms", " Less is better.")  # fmt: skip
REST_TIME = Measure("rest-time", "time", "rest_p99_ms",
                    "Time of a request that another worker answered, 99th percentile",
                    "milliseconds", "ms", " Less is better.")  # fmt: skip
BATCH = Measure("batch", "batch", "batch", "Events that a wait of an event loop brought",
                "events/wait", "events/wait")  # fmt: skip
BUSIEST = Measure("busiest", "busiest", "busiest", "Requests that the busiest worker answered",
                  "percent of all", "%", " Dashed: an even share.", 100.0)  # fmt: skip
TIMES = {"p50_ms": "median", "p95_ms": "95th percentile", "p99_ms": "99th percentile"}


def figures_of(view: View) -> list[Figure]:
    """Returns all figures of a study, those of the part that answers its question first."""
    figures: list[Figure] = []
    for part in view.parts:
        for file in part.levels["file"]:
            prefix = "" if file == "-" else file.rsplit(".", 1)[0] + "-"
            if part.kind != ORDINARY:
                figures += outcome_figures(view, part, file, prefix)
                continue
            if len(view.parts) > 1:
                prefix += f"part{part.number}-"
            figures += anatomy_figures(view, part, file, prefix)
            figures += average_rows(view, part, file, prefix)
            if part.x_name:
                figures += _Maker(view, part, file, prefix).figures()
            else:
                figures += category_figures(view, part, file, prefix)
    if falls := falling_ratio_figure(view):
        figures.append(falls)
    if is_asked(view, RPS) and kind_of(view) == ORDINARY:
        figures = [figure for figure in figures if figure.kind not in ("requests", "alone")]
    figures += runs_figures(view)
    first = _answering_parts(view)
    figures.sort(key=lambda figure: figure.part not in first)
    for figure in figures:
        figure.name = "".join(c if c.isalnum() or c in "._-" else "_" for c in figure.name)
    return figures


def _answering_parts(view: View) -> set[int]:
    """Returns the parts that hold the cells of the study's contrast; all where it names none."""
    answering = {cell for _, cell in answered_cells(view)}
    parts = {part.number for part in view.parts if answering.intersection(part.cells)}
    return parts or {part.number for part in view.parts}


class _Maker:
    """Makes the figures of a file in a part that has an x axis."""

    def __init__(self, view: View, part: Part, file: str, prefix: str) -> None:
        self.view, self.part, self.file, self.prefix = view, part, file, prefix
        self.slices = view.slices(part, file)
        self.groups = group_servers(part.subjects)
        self.bound = " Hollow: the client is the limit." if view.any_bound(part) else ""
        self.of = view.of_file(file)

    def figures(self) -> list[Figure]:
        made = [
            self.measure_figure(CPU),
            self.measure_figure(REQUESTS),
            self.time_figure(),
            self.ratio_figure(),
            self.measure_figure(OTHER),
            self.measure_figure(DISK) if self.part.x_name == "data_share" else None,
            self.measure_figure(BUSIEST),
            self.measure_figure(BUSIEST_TIME),
            self.measure_figure(REST_TIME),
            self.measure_figure(BATCH),
            self.measure_figure(KERNEL),  # the first of a kind is the one that a report begins with
            self.measure_figure(IDLE),
            self.measure_figure(MEMORY),
            self.alone_figure(),
        ]
        return [figure for figure in made if figure]

    @property
    def columns(self) -> int:
        panels = len(self.slices) * len(self.groups)
        return 1 if panels == 1 else 3 if panels > 8 or panels == 3 else 2

    def x_scale(self, columns: int) -> Scale:
        return level_scale(self.part.levels[self.part.x_name], {1: 660, 2: 330}.get(columns, 210))

    def figure(self, name: str, kind: str, title: str, subtitle: str, columns: int) -> LineFigure:
        x = self.x_scale(columns)
        return LineFigure(
            self.prefix + name, kind, self.file, title + self.of, subtitle,
            self.part.number, self.view.part_text(self.part),
            x_title=self.view.axis_title(self.part) + (LOG if x.log else ""), x=x, columns=columns,
        )  # fmt: skip

    def panel_title(self, group: Group, cells: Slice) -> str:
        return ": ".join(text for text in (group.title, cells.text) if text)

    # --- a measure ---

    def measure_figure(self, measure: Measure) -> LineFigure | None:
        note = measure.note
        if measure is BUSIEST and not any(map(self.even_share, self.groups)):
            note = ""  # no line is drawn: the number of workers varies
        subtitle = (
            f"Mean of {self.view.runs_said(self.part)} with its 95% interval.{note}{self.bound}"
        )
        title = self.view.cpu_title if measure is CPU else measure.title
        figure = self.figure(measure.name, measure.kind, title, subtitle, self.columns)
        figure.y_title = measure.axis
        for cells in self.slices:
            for group in self.groups:
                series = self.measure_series(measure, group, cells, figure.x)
                if not series:
                    continue
                if measure is REQUESTS:
                    series = (*series, *self.references(group, cells, figure))
                even = self.even_share(group) if measure is BUSIEST else None
                title = self.panel_title(group, cells)
                figure.panels.append(Panel(title, series, line_at=even))
        return finished(figure)

    def measure_series(
        self, measure: Measure, group: Group, cells: Slice, x: Scale
    ) -> tuple[Series, ...]:
        found = []
        for place, (server, label) in enumerate(zip(group.servers, group.labels, strict=True)):
            points = []
            for value in self.part.levels[self.part.x_name]:
                cell = self.view.at(self.part, cells.first, server, value)
                estimate = self.view.estimate(cell, measure.column)
                if cell is None or estimate is None:
                    continue
                at = x_shift(x, float(value), place, len(group.servers))
                points.append(self.point(server, value, cell, measure, estimate, at))
            if points:
                found.append(Series(label, look_of(server), tuple(points)))
        return tuple(found)

    def point(
        self, server: str, value: str, cell: int, measure: Measure, e: Estimate, at: float
    ) -> Point:
        factor, hollow = measure.factor, self.view.bound(cell)
        interval = f" ({human(e.low * factor)} to {human(e.high * factor)})" if e.n > 1 else ""
        limit = "; the client is the limit" if hollow else ""
        text = (
            f"{server}, {self.view.say(self.part.x_name, value, cell)}: {human(e.mean * factor)} "
            f"{measure.unit}{interval}, {plural(e.n, 'run', 'runs')}{limit}"
        )
        return Point(at, e.mean * factor, e.low * factor, e.high * factor, hollow, text)

    def references(self, group: Group, cells: Slice, figure: LineFigure) -> list[Series]:
        """Returns the references for requests/s: the client's ceiling, and those of a report."""
        extra = []
        servers = self.part.levels["server"]
        if CEILING in servers and CEILING not in group.servers:
            one = Group("", (CEILING,), ("ceiling",))
            for series in self.measure_series(REQUESTS, one, cells, figure.x):
                points = tuple(
                    Point(p.x, p.y, p.y, p.y, False, "ceiling of the client, " + p.text)
                    for p in series.points
                )
                extra.append(Series("ceiling", series.look, points, dashed=True, marked=False))
            words = f"Dashed, ceiling: {CEILING}, the most that this client can ask for."
            _add_words(figure, words)
        theirs = self.theirs(cells)
        if theirs:
            extra.append(theirs)
            _add_words(figure, "Dashed, report: theirs.")
        return extra

    def theirs(self, cells: Slice) -> Series | None:
        points = []
        values = self.view.cell_values(cells.first)
        for value in self.part.levels[self.part.x_name]:
            cell = {**values, self.part.x_name: value}
            number = self.view.study.theirs_of(cell, "rps")
            if number is not None:
                text = (
                    f"report, {self.view.say(self.part.x_name, value)}: {human(number)} requests/s"
                )
                points.append(Point(float(value), number, number, number, False, text))
        return Series("report", REPORT, tuple(points), dashed=True) if points else None

    def even_share(self, group: Group) -> float | None:
        """The even share of the workers of a panel in percent; None where their numbers differ."""
        counts = {
            round(estimate.mean)
            for cell in self.part.cells
            if self.view.data.value(cell, "server") in group.servers
            and (estimate := self.view.estimate(cell, "workers")) is not None
        }
        return 100 / counts.pop() if len(counts) == 1 else None

    # --- others ---

    def time_figure(self) -> LineFigure | None:
        """Percentiles of the time of a request; its mean where the client knows no percentiles."""
        known = any(self.view.estimate(cell, "p95_ms") for cell in self.part.cells)
        columns = TIMES if known else {"mean_ms": "mean"}
        wide = len(columns) if len(columns) > 1 else self.columns
        what = "Percentiles" if known else "Mean"
        pooled = known and self.view.data.pools("p99_ms")
        of = "all requests of a round" if pooled else "each run"
        mean = "geometric mean" if known else "mean"
        subtitle = (
            f"{what} of {of}; {mean} of {self.view.runs_said(self.part)} with its 95% interval."
            f"{self.bound}"
        )
        figure = self.figure("time", "time", "Time of a request", subtitle, wide)
        figure.y_title = "milliseconds"
        for cells in self.slices:
            for group in self.groups:
                for column, name in columns.items():
                    measure = Measure("time", "time", column, "", "", "ms")
                    series = self.measure_series(measure, group, cells, figure.x)
                    title = self.panel_title(group, cells)
                    if known:
                        title = f"{name}: {title}" if title else name
                    if series:
                        figure.panels.append(Panel(title, series))
        return finished(figure)

    def ratio_figure(self) -> LineFigure | None:
        baseline = self.part.baseline
        subtitle = f"Ratio within blocks with its 95% interval; the line at 1 is {baseline}."
        title = f"{self.view.cpu_title}, relative to {baseline}"
        figure = self.figure("ratio", "ratio", title, subtitle + " Less is better.", self.columns)
        figure.y_title = "ratio"
        figure.line_at = 1.0
        for cells in self.slices:
            for group in self.groups:
                series = tuple(
                    one
                    for place, server in enumerate(group.servers)
                    if (one := self.ratio_series(server, group, place, cells, figure.x))
                )
                if series:
                    figure.panels.append(Panel(self.panel_title(group, cells), series))
        return finished(figure, ratios=True)

    def ratio_series(
        self, server: str, group: Group, place: int, cells: Slice, x: Scale
    ) -> Series | None:
        points = []
        for value in self.part.levels[self.part.x_name]:
            cell = self.view.at(self.part, cells.first, server, value)
            row = self.view.comparison(self.part, "cell", "server_cpu_us", server, cell)
            if row is None or cell is None:
                continue
            ratio, low, high = (float(row[name]) for name in ("ratio", "low", "high"))
            said = self.view.say(self.part.x_name, value, cell)
            text = f"{server} / {self.part.baseline}, {said}: {estimate_text(ratio, low, high)}"
            at = x_shift(x, float(value), place, len(group.servers))
            points.append(Point(at, ratio, low, high, False, text))
        label = group.labels[group.servers.index(server)]
        return Series(label, look_of(server), tuple(points)) if points else None

    def alone_figure(self) -> LineFigure | None:
        """A panel for each server: every run lies in the shaded band."""
        servers = self.part.subjects
        if not 1 < len(servers) * len(self.slices) <= 12 or len(servers) == 1:
            return None
        subtitle = (
            f"Mean of {self.view.runs_said(self.part)} with its 95% interval; "
            f"shaded: slowest to fastest run.{self.bound}"
        )
        title = "Requests per second, each server alone"
        figure = self.figure("alone", "alone", title, subtitle, 2 if len(servers) < 5 else 3)
        figure.y_title = "requests/s"
        for cells in self.slices:
            for server in servers:
                group = Group("", (server,), ("",))
                series = self.measure_series(REQUESTS, group, cells, figure.x)
                if series:
                    title = f"{server}: {cells.text}" if cells.text else server
                    figure.panels.append(Panel(title, series, self.band(server, cells)))
        return finished(figure)

    def band(self, server: str, cells: Slice) -> tuple[tuple[float, float, float], ...]:
        found = []
        for value in self.part.levels[self.part.x_name]:
            cell = self.view.at(self.part, cells.first, server, value)
            low, high = self.view.number(cell, "rps_min"), self.view.number(cell, "rps_max")
            if low is not None and high is not None:
                found.append((float(value), low, high))
        return tuple(found)


def _add_words(figure: Figure, words: str) -> None:
    if words not in figure.subtitle:
        figure.subtitle += f" {words}"


# --- scales of panels ---


def finished(figure: LineFigure, ratios: bool = False) -> LineFigure | None:
    """Gives the panels of a figure their scales; None where there is no panel."""
    if not figure.panels:
        return None
    figure.columns = min(figure.columns, len(figure.panels))
    if ratios:
        figure.scales = [_scale_of(figure.panels, _ratios)] * len(figure.panels)
    else:
        tops = sorted(max(p.y for p in panel.points()) for panel in figure.panels)
        far_apart = any(big > OWN_SCALES * small for small, big in pairwise([tops[0], tops[-1]]))
        if far_apart:
            figure.scales = [_scale_of([panel], _values) for panel in figure.panels]
            _add_words(figure, "Each panel has its own scale.")
        else:
            figure.scales = [_scale_of(figure.panels, _values)] * len(figure.panels)
    shown = zip(figure.panels, figure.scales, strict=True)
    if any(p.high > scale.high for panel, scale in shown for p in panel.points()):
        _add_words(figure, "Intervals that end at the upper edge are longer.")
    if all(scale.log for scale in figure.scales):
        figure.y_title += LOG
    elif any(scale.log for scale in figure.scales):
        _add_words(figure, "Axes without a zero are logarithmic.")
    return figure


def _scale_of(panels: Sequence[Panel], make: Callable[[list[Point]], Scale]) -> Scale:
    """The scale of panels; logarithmic where one line would lie on the axis beside another."""
    tops = sorted(max(p.y for p in series.points) for panel in panels for series in panel.series)
    if make is _values and 0 < tops[0] * FAR_LINES < tops[-1]:
        values = [p.y for panel in panels for p in panel.points() if p.y > 0]
        return log_scale(min(values), max(values))
    points = [point for panel in panels for point in panel.points()]
    bands = [Point(x, high, low, high, False, "") for p in panels for x, low, high in p.band]
    return make(points + bands)


def _values(points: list[Point]) -> Scale:
    return value_scale([p.y for p in points], [p.high for p in points], [p.low for p in points])


def _ratios(points: list[Point]) -> Scale:
    return ratio_scale([p.y for p in points], [p.low for p in points], [p.high for p in points])
