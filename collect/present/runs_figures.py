"""Figures of the runs themselves: their order, their spread, and their rounds."""

from __future__ import annotations

import math

import numpy as np

from collect.histogram import Histogram, add, quantile
from collect.infer.cells import Part
from collect.infer.contrast import contrast_test, mean_of_pairs, server_pairs
from collect.infer.statistics import Values, describe
from collect.present.chart import Figure, LineFigure, Panel, Point, Series
from collect.present.results_view import Slice, View
from collect.present.scales import Scale, linear_tics, log_tics, ratio_scale
from collect.present.server_groups import Group, group_servers
from collect.present.server_looks import look_of
from collect.project import CALIBRATION_FILE
from collect.tables import read_table

CPU = "server_cpu_us"
MOST_PANELS = 8
BINS = 40
STEPS = 40


def residuals_of(view: View, column: str) -> Values | None:
    """For each valid run its value relative to the mean of its cell, as a logarithm."""
    runs = view.data.valid_runs
    values = view.data.column(column, runs).to_numpy()
    if not len(values) or not (values > 0).any():
        return None
    logs = np.log(np.where(values > 0, values, np.nan))
    cells = runs["cell"].to_numpy()
    total = np.bincount(cells, np.nan_to_num(logs), view.data.count)
    count = np.bincount(cells, ~np.isnan(logs), view.data.count)
    return np.asarray(logs - (total / np.maximum(count, 1))[cells])


def runs_figures(view: View) -> list[Figure]:
    """The order and the spread of the runs, and latencies; with rounds, also ratios and floors."""
    figures: list[Figure | None] = []
    residuals = residuals_of(view, CPU)
    what = view.cpu_title
    if residuals is None:
        residuals, what = residuals_of(view, "rps"), "Requests per second"
    if residuals is not None and view.data.blocks > 1:
        figures += [_order_figure(view, residuals, what), _residual_figure(view, residuals, what)]
    figures += [latency_figure(view), rounds_figure(view), calibration_figure(view)]
    return [figure for figure in figures if figure]


def _figure(view: View, name: str, title: str, subtitle: str, panels: int) -> LineFigure:
    columns = 1 if panels == 1 else 2 if panels in (2, 4) else 3
    return LineFigure(name, name, "", title, subtitle, 0, "", columns=columns)


def _groups(view: View) -> list[Group]:
    return group_servers(view.data.subjects)


def _order_figure(view: View, residuals: Values, what: str) -> LineFigure | None:
    """Runs in the order in which they were made, averaged in bins of time."""
    runs = view.data.valid_runs
    order = runs["run"].astype(float).to_numpy()
    servers = runs["server"].to_numpy()
    groups = _groups(view)
    title = f"{what} in the order of the runs"
    subtitle = (
        "Each run relative to the mean of its cell; means of neighbouring runs with their 95% "
        "intervals. A level line is a steady machine."
    )
    figure = _figure(view, "order", title, subtitle, len(groups))
    last = float(order.max())
    figure.x = Scale(0, last * 1.02, False, tuple(linear_tics(0, last, 4)))
    figure.x_title, figure.y_title = "number of the run", "relative to its cell"
    figure.line_at = 1.0
    for group in groups:
        series = []
        for server, label in zip(group.servers, group.labels, strict=True):
            mine = (servers == server) & ~np.isnan(residuals)
            points = _binned(order[mine], residuals[mine], last, server)
            if points:
                series.append(Series(label, look_of(server), tuple(points)))
        if series:
            figure.panels.append(Panel(group.title, tuple(series)))
    return _with_ratio_scale(figure)


def _binned(order: Values, residuals: Values, last: float, server: str) -> list[Point]:
    bins = max(min(6, len(order) // 2), min(BINS, len(order) // 12), 1)
    which = np.minimum((order / last * bins).astype(int), bins - 1)
    points = []
    for number in range(bins):
        values = residuals[which == number]
        if len(values) < 2:
            continue
        d = describe(values)
        mean, low, high = (math.exp(v) for v in (d.mean, d.low, d.high))
        first, until = order[which == number].min(), order[which == number].max()
        text = f"{server}, runs {first:.0f} to {until:.0f}: {mean:.3f} ({low:.3f} to {high:.3f})"
        points.append(Point(float((first + until) / 2), mean, low, high, False, text))
    return points


def _residual_figure(view: View, residuals: Values, what: str) -> LineFigure | None:
    """The distribution of the runs of each server around the means of their cells."""
    servers = view.data.valid_runs["server"].to_numpy()
    groups = _groups(view)
    title = f"{what}: how single runs spread"
    subtitle = (
        "Share of the runs (ECDF) that are at most so large, relative to the mean of their cell. "
        "A steep line is a server that always does the same."
    )
    figure = _figure(view, "spread", title, subtitle, len(groups))
    finite = residuals[~np.isnan(residuals)]
    low, high = (float(v) for v in np.exp(np.quantile(finite, [0.005, 0.995])))
    if low == high:
        return None
    figure.x = Scale(low, high, False, tuple(linear_tics(low, high, 4)))
    figure.x_title, figure.y_title = "run / mean of its cell", "percent of the runs"
    for group in groups:
        series = []
        for server, label in zip(group.servers, group.labels, strict=True):
            mine = residuals[(servers == server) & ~np.isnan(residuals)]
            if len(mine) > 1:
                points = _ecdf(mine, low, high, server)
                series.append(Series(label, look_of(server), tuple(points), marked=False))
        if series:
            figure.panels.append(Panel(group.title, tuple(series)))
    if not figure.panels:
        return None
    figure.scales = [Scale(0, 103, False, tuple(linear_tics(0, 100, 5)))] * len(figure.panels)
    return figure


def _ecdf(residuals: Values, low: float, high: float, server: str) -> list[Point]:
    """An empirical distribution at steps of its percentiles."""
    shares = np.linspace(0.005, 0.995, STEPS)
    values = np.exp(np.quantile(residuals, shares))
    points = []
    for value, share in zip(values, shares, strict=True):
        percent = float(share) * 100
        text = f"{server}: {percent:.0f}% of the runs are at most {value:.2f} of the mean"
        if low <= value <= high:
            points.append(Point(float(value), percent, percent, percent, False, text))
    return points


def _with_ratio_scale(figure: LineFigure) -> LineFigure | None:
    if not figure.panels:
        return None
    points = [point for panel in figure.panels for point in panel.points()]
    scale = ratio_scale([p.y for p in points], [p.low for p in points], [p.high for p in points])
    figure.scales = [scale] * len(figure.panels)
    figure.columns = min(figure.columns, len(figure.panels))
    if scale.log:
        figure.y_title += " (logarithmic)"
    return figure


# --- times of single requests ---


def latency_figure(view: View) -> LineFigure | None:
    """The distribution of the times of all requests, where the runs have histograms."""
    histograms = read_histograms(view)
    if not histograms:
        return None
    title = "Time of a request: all requests"
    subtitle = "Share of the requests (ECDF) that took at most so long; all runs of a panel."
    figure = _figure(view, "latency", title, subtitle, 1)
    for part in view.parts:
        values = view.x_values(part)
        chosen = sorted({values[len(values) // 2], values[-1]}, key=values.index)
        for one in view.slices(part):
            for value in chosen:
                for group in group_servers(part.subjects):
                    panel = _latency_panel(view, part, one, value, group, histograms)
                    if panel and len(figure.panels) < MOST_PANELS:
                        figure.panels.append(panel)
    if not figure.panels:
        return None
    times = [p.x for panel in figure.panels for p in panel.points()]
    low, high = min(times), max(times)
    figure.x = Scale(low, high * 1.05, True, tuple(log_tics(low, high * 1.05)))
    figure.x_title = "milliseconds (logarithmic)"
    figure.y_title = "percent of the requests"
    figure.scales = [Scale(0, 103, False, tuple(linear_tics(0, 100, 5)))] * len(figure.panels)
    figure.columns = 1 if len(figure.panels) == 1 else 2
    return figure


def read_histograms(view: View) -> dict[int, list[Histogram]]:
    """The histograms of the valid runs, by cell."""
    found: dict[int, list[Histogram]] = {}
    for run, cell in view.data.valid_runs[["run", "cell"]].itertuples(index=False):
        histogram = view.data.histograms.get(run)
        if histogram is not None:
            found.setdefault(int(cell), []).append(histogram)
    return found


def _latency_panel(
    view: View,
    part: Part,
    one: Slice,
    value: str,
    group: Group,
    histograms: dict[int, list[Histogram]],
) -> Panel | None:
    series = []
    for server, label in zip(group.servers, group.labels, strict=True):
        cell = view.at(part, one.first, server, value)
        mine = histograms.get(cell, []) if cell is not None else []
        if mine:
            points = _latencies(add(mine), server)
            series.append(Series(label, look_of(server), tuple(points), marked=False))
    if not series:
        return None
    at = view.say(part.x_name, value) if part.x_name else ""
    texts = (view.part_text(part), group.title, one.text, at)
    return Panel(": ".join(text for text in texts if text), tuple(series))


def _latencies(histogram: Histogram, server: str) -> list[Point]:
    """The distribution at percentiles, the slow end finer."""
    shares = [*np.linspace(0.01, 0.95, 40), 0.96, 0.97, 0.98, 0.99, 0.995, 0.999]
    points = []
    for share in shares:
        time, percent = quantile(histogram, float(share)), float(share) * 100
        text = f"{server}: {percent:.1f}% of the requests took at most {time:.3g} ms"
        points.append(Point(time, percent, percent, percent, False, text))
    return points


# --- rounds ---


def rounds_figure(view: View) -> LineFigure | None:
    """The ratio of each server to its baseline in every round; None without rounds."""
    if view.rounds < 2:
        return None
    title = f"{view.cpu_title} relative to the baseline, round by round"
    subtitle = (
        "Ratio of each round relative to the mean of all rounds; shaded: the 95% interval of that "
        "mean. A level line is a ratio that does not drift."
    )
    figure = _figure(view, "rounds", title, subtitle, 1)
    figure.x = _round_scale(view.rounds)
    figure.x_title, figure.y_title = "round", "ratio / its mean"
    figure.line_at = 1.0
    for part in view.parts:
        for one in view.slices(part):
            for group in group_servers(part.subjects):
                panel = _round_panel(view, part, one, group)
                if panel and len(figure.panels) < MOST_PANELS:
                    figure.panels.append(panel)
    figure.columns = 1 if len(figure.panels) == 1 else 2
    return _with_ratio_scale(figure)


def _round_scale(rounds: int) -> Scale:
    step = max(1, round(rounds / 8))
    tics = tuple((str(n), float(n)) for n in range(1, rounds + 1, step))
    return Scale(0.5, rounds + 0.6, False, tics)


def _round_panel(view: View, part: Part, one: Slice, group: Group) -> Panel | None:
    series = []
    band: tuple[tuple[float, float, float], ...] = ()
    for server, label in zip(group.servers, group.labels, strict=True):
        if server == part.baseline:
            continue
        cells = [view.at(part, one.first, server, x) for x in view.x_values(part)]
        known = [cell for cell in cells if cell is not None]
        pairs = server_pairs(view.data, server, part.baseline, known, CPU)
        result = contrast_test(view.data, mean_of_pairs(pairs), CPU)
        if result is None:
            continue
        points = tuple(
            Point(float(n), float(r), float(r), float(r), False,
                  f"{server}, round {n}: {r * result.ratio:.3f}, {r:.3f} of the mean")
            for n, r in enumerate(np.exp(result.effects), 1)
        )  # fmt: skip
        series.append(Series(label, look_of(server), points))
        low, high = (end / result.ratio for end in result.ratio_interval())
        band = ((0.5, low, high), (view.rounds + 0.5, low, high))
    if not series:
        return None
    title = ": ".join(text for text in (view.part_text(part), group.title, one.text) if text)
    return Panel(title, tuple(series), band if len(series) == 1 else ())


def calibration_figure(view: View) -> LineFigure | None:
    """Draws the floors, servers that do nothing, at the start and the end of each round."""
    path = view.folder / CALIBRATION_FILE
    rows = [row for row in read_table(path).rows if row["valid"] == "yes"] if path.exists() else []
    if len({row["round"] for row in rows}) < 2:
        return None
    title = "The floors at the start and the end of each round"
    subtitle = (
        "Relative to their own mean, with the range of the runs. A level line is a machine that "
        "stays the same."
    )
    figure = _figure(view, "calibration", title, subtitle, 2)
    hours = [float(row["started"]) / 3600 for row in rows]
    figure.x = Scale(0, max(hours) * 1.03, False, tuple(linear_tics(0, max(hours), 5)))
    figure.x_title, figure.y_title = "hours since the study began", "relative to their mean"
    figure.line_at = 1.0
    for column, what in (("server_cpu_us", "server CPU per request"), ("rps", "requests/s")):
        series = [_floor_series(rows, server, column) for server in FLOORS]
        figure.panels.append(Panel(what, tuple(one for one in series if one.points)))
    figure.panels = [panel for panel in figure.panels if panel.series]
    return _with_ratio_scale(figure)


FLOORS = ("floor-one", "floor-thread", "floor-fork")


def _floor_series(rows: list[dict[str, str]], server: str, column: str) -> Series:
    """A floor at the beginning and the end of each round: the mean of its runs there."""
    at: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in rows:
        if row["server"] == server and row[column] not in ("-", "0"):
            value = float(row["started"]) / 3600, float(row[column])
            at.setdefault((row["round"], row["when"]), []).append(value)
    values = [value for group in at.values() for _, value in group]
    mean = sum(values) / len(values) if values else 1.0
    points = []
    for (number, when), group in at.items():
        ratios = [value / mean for _, value in group]
        middle, hour = sum(ratios) / len(ratios), group[0][0]
        text = f"{server}, round {number}, {when}: {middle:.3f} of its mean"
        points.append(Point(hour, middle, min(ratios), max(ratios), False, text))
    return Series(server, look_of(server), tuple(points))
