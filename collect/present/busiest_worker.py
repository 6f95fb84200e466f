"""How long requests take at the busiest worker of a server, and at its other workers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collect.infer.cells import Part
from collect.infer.contrast import contrast_test, mean_of
from collect.infer.statistics import mean_test
from collect.present.facts import contrast_named
from collect.present.results_view import View
from collect.readable_numbers import DASH, estimate_text, human, join_text, percent_text

BUSIEST_P99, REST_P99 = "busiest_p99_ms", "rest_p99_ms"


@dataclass(frozen=True)
class WorkerTimes:
    """A cell as text: the share of the requests that the busiest worker answered, the times there
    and at the others in milliseconds, and how many times as long the 99th percentile is there."""

    where: str
    workers: str
    server: str
    share: str
    busiest_p50: str
    rest_p50: str
    busiest_p99: str
    rest_p99: str
    ratio: str


def worker_rows(view: View, part: Part) -> list[WorkerTimes]:
    """The rows of all cells of a part in which the workers of a server were told apart."""
    if REST_P99 not in view.data.runs:
        return []
    return [
        row
        for one in view.slices(part)
        for server in part.levels["server"]
        for x in part.levels[part.x_name]
        if (cell := view.at(part, one.first, server, x)) is not None
        and (row := _row(view, cell, one.text))
    ]


def busiest_text(view: View) -> str:
    """The ratios of all servers in the cells that a study's contrast names, each with its interval;
    empty where workers were not told apart."""
    named = contrast_named(view)
    if named is None or REST_P99 not in view.data.runs:
        return ""
    texts = [
        f"**{view.data.value(cell, 'server')}** {ratio}"
        for cell in range(view.data.count)
        if named.when.matches(view.cell_values(cell)) and (ratio := _ratio(view, cell)) != DASH
    ]
    return join_text(texts)


def _row(view: View, cell: int, where: str) -> WorkerTimes | None:
    data = view.data
    busiest = data.sample(cell, "busiest")
    if not data.has_data(cell, BUSIEST_P99) or not len(busiest):
        return None
    ratio = _ratio(view, cell)
    told_apart = ratio != DASH
    return WorkerTimes(
        where,
        data.value(cell, "worker_count"),
        data.value(cell, "server"),
        percent_text(float(busiest.mean())),
        busiest_p50=_time(view, cell, "busiest_p50_ms"),
        rest_p50=_time(view, cell, "rest_p50_ms") if told_apart else DASH,
        busiest_p99=_time(view, cell, BUSIEST_P99),
        rest_p99=_time(view, cell, REST_P99) if told_apart else DASH,
        ratio=ratio,
    )


def _time(view: View, cell: int, name: str) -> str:
    result = contrast_test(view.data, mean_of([cell]), name)
    return human(result.ratio) if result else DASH


def _ratio(view: View, cell: int) -> str:
    """The 99th percentile at the busiest worker, divided by that at the others, with its interval.
    There is none where the others answered too few for a percentile in any of the runs: the runs
    that are left would be chosen by what they answered."""
    busiest, rest = (view.data.unit_logarithms(name)[cell] for name in (BUSIEST_P99, REST_P99))
    each = (busiest - rest)[~np.isnan(busiest)]
    if len(each) < 2 or np.isnan(each).any():
        return DASH
    test = mean_test(each)
    return estimate_text(*(float(np.exp(value)) for value in (test.estimate, *test.interval())))
