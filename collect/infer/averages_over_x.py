"""averages.tsv: the numbers of each server alone, averaged over the x axis."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from collect.infer.cells import Cells, Part
from collect.infer.contrast import Result, blocks_test, contrast_test, control_cost, mean_of
from collect.infer.round_floors import floor_by_round
from collect.tables import number

MEASURES = ("rps", "server_cpu_us", "client_cpu_us", "p50_ms", "p99_ms")
RELATIVE = ("rps", "server_cpu_us")  # also relative to the floor of each round
COLUMNS = ["cells", "client_bound", "blocks", "mean", "low", "high", "unit"]


def average(data: Cells) -> pd.DataFrame:
    """Returns geometric means over the cells of a server and slice (control_us: arithmetic)."""
    rows: list[list[str]] = []
    for part in data.parts:
        for server in part.levels["server"]:
            for key, cells in _slices(data, part, server).items():
                rows += _averages(data, part, server, key, cells)
    return pd.DataFrame(rows, columns=["part", "measure", "server", *data.factors[1:], *COLUMNS])


def _slices(data: Cells, part: Part, server: str) -> dict[tuple[str, ...], list[int]]:
    slices: dict[tuple[str, ...], list[int]] = {}
    for cell in part.cells:
        if data.value(cell, "server") == server:
            key = tuple(
                "*" if name == part.x_name else data.value(cell, name) for name in data.factors[1:]
            )
            slices.setdefault(key, []).append(cell)
    return slices


def _to_floor(data: Cells, cells: list[int], measure: str) -> Result | None:
    """Tests a mean relative to the floor of each round, where rounds have floors."""
    calibration = data.calibration
    if data.rounds < 2 or calibration is None or measure not in calibration:
        return None
    floor = floor_by_round(calibration, data.round_numbers, measure)
    if np.count_nonzero(~np.isnan(floor)) < 2:
        return None
    return contrast_test(data, mean_of(cells), measure, floor)


def _averages(
    data: Cells, part: Part, server: str, key: tuple[str, ...], cells: list[int]
) -> list[list[str]]:
    rows = []

    def add(measure: str, used: int, bound: int, result: Result, figures: list[float]) -> None:
        counts = [str(used), str(bound), str(result.blocks)]
        rows.append(
            [str(part.number), measure, server, *key, *counts, *map(number, figures), data.unit]
        )

    for measure in MEASURES:
        if data.lacks_levels(server, cells[0], part, measure):
            continue
        known = [c for c in cells if data.has_data(c, measure)]
        result = contrast_test(data, mean_of(known), measure)
        bound = sum(data.client_bound(c) for c in known)
        relative = _to_floor(data, known, measure) if measure in RELATIVE else None
        for name, found in ((measure, result), (f"{measure}_to_floor", relative)):
            if found:
                add(name, len(known), bound, found, [found.ratio, *found.ratio_interval()])
    control = blocks_test(data, control_cost(data, server, cells))
    if control and not data.lacks_levels(server, cells[0], part):
        figures = [control.test.estimate, *control.test.interval()]
        add(
            "control_us",
            len(cells),
            0,
            control,
            [0.0 if math.isclose(f, 0, abs_tol=1e-300) else f for f in figures],
        )
    return rows
