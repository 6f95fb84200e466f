"""Figures of the runs themselves: their order, their spread, and what rounds say."""

from __future__ import annotations

import math

import numpy as np

from collect.infer.statistics import Values, describe
from collect.present.chart import Figure, LineFigure, Panel, Point, Series
from collect.present.groups import Group, group_servers
from collect.present.palette import look_of
from collect.present.scales import Scale, linear_tics, ratio_scale
from collect.present.view import View

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
    """Run order, residuals; with rounds the floors and the ratio over time."""
    figures: list[Figure | None] = []
    residuals = residuals_of(view, "server_cpu_us")
    what = "Server CPU per request"
    if residuals is None:
        residuals, what = residuals_of(view, "rps"), "Requests per second"
    if residuals is not None and view.data.blocks > 1:
        figures += [_order_figure(view, residuals, what), _residual_figure(view, residuals, what)]
    return [figure for figure in figures if figure]


def _figure(view: View, name: str, title: str, subtitle: str, panels: int) -> LineFigure:
    columns = 1 if panels == 1 else 2 if panels in (2, 4) else 3
    return LineFigure(name, name, "", title, subtitle, 0, "", columns=columns)


def _groups(view: View) -> list[Group]:
    return group_servers(view.data.levels["server"])


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
    bins = max(2, min(BINS, len(order) // 12))
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
