"""The figure of a study that asks where a ratio falls to a bound: the ratio, and the bounds."""

from __future__ import annotations

from collect.infer.where_ratio_crosses_bound import Ratio
from collect.present.chart import LineFigure, Panel, Point, Series
from collect.present.facts import CPU, RPS, contrast_named, fall
from collect.present.results_view import View
from collect.present.scales import Scale, level_scale, ratio_scale
from collect.present.server_looks import REPORT, look_of
from collect.readable_numbers import estimate_text

KIND = "falls-to"
PIXELS = 660
LOG = " (logarithmic)"
TITLES = {RPS: "Requests per second", "p50_ms": "Median time of a request",
          "p99_ms": "Time of a request, 99th percentile"}  # fmt: skip


def falling_ratio_figure(view: View) -> LineFigure | None:
    """Draws the ratio that the abstract is about; None where the study asks for no bound."""
    found, named = fall(view), contrast_named(view)
    if found is None or named is None:
        return None
    title = view.cpu_title if found.measure == CPU else TITLES[found.measure]
    bounds = " and ".join(f"{bound:g}" for bound in named.falls_to)
    where = f" ({found.where})" if found.where else ""
    figure = LineFigure(
        KIND, KIND, "", f"{title}: {found.of} relative to {found.to}",
        f"Ratio with its 95% interval{where}; the line at 1 is {found.to}. Dashed: {bounds}.",
        0, "", columns=1, line_at=1.0,
    )  # fmt: skip
    figure.x = level_scale(view.data.levels[view.data.x_name], PIXELS)
    axis = view.axis_title(view.parts[0])
    figure.x_title = axis + (LOG if figure.x.log else "")
    ratios = found.ratios
    scale = ratio_scale(
        [r.ratio for r in ratios], [r.low for r in ratios], [r.high for r in ratios]
    )
    figure.y_title = "ratio" + (LOG if scale.log else "")
    figure.scales = [scale]
    points = tuple(_point(view, found.of, found.to, ratio) for ratio in ratios)
    look = look_of(named.of.get("server", ""))
    lines = [_bound(bound, figure.x) for bound in named.falls_to]
    figure.panels = [Panel("", (Series(found.of, look, points), *lines))]
    return figure


def _point(view: View, of: str, to: str, r: Ratio) -> Point:
    at = view.say(view.data.x_name, f"{r.x:g}")
    text = f"{of} / {to}, {at}: {estimate_text(r.ratio, r.low, r.high)}"
    return Point(r.x, r.ratio, r.low, r.high, False, text)


def _bound(bound: float, x: Scale) -> Series:
    ends = tuple(
        Point(place, bound, bound, bound, False, f"{bound:g}")
        for place in (x.value(0.001), x.value(0.999))
    )
    return Series(f"{bound:g}", REPORT, ends, dashed=True, marked=False)
