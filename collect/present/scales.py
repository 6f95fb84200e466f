"""Axes: ranges, tics, and places for labels that would overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from collect.readable_numbers import thousands

Tics = list[tuple[str, float]]

# A wider spread of values than this is drawn on a logarithmic axis.
WIDE = 10.0


@dataclass(frozen=True)
class Scale:
    """An axis: its range, whether it is logarithmic, and its tics."""

    low: float
    high: float
    log: bool
    tics: tuple[tuple[str, float], ...]

    def share(self, value: float) -> float:
        """Returns the place of a value on the axis, from 0 to 1."""
        if self.log:
            value = max(value, self.low * 1e-6)
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def value(self, share: float) -> float:
        """Returns the value at a place on the axis, from 0 to 1."""
        if self.log:
            return self.low * math.exp(share * math.log(self.high / self.low))
        return self.low + share * (self.high - self.low)


def nice_step(span: float, parts: int) -> float:
    """A step of 1, 2 or 5 times a power of ten, so that about `parts` of them make the span."""
    raw = span / parts
    power = 10.0 ** math.floor(math.log10(raw))
    for factor in (1, 2, 5):
        if raw <= power * factor * 1.0001:
            return power * factor
    return power * 10


def tic_text(value: float, step: float) -> str:
    if value == 0:
        return "0"
    if step >= 1:
        return thousands(value)
    return f"{value:.{min(8, max(0, -math.floor(math.log10(step) + 1e-9)))}f}"


def linear_tics(low: float, high: float, parts: int = 5) -> Tics:
    step = nice_step(high - low, parts)
    numbers = range(math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6) + 1)
    return [(tic_text(i * step, step), i * step) for i in numbers]


def log_tics(low: float, high: float) -> Tics:
    """Powers of ten, with 2 and 5 between them where they are few."""
    decades = math.log10(high / low)
    factors = (1, 2, 5) if decades < 2.5 else (1,)
    every = max(1, math.ceil(decades / 8))
    tics: Tics = []
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        if power % every:
            continue
        for factor in factors:
            value = factor * 10.0**power
            if low <= value <= high:
                tics.append((thousands(value) if value >= 1 else f"{value:g}", value))
    return tics if len(tics) > 1 else linear_tics(low, high)


def zero_scale(top: float) -> Scale:
    """From zero to a little above the top."""
    high = top * 1.06 if top > 0 else 1.0
    return Scale(0, high, False, tuple(linear_tics(0, high)))


def log_scale(low: float, high: float) -> Scale:
    low, high = low / 1.3, high * 1.3
    return Scale(low, high, True, tuple(log_tics(low, high)))


def value_scale(means: Sequence[float], tops: Sequence[float], bottoms: Sequence[float]) -> Scale:
    """The axis of values that cannot be negative.

    It begins at zero, unless the values are so far apart that most would lie on the axis. An
    interval that is far wider than all values are large does not set the scale.
    """
    positive = sorted(mean for mean in means if mean > 0)
    if not positive:
        return zero_scale(max(means, default=0))
    top = min(max(tops), 1.4 * positive[-1])
    if positive[-1] > WIDE * positive[len(positive) // 2] and positive[-1] > WIDE * positive[0]:
        bottom = max(min((low for low in bottoms if low > 0), default=positive[0]), positive[0] / 3)
        return log_scale(bottom, top)
    return zero_scale(top)


def ratio_scale(means: Sequence[float], lows: Sequence[float], highs: Sequence[float]) -> Scale:
    """The axis of ratios: it holds 1, and is logarithmic where they are far from each other."""
    low = max(min(lows), min(means) / 2)
    high = min(max(highs), max(means) * 2)
    low, high = min(low, 1.0), max(high, 1.0)
    if high / low > 4:
        pad = math.exp(0.06 * math.log(high / low))
        low, high = low / pad, high * pad
        return Scale(low, high, True, tuple(log_tics(low, high)))
    pad = (high - low) * 0.08
    low, high = min(low - pad, 0.97), max(high + pad, 1.03)
    return Scale(max(low, 0), high, False, tuple(linear_tics(max(low, 0), high, 6)))


def level_scale(values: Sequence[str], pixels: float) -> Scale:
    """The x axis of a factor: logarithmic where its values are spread unevenly."""
    numbers = [float(value) for value in values]
    first, last = numbers[0], numbers[-1]
    gaps = [after - before for before, after in pairwise(numbers)]
    if first > 0 and max(gaps) / min(gaps) > 8:
        span = math.log(last / first)
        scale = Scale(first * math.exp(-0.03 * span), last * math.exp(0.05 * span), True, ())
    else:
        span = last - first
        scale = Scale(first - 0.03 * span, last + 0.04 * span, False, ())
    return replace(scale, tics=tuple(_level_tics(numbers, scale, pixels)))


def _level_tics(numbers: list[float], scale: Scale, pixels: float) -> Tics:
    """The values that get their number: as many as there is room for, those at the ends first."""
    if len(numbers) > 12 and not scale.log:
        step = nice_step(numbers[-1] - numbers[0], 6)
        wanted = [numbers[0], *(n for n in reversed(numbers) if n % step == 0)]
    else:
        round_ones = [n for n in numbers if f"{n:g}".strip("0.") in ("1", "2", "5")]
        wanted = [numbers[-1], numbers[0], *reversed(round_ones), *reversed(numbers)]
    chosen: list[float] = []
    for number in wanted:
        if number not in chosen and all(
            abs(scale.share(number) - scale.share(other)) * pixels
            > (len(thousands(number)) + len(thousands(other))) * 4 + 6
            for other in chosen
        ):
            chosen.append(number)
    return [(thousands(number), number) for number in sorted(chosen)]


def thinned(scale: Scale, pixels: float) -> Scale:
    """The scale with every second, third ... number only, as many as there is room for."""
    for step in range(1, len(scale.tics)):
        tics = scale.tics[::step]
        if all(
            (scale.share(b) - scale.share(a)) * pixels > (len(at) + len(bt)) * 4 + 8
            for (at, a), (bt, b) in pairwise(tics)
        ):
            return replace(scale, tics=tics)
    return replace(scale, tics=scale.tics[:1])


def x_shift(scale: Scale, value: float, place: int, of: int) -> float:
    """Puts a series beside the others at the same value, so that intervals can be told apart."""
    shift = (place - (of - 1) / 2) * 0.006
    return scale.value(scale.share(value) + shift)


def spread_out(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Moves places apart until they are a gap from each other, by as little as possible.

    Those too near each other become a block around their mean, and blocks that touch merge.
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    blocks: list[tuple[float, int]] = []  # the mean of places less their offsets, and how many
    for rank, i in enumerate(order):
        mean, count = wanted[i] - rank * gap, 1
        while blocks and blocks[-1][0] > mean:
            before, many = blocks.pop()
            mean = (before * many + mean * count) / (many + count)
            count += many
        blocks.append((mean, count))
    room = (len(wanted) - 1) * gap
    base = [min(max(mean, low), max(low, high - room)) for mean, n in blocks for _ in range(n)]
    places = [0.0] * len(wanted)
    for rank, i in enumerate(order):
        places[i] = base[rank] + rank * gap
    return places
