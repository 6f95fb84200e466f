"""threats.tsv: the threats to the validity of a study, in numbers."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from collect.infer.cells import Cells, cannot_hold
from collect.infer.round_floors import moves
from collect.infer.statistics import Values, line_fit, mean_test, share_interval
from collect.measure.warn_of_drift import MOVED
from collect.tables import number

COLUMNS = ["name", "subject", "value", "low", "high", "of"]
UNSTEADY = 0.1
Row = list[str]


def weigh(data: Cells, planned: int, machine: Path) -> pd.DataFrame:
    """Returns the threats to a study; `planned` is the number of planned runs, 0 if unknown."""
    count = len(data.runs)
    judged = [c for c in range(data.count) if data.is_client_judged(c)]
    rows = [
        _row("planned", count, planned or count),
        _row("disbelieved", data.disbelieved, count + data.disbelieved),
        _row("client_bound", sum(map(data.client_bound, judged)), len(judged)),
        *_lateness(data),
        *_invalid(data),
        _machine("others", machine),
        _machine("stolen", machine),
        *_calibration(data),
        *_steadiness(data),
    ]
    residuals = _residuals(data)
    for server in data.levels["server"]:
        rows += _drift(data, residuals, server)
    rows += _self_test(data, residuals)
    return pd.DataFrame(rows, columns=COLUMNS)


def _row(name: str, value: int, of: int) -> Row:
    return [name, "-", str(value), "-", "-", str(of)]


def _invalid(data: Cells) -> list[Row]:
    bad = data.runs[(data.runs["valid"] != "yes") & ~data.runs["valid"].map(cannot_hold)]
    rows = [_row("invalid", len(bad), len(data.runs))]
    reasons = (bad["server"] + ": " + bad["valid"]).value_counts(sort=False)
    return rows + [
        ["reason", str(reason), str(n), "-", "-", str(len(bad))] for reason, n in reasons.items()
    ]


def _lateness(data: Cells) -> list[Row]:
    """Returns the largest share of requests of a run that the open loop started late, and how many
    runs were made again for that."""
    late, tries = _numbers(data.valid_runs, "late"), _numbers(data.runs, "tries")
    rows = [["late", "-", number(float(late.max())), "-", "-", str(len(late))]] if len(late) else []
    return rows + ([_row("again", int((tries > 1).sum()), len(tries))] if len(tries) else [])


def _numbers(runs: pd.DataFrame, name: str) -> pd.Series:
    """Returns the known numbers of a column; none of runs from before it was there."""
    column = runs[name] if name in runs else pd.Series(dtype=float)
    return pd.to_numeric(column, errors="coerce").dropna()


def _machine(name: str, path: Path) -> Row:
    """Returns the largest percentage that was recorded (an interrupted study has several)."""
    most = -math.inf
    text = "-"
    for line in path.read_text().splitlines() if path.exists() else []:
        key, _, value = line.partition("\t")
        if key == f"{name}_percent" and float(value) > most:
            most, text = float(value), number(float(value))
    return [name, "-", text, "-", "-", "100"]


def _calibration(data: Cells) -> list[Row]:
    """Returns how many floors moved within their round, and each of those that did."""
    found = [] if data.calibration is None else moves(data.calibration)
    if not found:
        return []
    marked = [m for m in found if m.is_marked]
    each = [
        ["moved_floor", f"round {m.round}, {m.floor}", number(m.ratio), "-", "-", number(MOVED)]
        for m in marked
    ]
    return [_row("moved", len(marked), len(found)), *each]


def _steadiness(data: Cells) -> list[Row]:
    """Returns the number of servers whose first tenth of a run is surely faster or slower than the
    rest by more than a tenth, and each of them."""
    if "first_tenth" not in data.runs:
        return []
    logs = data.logarithms("first_tenth")
    known, each = 0, []
    for server in data.levels["server"]:
        cells = [c for c in range(data.count) if data.value(c, "server") == server]
        units = data.by_unit(logs[cells])
        means = [float(np.nanmean(unit)) for unit in units.T if not np.isnan(unit).all()]
        if len(means) < 2:
            continue
        known += 1
        test = mean_test(means)
        ratio, low, high = (math.exp(v) for v in (test.estimate, test.low, test.high))
        if low > 1 + UNSTEADY or high < 1 / (1 + UNSTEADY):
            each.append(["unsteady_server", server, number(ratio), number(low), number(high), "-"])
    lacking = int(data.column("first_tenth", data.valid_runs).isna().sum())
    unknown = [_row("unsteady_unknown", lacking, len(data.valid_runs))] if lacking else []
    return [_row("unsteady", len(each), known), *unknown, *each] if known or lacking else []


def _residuals(data: Cells) -> Values:
    """Returns the logarithms of requests/s less their mean in the cell, cells by blocks."""
    logs = data.logarithms("rps")
    count = np.maximum(np.count_nonzero(~np.isnan(logs), axis=1), 1)
    return np.asarray(logs - (np.nansum(logs, axis=1) / count)[:, None])


def _block_means(data: Cells, residuals: Values, cells: list[int]) -> Values:
    """Returns the mean residual of each block; NaN without any.

    Cells that are in the first blocks alone have another mean behind their residuals, and tell
    nothing of the last.
    """
    rows = residuals[[c for c in cells if not data.in_first_blocks(c)]]
    count = np.count_nonzero(~np.isnan(rows), axis=0)
    return np.where(count > 0, np.nansum(rows, axis=0) / np.maximum(count, 1), np.nan)


def _drift(data: Cells, residuals: Values, server: str) -> list[Row]:
    """Returns the change of a server's requests/s from the first block to the last."""
    means = _block_means(data, residuals, data.pick(server=server))
    x = np.flatnonzero(~np.isnan(means)) + 1.0
    if len(x) < 3:
        return []
    line = line_fit(x, means[~np.isnan(means)])
    span = x[-1] - x[0]
    half = float(stats.t.ppf(0.975, line.df)) * line.slope_error * span
    change = line.slope * span
    figures = [math.exp(v) for v in (change, change - half, change + half)]
    return [["drift", server, *map(number, figures), str(len(x))]]


def _self_test(data: Cells, residuals: Values) -> list[Row]:
    """Compares each cell in every even block with the block before, without the effects of blocks.

    As the server is the same, about 5% of these tests should have p < 0.05.
    """
    effects = np.nan_to_num(_block_means(data, residuals, list(range(data.count))))
    tests = found = 0
    for cell in range(data.count):
        left = residuals[cell] - effects
        pairs = left[1::2] - left[: len(left[1::2]) * 2 : 2]
        known = pairs[~np.isnan(pairs)]
        if len(known) < 3:
            continue
        tests += 1
        found += mean_test(known).p < 0.05
    if not tests or data.count < 4:
        return []
    low, high = share_interval(found, tests)
    return [["self", "-", str(found), number(low), number(high), str(tests)]]
