"""Comparisons within blocks.

Every comparison is a contrast of logarithms: with weights w over cells c, the sum of
w[c] * ln(value[c]) is taken within each block, so that whatever changes from block to block
cancels. The blocks are the sample of a one-sample t-test. Server A against server B in one cell is
the paired t-test on the log-ratio (weights 1 and -1). Averages over many cells and slopes differ in
the weights alone. The exponential of the result is a ratio of geometric means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from collect.infer.cells import Cells
from collect.infer.statistics import Test, Values, mean_test, t_test


@dataclass(frozen=True)
class Contrast:
    """Cells with their weights."""

    cells: tuple[int, ...]
    weights: tuple[float, ...]

    def pairs(self) -> list[tuple[int, int]]:
        """Returns the cells of a contrast of pairs, two by two."""
        return list(zip(self.cells[::2], self.cells[1::2], strict=True))


@dataclass(frozen=True)
class Result:
    """A tested contrast. `effects` are the deviations of the blocks from the estimate."""

    test: Test
    blocks: int
    effects: Values

    @property
    def ratio(self) -> float:
        return math.exp(self.test.estimate)

    def ratio_interval(self, confidence: float = 0.95) -> tuple[float, float]:
        low, high = self.test.interval(confidence)
        return math.exp(low), math.exp(high)


def mean_of(cells: Sequence[int]) -> Contrast:
    """The mean over cells."""
    return Contrast(tuple(cells), (1 / len(cells),) * len(cells)) if cells else Contrast((), ())


def mean_of_pairs(pairs: Sequence[tuple[int, int]]) -> Contrast:
    """The mean over pairs of cells of the first against the second."""
    weight = 1 / max(len(pairs), 1)
    return Contrast(tuple(c for pair in pairs for c in pair), (weight, -weight) * len(pairs))


def means_against(above: Sequence[int], below: Sequence[int]) -> Contrast:
    """The mean over some cells against the mean over others."""
    first, second = mean_of(above), mean_of(below)
    return Contrast(first.cells + second.cells, first.weights + tuple(-w for w in second.weights))


def server_pairs(
    data: Cells, a: str, b: str, cells: Iterable[int], measure: str
) -> list[tuple[int, int]]:
    """Returns the cells of servers a and b that are like these cells, where both have data."""
    pairs: dict[int, tuple[int, int]] = {}
    for cell in cells:
        first, second = data.like(cell, server=a), data.like(cell, server=b)
        if first is None or second is None or first in pairs:
            continue
        if data.has_data(first, measure) and data.has_data(second, measure):
            pairs[first] = first, second
    return list(pairs.values())


def test_contrast(data: Cells, contrast: Contrast, measure: str) -> Result | None:
    """Tests a contrast of a measure; None if a cell has fewer than two blocks.

    A pair counts the blocks that hold both. In larger contrasts a cell without a valid run in a
    block contributes its own mean there. Where some cells are in the first blocks alone, only those
    blocks count: in later ones their spread would be missing.
    """
    if not contrast.cells:
        return None
    cells = list(contrast.cells)
    weights = np.array(contrast.weights)
    last = min([data.last_block[c] for c in cells if data.in_first_blocks(c)], default=data.blocks)
    logs = data.logarithms(measure)[cells, :last]
    present = ~np.isnan(logs)
    if len(cells) == 2:
        present &= present.all(axis=0)
    counts = present.sum(axis=1)
    if counts.min() < 2:
        return None
    logs = np.where(present, logs, 0)
    means = logs.sum(axis=1) / counts
    deviations = np.where(present, logs - means[:, None], 0)
    effects = (weights @ deviations)[present.any(axis=0)]
    n = len(effects)
    error = float(np.std(effects, ddof=1)) / math.sqrt(n)
    return Result(t_test(float(weights @ means), error, n - 1), n, effects)


def control_cost(data: Cells, server: str, cells: Iterable[int]) -> Values:
    """Returns what the control of processes or threads costs a server, by block; NaN if unknown.

    That is its CPU time per request less that of `iterative`, which serves in the same way and has
    nothing to control: the mean over these cells.
    """
    cpu = data.measured("server_cpu_us")
    pairs = [(data.like(c, server=server), data.like(c, server="iterative")) for c in cells]
    rows = [
        cpu[own] - cpu[reference]
        for own, reference in pairs
        if own is not None and reference is not None
    ]
    if not rows:
        return np.full(data.blocks, np.nan)
    table = np.array(rows)
    count = np.count_nonzero(~np.isnan(table), axis=0)
    return np.where(count > 0, np.nansum(table, axis=0) / np.maximum(count, 1), np.nan)


def test_blocks(values: Values) -> Result | None:
    """Tests the mean of one value a block; None of fewer than two."""
    known = values[~np.isnan(values)]
    if len(known) < 2:
        return None
    test = mean_test(known)
    return Result(test, len(known), known - test.estimate)
