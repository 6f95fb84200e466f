"""Building blocks of the tests of claims: findings from servers, pairs of cells, trends."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from collect.design.factors import Context, factor_value
from collect.infer.cells import Cells
from collect.infer.claim_verdicts import Finding
from collect.infer.contrast import (
    Contrast,
    Result,
    blocks_test,
    contrast_test,
    mean_of_pairs,
    means_against,
    server_pairs,
)
from collect.infer.statistics import Values, line_fit

MEASURE_TEXTS = {"rps": "requests/s", "peak_kib": "peak memory"}


def measure_text(data: Cells, measure: str) -> str:
    return data.cpu_words if measure == "server_cpu_us" else MEASURE_TEXTS[measure]


def lowest(data: Cells, factor: str) -> str:
    return data.levels[factor][0]


def highest(data: Cells, factor: str) -> str:
    return data.levels[factor][-1]


def varies(data: Cells, factor: str) -> bool:
    return len(data.levels[factor]) > 1


def has_level(data: Cells, factor: str, value: str) -> bool:
    return value in data.levels.get(factor, ())


def said(data: Cells, factor: str, value: str) -> str:
    """Returns a factor's value in words."""
    context = Context(*(frozenset(data.levels[name]) for name in ("load", "scheme", "file")))
    return factor_value(factor, value, context)


def server_named(data: Cells, name: str) -> str:
    """Returns the first server of this name, as it is or with a number; empty without one."""
    matches = (s for s in data.levels["server"] if s == name or s.startswith(name + "~"))
    return next(matches, "")


def without_mistake(data: Cells, server: str) -> str:
    """Returns what a server with a mistake is compared with: the same without its last option."""
    plain = server.rpartition("+")[0]
    return plain if has_level(data, "server", plain) else data.baseline


def limited_share(data: Cells, pairs: Sequence[tuple[int, int]], measure: str) -> str:
    """Says how many of several pairs of cells the load generator limits, if any."""
    limited = sum(data.client_bound(a) or data.client_bound(b) for a, b in pairs)
    if not limited or measure != "rps" or len(pairs) == 1:
        return ""
    return f"{limited} of {len(pairs)} cells"


def of_servers(
    data: Cells,
    kind: str,
    rule: str,
    servers: tuple[str, str],
    measure: str,
    cells: Sequence[int],
    where: str,
) -> list[Finding]:
    """Tests one server against another over these cells."""
    a, b = servers
    if not a or not b:
        return []
    pairs = server_pairs(data, a, b, cells, measure)
    result = contrast_test(data, mean_of_pairs(pairs), measure)
    if not result:
        return []
    tested = f"{a} / {b}, {measure_text(data, measure)}{where}"
    share = limited_share(data, pairs, measure)
    return [Finding(kind, tested, rule, result=result, limited_share=share)]


def of_pairs(
    data: Cells,
    rule: str,
    tested: str,
    measure: str,
    cells: Sequence[int],
    changes: dict[str, str],
    kind: str = "claim",
) -> list[Finding]:
    """Tests these cells against those that differ by these changes."""
    pairs = []
    for cell in cells:
        other = data.like(cell, **changes)
        if other is not None and data.has_data(cell, measure) and data.has_data(other, measure):
            pairs.append((cell, other))
    result = contrast_test(data, mean_of_pairs(pairs), measure)
    if not result:
        return []
    share = limited_share(data, pairs, measure)
    return [Finding(kind, tested, rule, result=result, limited_share=share)]


def against(data: Cells, above: Sequence[int], below: Sequence[int], measure: str) -> Result | None:
    """Tests the mean over some cells against that over others."""
    first = [c for c in above if data.has_data(c, measure)]
    second = [c for c in below if data.has_data(c, measure)]
    if not first or not second:
        return None
    return contrast_test(data, means_against(first, second), measure)


def found(
    kind: str, rule: str, tested: str, result: Result | None, scale: str = "ratio"
) -> list[Finding]:
    """Returns a finding if there is a result."""
    return [Finding(kind, tested, rule, scale, result)] if result else []


def trend(
    data: Cells, cells: Sequence[int], measure: str, factor: str, low: str, high: str,
    logarithmic: bool = False,
) -> Result | None:  # fmt: skip
    """Tests the change of a measure from `low` to `high` of a factor, by a fitted line.

    The line goes through logarithms, over the factor or its logarithm, and is averaged over what
    else varies.
    """

    def scaled(value: float) -> float:
        return math.log(value) if logarithmic else value

    index = data.factors.index(factor)
    groups: dict[tuple[str, ...], list[int]] = {}
    for cell in cells:
        if float(low) <= float(data.value(cell, factor)) <= float(high) and data.has_data(
            cell, measure
        ):
            key = data.keys[cell]
            groups.setdefault(key[:index] + key[index + 1 :], []).append(cell)
    span = scaled(float(high)) - scaled(float(low))
    chosen: list[int] = []
    weights: list[float] = []
    for group in groups.values():
        x = np.array([scaled(float(data.value(c, factor))) for c in group])
        if len(group) < 2:
            continue
        deviations = x - x.mean()
        chosen += group
        weights += list(deviations / (deviations**2).sum() * span / len(groups))
    return contrast_test(data, Contrast(tuple(chosen), tuple(weights)), measure)


def by_block(data: Cells, of: Callable[[int], float]) -> Result | None:
    """Tests the mean of a number that each block has (blocks from 0; NaN for none)."""
    return blocks_test(data, np.array([of(block) for block in range(data.blocks)]))


def block_slopes(data: Cells, server: str, measure: str) -> Values:
    """Returns the change of a server's measure from the first to the last run of each block.

    It is the slope of a line through the deviations of logarithms from the means of the cells.
    """
    cells = [c for c in data.pick(server=server) if data.has_data(c, measure)]
    slopes = np.full(data.blocks, np.nan)
    if not cells:
        return slopes
    logs = data.logarithms(measure)[cells]
    deviations = logs - np.nanmean(logs, axis=1, keepdims=True)
    place = data.measured("order")[cells]
    runs_in = data.column("order").groupby(data.runs["block_number"]).max()
    for block in range(data.blocks):
        known = ~np.isnan(deviations[:, block])
        if known.sum() >= 4:
            x = place[known, block] / runs_in[block + 1]
            slopes[block] = line_fit(x, deviations[known, block]).slope
    return slopes


def within_block_trend(data: Cells, server: str, other: str, measure: str) -> Result | None:
    """Tests the slopes of a server in its blocks against those of another in the same blocks."""
    return blocks_test(
        data, block_slopes(data, server, measure) - block_slopes(data, other, measure)
    )
