"""comparisons.tsv: every server against its baseline, within blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd

from collect.design.factors import FACTORS
from collect.infer.cells import FAULT, HELD, SURGE, Cells, Part
from collect.infer.contrast import Result, contrast_test, mean_of_pairs, server_pairs
from collect.infer.statistics import holm
from collect.tables import number

MEASURES = ("rps", "server_cpu_us")
LATENCY = ("p50_ms", "p99_ms")
SCOPES = ("cell", "x", "all")
LEAST_UNITS = 4  # of a test of a single cell
HELD_MEASURES = (*MEASURES, "p99_ms", "peak_kib")
COLUMNS = [
    "cells",
    "client_bound",
    "blocks",
    "ratio",
    "low",
    "high",
    "t",
    "p",
    "p_holm",
    "all_low",
    "all_high",
    "difference",
    "unit",
    "sd_within",
    "sd_between",
    "drift",
    "drift_low",
    "drift_high",
    "drift_p",
]


@dataclass(frozen=True)
class Comparison:
    """One comparison: a server against another one, over a slice of the cells."""

    scope: str  # cell; x: averaged over the x axis; all: averaged over everything
    measure: str
    server: str
    baseline: str
    slice: tuple[str, ...]  # the factors but the server; * for those averaged over
    cells: int
    client_bound: int
    unit: str  # the unit of the interval: round or block
    result: Result
    latency: bool = False

    @property
    def family(self) -> str:
        """The tests that are adjusted together."""
        return f"{self.scope} latency" if self.latency else self.scope

    @property
    def is_tested(self) -> bool:
        """A single cell of few units has an interval, but no test, which would have no power."""
        return self.scope != "cell" or self.result.blocks >= LEAST_UNITS


def compare(data: Cells) -> pd.DataFrame:
    """Returns all comparisons.

    The rows of a scope are one family of tests; latencies are families of their own.
    """
    found: list[Comparison] = []
    for part in data.parts:
        if part.kind == HELD:
            found += _compare_held(data, part)
        elif part.kind not in (FAULT, SURGE):
            for scope in _scopes(part):
                found += _compare_scope(data, part, scope, MEASURES)
            found += _compare_scope(data, part, _widest(part), LATENCY)
    rows: list[list[str]] = []
    for family in (*SCOPES, *(f"{scope} latency" for scope in SCOPES)):
        rows += _family([c for c in found if c.family == family])
    return pd.DataFrame(
        rows, columns=["scope", "measure", "server", "baseline", *data.factors[1:], *COLUMNS]
    )


def _scopes(part: Part) -> list[str]:
    """Returns the scopes of a part; only cells that are alike are averaged over."""
    over_x = ["x"] if part.x_name else []
    alike = all(
        factor.averaged or factor.name == part.x_name or len(part.levels.get(factor.name, [])) < 2
        for factor in FACTORS
    )
    return ["cell", *over_x, *(["all"] if alike else [])]


def _widest(part: Part) -> str:
    """Returns the scope of latencies: single cells tell little of their tails."""
    return "x" if part.x_name else "cell"


def slice_of(data: Cells, part: Part, cell: int, scope: str) -> tuple[str, ...]:
    """Returns the factors of a cell but the server, with * for those that a scope averages over."""

    def kept(name: str) -> bool:
        return (
            scope == "cell" or len(part.levels[name]) == 1 or (scope == "x" and name != part.x_name)
        )

    return tuple(data.value(cell, name) if kept(name) else "*" for name in data.factors[1:])


def _compare_scope(
    data: Cells, part: Part, scope: str, measures: tuple[str, ...]
) -> list[Comparison]:
    members: dict[tuple[str, ...], list[int]] = {}
    for cell in part.cells:
        members.setdefault(slice_of(data, part, cell, scope), []).append(cell)
    found = []
    for measure in measures:
        for server in part.subjects:
            if server == part.baseline:
                continue
            for key, cells in members.items():
                pairs = server_pairs(data, server, part.baseline, cells, measure)
                result = contrast_test(data, mean_of_pairs(pairs), measure)
                if result:
                    bound = sum(data.client_bound(a) or data.client_bound(b) for a, b in pairs)
                    found.append(
                        Comparison(
                            scope,
                            measure,
                            server,
                            part.baseline,
                            key,
                            len(pairs),
                            bound,
                            data.unit,
                            result,
                            measure in LATENCY,
                        )
                    )
    return found


def _compare_held(data: Cells, part: Part) -> list[Comparison]:
    """Compares each server with itself without the clients that hold connections."""
    found = []
    lowest = part.levels[part.x_name][0]
    for measure in HELD_MEASURES:
        for cell in part.cells:
            base = data.like(cell, **{part.x_name: lowest})
            if (
                base is None
                or base == cell
                or not (data.has_data(cell, measure) and data.has_data(base, measure))
            ):
                continue
            result = contrast_test(data, mean_of_pairs([(cell, base)]), measure)
            if result:
                server = data.value(cell, "server")
                bound = int(data.client_bound(cell) or data.client_bound(base))
                found.append(
                    Comparison(
                        "cell",
                        measure,
                        server,
                        server,
                        slice_of(data, part, cell, "cell"),
                        1,
                        bound,
                        data.unit,
                        result,
                    )
                )
    return found


def _spread(result: Result) -> list[str]:
    """Returns the spread within and between rounds, and the drift of the ratio."""
    spread = [number(result.spread.within), number(result.spread.between)]
    drift = result.drift
    if drift is None:
        return [*spread, *["-"] * 4]
    ends = (drift.estimate, *drift.interval())
    return [*spread, *(number(math.exp(end)) for end in ends), number(drift.p)]


def _family(comparisons: list[Comparison]) -> list[list[str]]:
    """Returns the rows of one family of tests, with adjusted p-values and joint intervals."""
    tested = [c for c in comparisons if c.is_tested]
    adjusted = dict(zip(map(id, tested), holm([c.result.test.p for c in tested]), strict=True))
    rows = []
    for c in comparisons:
        tests = ["-"] * 5 + ["not shown"]
        if c.is_tested:
            tests = _tests(c.result, float(adjusted[id(c)]), len(tested))
        ratio = map(number, (c.result.ratio, *c.result.ratio_interval()))
        counts = [str(c.cells), str(c.client_bound), str(c.result.blocks)]
        head = [c.scope, c.measure, c.server, c.baseline, *c.slice, *counts]
        rows.append([*head, *ratio, *tests, c.unit, *_spread(c.result)])
    return rows


def _tests(result: Result, p_holm: float, of: int) -> list[str]:
    """Returns t, p, p_holm, the joint interval of so many tests, and what is shown."""
    test = result.test
    joint = result.ratio_interval(1 - 0.05 / of)
    shown = "not shown" if p_holm >= 0.05 else "higher" if test.estimate > 0 else "lower"
    return [*map(number, (test.t, test.p, p_holm, *joint)), shown]
