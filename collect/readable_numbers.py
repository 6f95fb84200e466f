"""Numbers and lists as the reader sees them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

DASH = "–"


def thousands(value: float) -> str:
    """12345.6 -> 12,346."""
    text = f"{value:,.0f}"
    return "0" if text == "-0" else text


def human(value: float | str | None) -> str:
    """At least three significant digits: 39,123; 12.3; 1.23; 0.0123. A missing value is a dash."""
    if value is None or value in ("-", ""):
        return DASH
    number = float(value)
    if number != number:
        return DASH
    size = abs(number)
    if size >= 99.95:
        return thousands(number)
    if size >= 9.995:
        return f"{number:.1f}"
    if size >= 0.9995:
        return f"{number:.2f}"
    return "0" if size == 0 else f"{number:.3g}"


def percent_text(share: float) -> str:
    """0.1234 -> 12%, 0.0123 -> 1.2%, 0.0004 -> 0.04%; without a sign."""
    value = abs(share * 100)
    places = 0 if value >= 9.95 else 1 if value >= 0.095 else 2
    return f"{value:.{places}f}%"


def factor_text(ratio: float) -> str:
    """A ratio: 2.31, 0.52, 0.0421, 11.2; near one to three places: 1.004."""
    return f"{ratio:.3f}" if 0.9 <= ratio < 1.1 else human(ratio)


def change(ratio: float, more: str, less: str, times: str) -> str:
    """A ratio as a change: "8.3% more", "48% less", "2.31 times as many"."""
    if ratio >= 2 or ratio <= 0.5:
        return f"{factor_text(ratio)} times {times}"
    if ratio >= 1:
        return f"{percent_text(ratio - 1)} {more}"
    return f"{percent_text(1 - ratio)} {less}"


def estimate_places(value: float, low: float, high: float) -> int:
    """Returns how many decimal places show how wide the interval is, and whether it holds 1."""
    places = 0 if value >= 100 else 1 if value >= 10 else 2
    if high > 20 * low:
        return places
    while places < 6 and 0 < value < 10 ** (1 - places):
        places += 1
    while places < 5 and low < high and high - low < 2 / 10**places:
        places += 1
    while places < 4 and any(end != 1 and round(end, places) == 1 for end in (low, high)):
        places += 1
    return places


def interval_text(low: float, high: float, value: float | None = None) -> str:
    """2.300 to 2.314."""
    if high > 20 * low:
        return f"{human(low)} to {human(high)}"
    places = estimate_places((low + high) / 2 if value is None else value, low, high)
    return f"{low:.{places}f} to {high:.{places}f}"


def crossing_interval(low: str, high: str) -> str:
    """The interval of a crossing; an end that is not among what was measured is an empty text."""
    if low and high:
        return f"{low} to {high}"
    return f"{low} or more" if low else f"up to {high}" if high else "all of them"


def estimate_text(value: float, low: float, high: float) -> str:
    """A value with its interval: 2.307 (2.300 to 2.314)."""
    places = estimate_places(value, low, high)
    return f"{value:.{places}f} ({interval_text(low, high, value)})"


def p_text(p: float | str) -> str:
    """A p value to four places."""
    if p == "-":
        return DASH
    return "< 0.0001" if float(p) < 0.0001 else f"{float(p):.4f}"


def plural(count: float, one: str, many: str) -> str:
    """1 run, 2 runs."""
    return f"{thousands(count)} {one if count == 1 else many}"


def join_text(words: Sequence[str]) -> str:
    """The words with commas and "and"."""
    if len(words) < 2:
        return "".join(words)
    return ", ".join(words[:-1]) + " and " + words[-1]


def with_comma(text: str, more: str) -> str:
    """Two texts with a comma between, where both say something."""
    return f"{text}, {more}" if text and more else text + more


def clock_text(seconds: float) -> str:
    """75 -> 1:15."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def about_time(seconds: float) -> str:
    """A duration that nobody knows exactly: 50 s, 8 min, 2.5 h."""
    if seconds < 95:
        return f"{max(10 * round(seconds / 10), 10)} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


def one_line(text: str) -> str:
    """The text without tabs, line ends and repeated blanks."""
    return " ".join(text.split())


def machine_text(pairs: Mapping[str, str]) -> str:
    """The processors of a machine in words: "AMD EPYC with 48 KiB of L1 data cache, 2 processors".

    Clouds give processors of several generations one name; their caches tell them apart.
    """
    model = pairs.get("processor_model", "")
    if not model:
        return ""
    cache = re.match(r"([0-9]+) KiB \(([0-9]+) instances?\)", pairs.get("cache_l1d", ""))
    of_each = f" with {int(cache[1]) // int(cache[2])} KiB of L1 data cache" if cache else ""
    count = plural(float(pairs.get("processors", "1")), "processor", "processors")
    return f"{model}{of_each}, {count}"
