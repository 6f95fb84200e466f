"""Comparisons within blocks and rounds.

Every comparison is a contrast of logarithms: with weights w over cells c, the sum of
w[c] * ln(value[c]) is taken within each block, so that whatever changes from block to block
cancels. The rounds are the sample of a one-sample t-test: the means of their blocks, or the blocks
themselves where there was one round. Server A against server B in one cell is
the paired t-test on the log-ratio (weights 1 and -1). Averages over many cells and slopes differ in
the weights alone. The exponential of the result is a ratio of geometric means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from collect.infer.cells import Cells
from collect.infer.statistics import Test, Values, line_fit, mean_test, t_test


@dataclass(frozen=True)
class Contrast:
    """Cells with their weights."""

    cells: tuple[int, ...]
    weights: tuple[float, ...]

    def pairs(self) -> list[tuple[int, int]]:
        """Returns the cells of a contrast of pairs, two by two."""
        return list(zip(self.cells[::2], self.cells[1::2], strict=True))


# Where the client limits the numerator, the servers' own ratio is the measured one or higher; where
# it limits the denominator, the measured one or lower.
NUMERATOR, DENOMINATOR, BOTH = LIMITS = ("numerator", "denominator", "both")


# Of fewer units, nobody knows which one is far from the others.
FEWEST_WITH_OUTLIER = 5
OUTLIER_LEVEL = 0.01


@dataclass(frozen=True)
class Spread:
    """The spread of an effect: standard deviations of its logarithm; NaN if unknown."""

    within: float = math.nan  # from block to block of a round
    between: float = math.nan  # from round to round, beyond what the blocks explain


@dataclass(frozen=True)
class Result:
    """A tested contrast. `effects` are the deviations of the units from the estimate."""

    test: Test
    blocks: int  # the units: rounds, or the blocks of one sitting
    effects: Values
    spread: Spread = Spread()
    limited: str = ""  # the side of a ratio of requests/s that the client limits: see LIMITS

    @property
    def drift(self) -> Test | None:
        """The change of the effect from the first unit to the last, by a fitted line."""
        if self.blocks < 3:
            return None
        line = line_fit(np.arange(float(self.blocks)), self.effects)
        span = self.blocks - 1
        return t_test(line.slope * span, line.slope_error * span, line.df)

    def without_outlier(self) -> Test | None:
        """The test of all units but an outlier: a unit whose studentized deleted residual has a p
        below 1%, divided by the number of units. None if there is no such unit."""
        if self.blocks < FEWEST_WITH_OUTLIER:
            return None
        farthest = int(np.argmax(np.abs(self.effects)))
        rest = mean_test(np.delete(self.effects, farthest))
        if not rest.error:
            return None
        # rest.error is that of a mean of n - 1 values; the root adds that of one more value.
        off = (self.effects[farthest] - rest.estimate) / (rest.error * math.sqrt(self.blocks))
        if t_test(off, 1, rest.df).p * self.blocks >= OUTLIER_LEVEL:
            return None
        return t_test(self.test.estimate + rest.estimate, rest.error, rest.df)

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
    pairs = []
    for servers in data.by_server(cells):
        first, second = servers.get(a), servers.get(b)
        if first is None or second is None:
            continue
        if data.has_data(first, measure) and data.has_data(second, measure):
            pairs.append((first, second))
    return pairs


def contrast_test(
    data: Cells, contrast: Contrast, measure: str, floor: Values | None = None
) -> Result | None:
    """Tests a contrast of a measure; None if a cell has fewer than two units.

    With `floor`, a logarithm for each unit, the contrast is relative to it.

    A pair counts the blocks that hold both. In larger contrasts a cell without a valid run in a
    unit contributes its own mean there. Where some cells are in the first units alone, only those
    count: in later ones their spread would be missing.
    """
    if not contrast.cells:
        return None
    cells = list(contrast.cells)
    weights = np.array(contrast.weights)
    logs = data.logarithms(measure)[cells]
    units = data.unit_logarithms(measure)[cells]
    if len(cells) == 2:
        logs = np.where(np.isnan(logs).any(axis=0), np.nan, logs)
        units = units if data.pools(measure) else data.by_unit(logs)
    if floor is not None:
        units = np.where(np.isnan(floor), np.nan, np.vstack([units, floor]))
        weights = np.append(weights, -1.0)
        logs = np.vstack([logs, np.repeat(np.nan, data.blocks)])
    units = units[:, : data.common_units(cells)]
    if np.count_nonzero(~np.isnan(units), axis=1).min() < 2:
        return None
    means = np.nanmean(units, axis=1)
    known = _weighted(units, means, weights)
    effects = known[~np.isnan(known)]
    n = len(effects)
    error = float(np.std(effects, ddof=1)) / math.sqrt(n)
    spread = spread_of(data, _weighted(logs, means, weights))
    limited = _limited(data, contrast) if measure == "rps" else ""
    return Result(t_test(float(weights @ means), error, n - 1), n, effects, spread, limited)


def _limited(data: Cells, contrast: Contrast) -> str:
    """Returns which side of a contrast has cells that the client limits."""
    bound = [
        weight
        for cell, weight in zip(contrast.cells, contrast.weights, strict=True)
        if data.client_bound(cell)
    ]
    above, below = any(w > 0 for w in bound), any(w < 0 for w in bound)
    return BOTH if above and below else NUMERATOR if above else DENOMINATOR if below else ""


def _weighted(logs: Values, means: Values, weights: Values) -> Values:
    """Returns the weighted deviations from the means by block or round; NaN without any cell."""
    present = ~np.isnan(logs)
    deviations = np.where(present, logs - means[:, None], 0)
    return np.where(present.any(axis=0), weights @ deviations, np.nan)


def spread_of(data: Cells, effects: Values) -> Spread:
    """Returns the spread of an effect within and between rounds, by analysis of variance."""
    rounds = np.array(data.round_of_block)
    groups = [effects[(rounds == r) & ~np.isnan(effects)] for r in range(data.rounds)]
    groups = [group for group in groups if len(group)]
    freedom = sum(len(group) - 1 for group in groups)
    if not freedom:
        return Spread()
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups) / freedom
    if len(groups) < 2:
        return Spread(math.sqrt(within))
    means = [float(group.mean()) for group in groups]
    explained = within * float(np.mean([1 / len(group) for group in groups]))
    between = max(0.0, float(np.var(means, ddof=1)) - explained)
    return Spread(math.sqrt(within), math.sqrt(between))


def control_cost(
    data: Cells, server: str, cells: Iterable[int], without: str = "iterative"
) -> Values:
    """Returns what the control of processes or threads costs a server, by block; NaN if unknown.

    That is its CPU time per request less that of a server that serves in the same way and has
    nothing to control, or less of it: the mean over these cells.
    """
    cpu = data.measured("server_cpu_us")
    pairs = [(data.like(c, server=server), data.like(c, server=without)) for c in cells]
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


def share_of_cost(
    data: Cells, part: tuple[str, str], whole: tuple[str, str], **when: str
) -> Result | None:
    """Tests a difference of CPU per request between two servers, as a share of another one."""
    cells = data.pick(server=part[0], **when)
    of_part = control_cost(data, part[0], cells, part[1])
    of_whole = control_cost(data, whole[0], cells, whole[1])
    known = of_whole > 0
    return blocks_test(data, np.where(known, of_part / np.where(known, of_whole, 1), np.nan))


def blocks_test(data: Cells, values: Values) -> Result | None:
    """Tests the mean of one value a block; None of fewer than two units."""
    units = data.by_unit(values)
    known = units[~np.isnan(units)]
    if len(known) < 2:
        return None
    test = mean_test(known)
    return Result(test, len(known), known - test.estimate, spread_of(data, values))
