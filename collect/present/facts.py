"""The facts that the templates of a report put into words."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from collect.design.study import Answer as StudyAnswer
from collect.design.study import Study, load_study
from collect.infer.cells import CEILING, ORDINARY, Part, held_at_most, is_floor
from collect.infer.claims_models import FalseAlarms, doubles, false_alarms
from collect.infer.contrast import Result, contrast_test, mean_of, mean_of_pairs, server_pairs
from collect.infer.statistics import holm
from collect.infer.where_ratio_crosses_bound import Crossing, Ratio, crossing
from collect.present.results_view import Estimate, Row, Slice, View
from collect.present.server_groups import fits
from collect.project import STUDIES
from collect.readable_numbers import (
    DASH,
    crossing_interval,
    estimate_places,
    estimate_text,
    factor_text,
    interval_text,
    percent_text,
    thousands,
)

FEW_BLOCKS = 6
ROOM = 1.1  # an interval that leaves room for a tenth more or less is open

CPU, RPS, CLIENT_CPU = "server_cpu_us", "rps", "client_cpu_us"


@dataclass(frozen=True)
class Compared:
    """A server beside the baseline of its part, averaged over cells."""

    server: str
    baseline: str
    measure: str
    where: str
    ratio: float
    low: float
    high: float
    blocks: int
    cells: int
    asked: int
    state: str  # higher, lower, same (less than a tenth apart), open (cannot tell)
    average: float | None
    base_average: float | None
    adjusted: bool
    bound: int  # in how many of the cells the client limits one of the two
    own_bound: int  # the server itself
    base_bound: int  # the baseline

    @property
    def interval(self) -> str:
        return interval_text(self.low, self.high, self.ratio)

    @property
    def ratio_text(self) -> str:
        return f"{self.ratio:.{estimate_places(self.ratio, self.low, self.high)}f}"

    @property
    def few(self) -> bool:
        return self.blocks < FEW_BLOCKS


@dataclass(frozen=True)
class Average:
    """The numbers of one server, averaged over the x axis of a slice."""

    server: str
    mean: float
    low: float
    high: float
    blocks: int
    cells: int
    bound: int  # how many of the cells the client limits

    @property
    def few(self) -> bool:
        return self.blocks < FEW_BLOCKS


@dataclass(frozen=True)
class Extremes:
    """The best and the last of our servers, each with those that the data do not tell from it, and
    the best of the others. Servers that the client limits have no rank in requests/s."""

    best: tuple[Average, ...]
    worst: tuple[Average, ...]
    other: Average | None
    limited: tuple[Average, ...]
    among: str

    @property
    def are_alike(self) -> bool:
        """Returns true if the data do not tell the best of ours from the last."""
        best, worst = self.best[0], self.worst[0]
        return best != worst and (best in self.worst or worst in self.best)

    @property
    def overlap(self) -> bool:
        """Returns true if a server may be as good as the best, or as bad as the last."""
        return self.best[0] != self.worst[0] and bool(set(self.best) & set(self.worst))


def is_open(row: Row) -> bool:
    """Returns true if the interval allows no difference, and also one of a tenth."""
    if row["difference"] != "not shown":
        return False
    low, high = row.get("all_low", "-"), row.get("all_high", "-")
    if low in ("-", ""):
        low, high = row["low"], row["high"]
    return float(low) < 1 / ROOM or float(high) > ROOM


def state_of(row: Row) -> str:
    if row["difference"] != "not shown":
        return row["difference"]
    return "open" if is_open(row) else "same"


def ceiling_rate(view: View, part: Part) -> float | None:
    """The requests per second of a server that does nothing, averaged over as many cells of a part
    as the baseline has; None where it was not measured in all of them."""
    ceiling, base = (
        [cell for cell in part.cells if view.data.value(cell, "server") == server]
        for server in (CEILING, part.baseline)
    )
    if not ceiling or len(ceiling) < len(base):
        return None
    result = contrast_test(view.data, mean_of(ceiling), RPS)
    return result.ratio if result else None


def _asked(view: View, measure: str) -> list[bool]:
    """Returns, for each load that is offered, whether a measure is what the clients were told to
    do: requests a second, fewer than the server can answer."""
    if measure != RPS or view.study.levels["load"] != ("open",):
        return [False]
    offered = view.study.levels["offered"]
    return [bool(view.study.rate) or float(percent) < 100 for percent in offered]


def deadlines(levels: Mapping[str, Collection[str]]) -> list[str]:
    """The deadlines among the levels of a study or of a part, in milliseconds."""
    return [value for value in levels.get("deadline", ()) if value not in ("0", "-")]


def is_asked(view: View, measure: str) -> bool:
    """Returns true if a measure is nowhere more than what the clients were told to do."""
    return all(_asked(view, measure))


def is_asked_somewhere(view: View, measure: str) -> bool:
    """Returns true if that holds in some cells: no average over these would rank the servers."""
    return any(_asked(view, measure))


def compared(view: View, part: Part, measure: str) -> list[Compared]:
    """Every server of a part beside the baseline: over all cells, or, where these are not
    alike, in each slice."""
    found: list[Compared] = []
    if is_asked(view, measure):
        return found
    for server in part.subjects:
        if server == part.baseline:
            continue
        row = view.comparison(part, "all", measure, server, part.cells[0])
        if row:
            found.append(_compared(view, part, measure, server, row, list(part.cells), ""))
            continue
        scope = "x" if part.x_name else "cell"
        for one in view.slices(part):
            row = view.comparison(part, scope, measure, server, one.first)
            if row:
                cells = _cells_of(view, part, one)
                found.append(_compared(view, part, measure, server, row, cells, one.text))
    return found


def _cells_of(view: View, part: Part, one: Slice) -> list[int]:
    found = []
    for server in part.levels["server"]:
        for value in view.x_values(part):
            cell = view.at(part, one.first, server, value)
            if cell is not None:
                found.append(cell)
    return found


def _compared(
    view: View, part: Part, measure: str, server: str, row: Row, cells: list[int], where: str
) -> Compared:
    pairs = server_pairs(view.data, server, part.baseline, cells, measure)
    sides = [contrast_test(view.data, mean_of(side), measure) for side in zip(*pairs, strict=True)]
    average, base_average = (side.ratio if side else None for side in sides or (None, None))
    low, high = float(row["low"]), float(row["high"])
    asked = sum(1 for cell in cells if view.data.value(cell, "server") == part.baseline)
    return Compared(
        server, part.baseline, measure, where, float(row["ratio"]), low, high,
        int(row["blocks"]), int(row["cells"]), asked, state_of(row),
        average, base_average, not low <= 1 <= high, int(row["client_bound"]),
        sum(view.bound(cell) for cell, _ in pairs), sum(view.bound(base) for _, base in pairs),
    )  # fmt: skip


def is_many(part: Part) -> bool:
    """Returns true if a part has more servers than one panel shows."""
    return not fits(part.subjects)


def extremes(view: View, part: Part, measure: str, sign: int) -> Extremes | None:
    """The least (sign 1) or most (sign -1) of a measure among ours, the opposite, and the others.
    Where fewer than two are ours, all count alike."""
    if is_asked_somewhere(view, measure):
        return None
    first = main_slice(view, part).first
    known = [
        average
        for server in part.levels["server"]
        if not is_floor(server) and (average := average_of(view, part, measure, server, first))
    ]
    limited = tuple(average for average in known if average.bound and measure == RPS)
    ranked = sorted(
        (average for average in known if average not in limited),
        key=lambda average: sign * average.mean,
    )
    ours = [average for average in ranked if not view.data.is_other(average.server)]
    others = [average for average in ranked if view.data.is_other(average.server)]
    lacking = {
        server
        for server in part.levels["server"]
        if not is_floor(server) and not view.data.is_other(server)
    } - {average.server for average in known}
    among = "those of our servers that were measured everywhere" if lacking else "our servers"
    if sum(not view.data.is_other(average.server) for average in known) < 2:
        among, ours, others = "these servers", ranked, []
    if len(ours) + len(limited) < 2 or not ours:
        return None
    best, worst = (_like_first(view, part, measure, end) for end in (ours, ours[::-1]))
    return Extremes(best, worst, others[0] if others else None, limited, among)


def _like_first(
    view: View, part: Part, measure: str, ordered: list[Average]
) -> tuple[Average, ...]:
    """Returns the first server, and those that are not shown to differ from it (Holm)."""
    first, *others = ordered
    cells = _cells_of(view, part, main_slice(view, part))
    tested: list[tuple[Average, float]] = []
    for other in others:
        pairs = server_pairs(view.data, other.server, first.server, cells, measure)
        result = contrast_test(view.data, mean_of_pairs(pairs), measure)
        if result:
            tested.append((other, result.test.p))
    adjusted = holm([p for _, p in tested])
    alike = (other for (other, _), p in zip(tested, adjusted, strict=True) if p >= 0.05)
    return first, *alike


def average_of(view: View, part: Part, measure: str, server: str, cell: int) -> Average | None:
    row = view.average(part, measure, server, cell)
    if row is None:
        return None
    mean, low, high = (float(row[name]) for name in ("mean", "low", "high"))
    counts = (int(row[name]) for name in ("blocks", "cells", "client_bound"))
    return Average(server, mean, low, high, *counts)


@dataclass(frozen=True)
class Answered:
    """The comparison that answers the question of a study."""

    measure: str
    of: str
    to: str
    of_servers: bool  # the two sides are servers
    place: str  # the values that single out its cells
    pairs: int
    ratio: float
    low: float
    high: float
    mean: float
    base_mean: float
    blocks: int
    bound: tuple[str, ...]  # the sides that the client limits in some cell
    ends: tuple[str, ...]  # of several cells: the least and the greatest ratio, and whose
    without_outlier: str  # the ratio without a unit that is far from the others; or empty

    @property
    def average(self) -> str:
        """The number of cells that it is an average of, in words; empty for one."""
        return f"average of {thousands(self.pairs)} cells" if self.pairs > 1 else ""

    @property
    def where(self) -> str:
        return "; ".join(text for text in (self.place, self.average) if text)

    @property
    def compares(self) -> tuple[str, str, str]:
        return self.measure, self.of, self.to

    @property
    def interval(self) -> str:
        return interval_text(self.low, self.high, self.ratio)

    @property
    def ratio_text(self) -> str:
        return f"{self.ratio:.{estimate_places(self.ratio, self.low, self.high)}f}"

    @property
    def state(self) -> str:
        if not self.low <= 1 <= self.high:
            return "higher" if self.ratio > 1 else "lower"
        return "open" if self.low < 1 / ROOM or self.high > ROOM else "same"

    @property
    def few(self) -> bool:
        return self.blocks < FEW_BLOCKS


def _of_today(view: View) -> Study:
    """The study of a run as its file is today; as it was then where there is no such file."""
    path = STUDIES / f"{view.study.name}.toml"
    return load_study(path) if path.is_file() else view.study


def contrast_named(view: View) -> StudyAnswer | None:
    """The contrast of a study; for a run from before the study had one, that of the study of today.
    A server against itself is none: only chance makes a difference there."""
    named = view.study.contrast or _of_today(view).contrast
    if named is None:
        return None
    sides = (named.of.get("server", ""), named.to.get("server", ""))
    return None if sides in list(doubles(view.data)) else named


def figures_named(view: View) -> tuple[str, ...]:
    """The kinds of figures that a study shows first; if it names none, those of the study today."""
    return view.study.first_figures or _of_today(view).first_figures


def steps_named(view: View) -> tuple[str, ...]:
    """The servers that each do less than the one before; if none, those of the study today."""
    return view.study.steps or _of_today(view).steps


def remarks_of(view: View) -> tuple[str, ...]:
    """The remarks of the study of today: causes are often found after a run."""
    return _of_today(view).remarks


def _has_factors(view: View, named: StudyAnswer) -> bool:
    return set(named.of) | set(named.when.values) <= set(view.data.factors)


def _answer_pairs(view: View, named: StudyAnswer) -> list[tuple[int, int]]:
    """Returns the cells of the two sides of a study's contrast; none where the runs are older than
    one of its factors."""
    data = view.data
    if not _has_factors(view, named):
        return []
    return [
        (cell, base)
        for cell in data.pick(**named.of)
        if named.when.matches(view.cell_values(cell))
        and (base := data.like(cell, **named.to)) is not None
        and data.has_data(cell, named.measure)
        and data.has_data(base, named.measure)
    ]


def answered_cells(view: View) -> list[tuple[str, int]]:
    """The server and the first cell of each side of a study's contrast."""
    named = contrast_named(view)
    pairs = _answer_pairs(view, named) if named else []
    return [(view.data.value(cell, "server"), cell) for cell in (pairs[0] if pairs else ())]


def answer(view: View) -> Answered | None:
    """The answer to the question of a study that names its contrast, where it was measured."""
    named = contrast_named(view)
    return _answered(view, named) if named else None


def _asked_later(view: View) -> list[StudyAnswer]:
    """The comparisons that the study of today asks for, and the study of a run did not. Where the
    run had no contrast, that of today counts as the run's, and is left out."""
    today, then = _of_today(view), view.study
    asked = [then.contrast or today.contrast, *then.also]
    return [one for one in (today.contrast, *today.also) if one and one not in asked]


def _also(view: View) -> list[StudyAnswer]:
    """The comparisons that a study asks for beside its contrast, then or today."""
    return [*view.study.also, *_asked_later(view)]


def answers_asked_later(view: View) -> int:
    """How many of the abstract's answers were asked for after the runs."""
    later = _asked_later(view)
    if not view.study.contrast and (named := contrast_named(view)):
        later.append(named)
    return sum(1 for named in later if _answered(view, named))


def further_answers(view: View, first: Answered | None) -> list[list[Answered]]:
    """The answers to the further questions of a study, as far as they were measured. Each list has
    those of one measure and the same two sides, in different cells. The first list begins with
    `first`, and has those that compare as it does."""
    found = [one for name in _also(view) if not name.falls_to and (one := _answered(view, name))]
    groups: dict[tuple[str, str, str] | None, list[Answered]] = {
        first.compares if first else None: [first] if first else []
    }
    for one in found:
        groups.setdefault(one.compares, []).append(one)
    return list(groups.values())


def answers(view: View) -> list[Answered]:
    """All ratios that answer what a study asks; not those whose fall to a bound is the answer."""
    first = None if fall(view) else answer(view)
    return [one for group in further_answers(view, first) for one in group]


def _answered(view: View, named: StudyAnswer) -> Answered | None:
    data = view.data
    pairs = _answer_pairs(view, named)
    result = contrast_test(data, mean_of_pairs(pairs), named.measure)
    sides = [contrast_test(data, mean_of(side), named.measure) for side in zip(*pairs, strict=True)]
    if result is None or None in sides:
        return None
    means = [side.ratio for side in sides if side]
    return Answered(
        named.measure, side_text(view, named.of), side_text(view, named.to),
        set(named.of) == {"server"}, _place_of(view, named, pairs), len(pairs), result.ratio,
        *result.ratio_interval(),
        means[0], means[1], result.blocks, _bound_sides(view, named, pairs),
        _ends(view, named, pairs), without_outlier(result),
    )  # fmt: skip


def without_outlier(result: Result) -> str:
    """Returns the ratio without a unit that is far from the others, and moves it by 5%."""
    test = result.without_outlier()
    if test is None or abs(test.estimate - result.test.estimate) < math.log(1.05):
        return ""
    return estimate_text(math.exp(test.estimate), *map(math.exp, test.interval()))


def _bound_sides(view: View, named: StudyAnswer, pairs: list[tuple[int, int]]) -> tuple[str, ...]:
    if named.measure != RPS:
        return ()
    sides = zip((named.of, named.to), zip(*pairs, strict=True), strict=True)
    return tuple(side_text(view, of) for of, cells in sides if any(map(view.bound, cells)))


def alarms(view: View) -> list[FalseAlarms]:
    """The tests of servers against themselves, where some are there twice."""
    return false_alarms(view.data)


def unanswered(view: View) -> StudyAnswer | None:
    """The comparison that would answer the question, where too few of its runs are valid."""
    named = contrast_named(view)
    if named is None or answer(view) or not _has_factors(view, named):
        return None
    return named if all(view.data.pick(**side) for side in (named.of, named.to)) else None


def silent_servers(view: View) -> list[tuple[list[str], str]]:
    """The servers that answered nobody in any valid run of a cell, and the values of that cell that
    are not the least."""
    data = view.data
    found: dict[str, list[str]] = {}
    for cell in range(data.count):
        answered = data.sample(cell, "complete")
        if len(answered) and not answered.any():
            values = view.cell_values(cell)
            server = values.pop("server")
            said = (view.say(n, v) for n, v in values.items() if v != data.levels[n][0])
            found.setdefault(", ".join(said), []).append(f"**{server}**")
    return [(servers, where) for where, servers in found.items()]


@dataclass(frozen=True)
class NotHeld:
    """A server that could not hold all connections: in how many of its runs, and the median of
    those that it held."""

    server: str
    connections: int
    held: int
    runs: int
    of: int


def not_held(view: View) -> list[NotHeld]:
    """The cells in which a server could not hold all connections."""
    found = []
    for cell, runs in view.data.runs.groupby("cell"):
        held = held_at_most(runs)
        if len(held):
            values = view.cell_values(cell)
            found.append(
                NotHeld(values["server"], int(values["concurrency"]), round(np.median(held)),
                        len(held), len(runs))
            )  # fmt: skip
    return found


# --- where a ratio falls to a bound ---


@dataclass(frozen=True)
class Fall:
    """A ratio that falls along the x axis of a study, and where it comes to the bounds that the
    study names."""

    measure: str
    of: str
    to: str
    where: str
    first: str  # "at 1 call per connection 3.21 (3.10 to 3.32)"
    last: str
    crossings: tuple[tuple[str, Crossing, str], ...]  # the bound, the crossing, and x in words
    ratios: tuple[Ratio, ...]


def fall(view: View) -> Fall | None:
    """Returns where the ratio of a study's contrast falls to its bounds, where it was measured."""
    named = contrast_named(view)
    return _fall(view, named) if named else None


def falls(view: View) -> list[Fall]:
    """All falls to a bound that answer what a study asks."""
    first = fall(view)
    return [*([first] if first else []), *further_falls(view)]


def further_falls(view: View) -> list[Fall]:
    """The falls to a bound that answer the further questions of a study."""
    return [one for named in _also(view) if (one := _fall(view, named))]


def _fall(view: View, named: StudyAnswer) -> Fall | None:
    data, x_name = view.data, view.data.x_name
    if not named.falls_to or not x_name:
        return None
    points, texts = [], []
    for x in data.levels[x_name]:
        pairs = [(a, b) for a, b in _answer_pairs(view, named) if data.value(a, x_name) == x]
        result = contrast_test(data, mean_of_pairs(pairs), named.measure)
        if result:
            low, high = result.ratio_interval()
            points.append(Ratio(float(x), result.ratio, low, high))
            said = estimate_text(result.ratio, low, high)
            texts.append(f"{said} at {view.say(x_name, x)}")
    if len(points) < 2:
        return None
    found = [crossing(points, bound) for bound in named.falls_to]
    measured = [point.x for point in points]
    words = tuple(
        (f"{one.bound:g}", one, _crossing_text(view, x_name, one, measured)) for one in found
    )
    where = _place_of(view, named, _answer_pairs(view, named)[:1])
    return Fall(
        named.measure, side_text(view, named.of), side_text(view, named.to), where,
        texts[0], texts[-1], words, tuple(points),
    )  # fmt: skip


def _crossing_text(view: View, x_name: str, one: Crossing, measured: list[float]) -> str:
    """A crossing in words, with the values around it that were measured: "1,400 µs of work (95%
    interval 1,300 to 1,600; measured at 1,000 and 10,000)"."""
    if one.at in (0, math.inf):
        return ""
    low, high = (
        thousands(float(_rounded(end))) if 0 < end < math.inf else "" for end in (one.low, one.high)
    )
    around = (max(x for x in measured if x <= one.at), min(x for x in measured if x >= one.at))
    where = f"measured at {' and '.join(map(thousands, around))}"
    interval = crossing_interval(low, high)
    return f"{view.say(x_name, _rounded(one.at))} (95% interval {interval}; {where})"


def _rounded(value: float) -> str:
    """A whole number of two significant digits. Below ten it is rounded up, since at the lower
    number the ratio is not there yet."""
    if value < 10:
        return str(math.ceil(value))
    size = 10 ** max(math.floor(math.log10(value)) - 1, 0)
    return str(round(value / size) * size)


def side_text(view: View, values: Mapping[str, str]) -> str:
    """One side of a contrast in words: "HTTPS, P-256, new sessions"."""
    said = (v if name == "server" else view.say(name, v) for name, v in values.items())
    return ", ".join(text for text in said if text)


def _place_of(view: View, named: StudyAnswer, pairs: list[tuple[int, int]]) -> str:
    """Returns the values that single out the cells of a contrast."""
    values = {
        name: list(dict.fromkeys(view.data.value(cell, name) for cell, _ in pairs))
        for name in named.when.values
    }
    said = [
        ", ".join(known) if name == "server" else view.say(name, known[0])
        for name, known in values.items()
        if name == "server" or len(known) == 1
    ]
    return "; ".join(text for text in said if text)


def _ends(view: View, named: StudyAnswer, pairs: list[tuple[int, int]]) -> tuple[str, ...]:
    """The least and the greatest ratio of the cells of an average, and whose they are."""
    known = [
        (test.ratio, view.data.value(pair[0], "server"))
        for pair in pairs
        if (test := contrast_test(view.data, mean_of_pairs([pair]), named.measure))
    ]
    if len(known) < 2:
        return ()
    several = "server" not in named.of and len({server for _, server in known}) > 1
    return tuple(
        factor_text(ratio) + (f" ({server})" if several else "")
        for ratio, server in (min(known), max(known))
    )


def main_slice(view: View, part: Part) -> Slice:
    return view.slices(part)[0]


def averaged_over(view: View, part: Part) -> str:
    """Returns the range of an average: "all 60 combinations of file and concurrency"."""
    count = sum(1 for cell in part.cells if view.data.value(cell, "server") == part.baseline)
    names = [name for name in view.data.factors[1:] if len(part.levels[name]) > 1]
    words = [
        "calls per connection" if name == "calls" else name.replace("_", " ") for name in names
    ]
    if not words or count == 1:
        return ""
    if len(words) == 1:
        return f"both values of {words[0]}" if count == 2 else f"all {count} values of {words[0]}"
    listed = ", ".join(words[:-1]) + " and " + words[-1]
    return f"all {thousands(count)} combinations of {listed}"


# --- cell by cell ---


@dataclass(frozen=True)
class CellByCell:
    """In how many cells a server differs from the baseline, and how far its ratio goes."""

    server: str
    baseline: str
    cells: int
    higher: int
    lower: int
    same: int
    open: int
    least: float
    least_where: str
    most: float
    most_where: str


def cell_by_cell(view: View, part: Part, measure: str) -> list[CellByCell]:
    found = []
    for server in part.subjects:
        rows = [
            row
            for cell in part.cells
            if view.data.value(cell, "server") == server and server != part.baseline
            if (row := view.comparison(part, "cell", measure, server, cell))
        ]
        if len(rows) < 2:
            continue
        states = [state_of(row) for row in rows]
        least = min(rows, key=lambda row: float(row["ratio"]))
        most = max(rows, key=lambda row: float(row["ratio"]))
        found.append(
            CellByCell(
                server,
                part.baseline,
                len(rows),
                states.count("higher"),
                states.count("lower"),
                states.count("same"),
                states.count("open"),
                float(least["ratio"]),
                view.where_text(part, least, least["load"]),
                float(most["ratio"]),
                view.where_text(part, most, most["load"]),
            )
        )
    return found


# --- how far apart rounds and blocks are ---


@dataclass(frozen=True)
class Spread:
    """The spread of a server's ratio to the baseline, within and between rounds."""

    where: str
    server: str
    within: str
    between: str
    drift: str
    shown: bool  # the ratio drifts, with p below 0.05


def spreads(view: View, part: Part) -> list[Spread]:
    scope = "x" if part.x_name else "cell"
    found = []
    for one in view.slices(part):
        for server in part.levels["server"]:
            row = view.comparison(part, scope, CPU, server, one.first)
            if row is None or row.get("sd_within", "-") in ("-", ""):
                continue
            found.append(
                Spread(
                    one.text,
                    server,
                    _percent_spread(row["sd_within"]),
                    _percent_spread(row["sd_between"]),
                    _drift_text(row),
                    row["drift_p"] not in ("-", "") and float(row["drift_p"]) < 0.05,
                )
            )
    return found


@dataclass(frozen=True)
class Drifts:
    """The ratios of server CPU whose fitted line drifts, of how many."""

    of: int
    shown: tuple[tuple[str, str], ...]  # p below 0.05: which ratio, and its drift
    certain: tuple[tuple[str, str], ...]  # also after adjustment for all of them (Holm)


def drifts(view: View) -> Drifts:
    """Returns the drift of each averaged ratio of server CPU, from the first unit to the last."""
    tested: list[tuple[str, str, float]] = []
    for part in view.parts:
        scope = "x" if part.x_name else "cell"
        for one in view.slices(part):
            for server in part.levels["server"]:
                row = view.comparison(part, scope, CPU, server, one.first)
                if row is not None and row["drift_p"] not in ("-", ""):
                    where = ", ".join(text for text in (view.part_text(part), one.text) if text)
                    name = f"{server} / {row['baseline']}" + (f" ({where})" if where else "")
                    tested.append((name, _drift_text(row), float(row["drift_p"])))
    adjusted = holm([p for _, _, p in tested])
    shown = tuple((name, text) for name, text, p in tested if p < 0.05)
    pairs = zip(tested, adjusted, strict=True)
    certain = tuple((name, text) for (name, text, _), p in pairs if p < 0.05)
    return Drifts(len(tested), shown, certain)


def _percent_spread(text: str) -> str:
    """A standard deviation of logarithms as a percentage."""
    if text in ("-", ""):
        return DASH
    spread = math.expm1(float(text))
    return percent_text(spread) if spread > 0.0005 else "0%"


def _drift_text(row: Row) -> str:
    if row["drift"] in ("-", ""):
        return DASH
    return estimate_text(*(float(row[name]) for name in ("drift", "drift_low", "drift_high")))


# --- one scheme against another, and what was lost ---


@dataclass(frozen=True)
class SchemeCost:
    """The cost of another scheme for each server, as multiples of plain HTTP."""

    what: str
    factors: tuple[tuple[str, float], ...]


def scheme_costs(view: View, part: Part) -> list[SchemeCost]:
    """CPU per request by each scheme over that by the first one, in the same cells."""
    if len(part.levels["scheme"]) < 2 or "http" not in part.levels["scheme"]:
        return []
    pairs: dict[str, dict[str, list[tuple[int, int]]]] = {}
    for cell in part.cells:
        values = view.cell_values(cell)
        if values["scheme"] == "http":
            continue
        changes = {"scheme": "http"}
        changes |= {name: "-" for name in ("certificate", "sessions") if name in values}
        base = view.data.like(cell, **changes)
        if base is None or not view.estimate(cell, CPU) or not view.estimate(base, CPU):
            continue
        texts = (
            view.say(n, values[n]) for n in ("scheme", "certificate", "sessions") if n in values
        )
        what = ", ".join(text for text in texts if text)
        pairs.setdefault(what, {}).setdefault(values["server"], []).append((cell, base))
    return [
        SchemeCost(
            what, tuple((server, _ratio_of(view, cells)) for server, cells in servers.items())
        )
        for what, servers in pairs.items()
    ]


def _ratio_of(view: View, pairs: list[tuple[int, int]]) -> float:
    weight = 1 / len(pairs)
    logs = view.data.logarithms(CPU)
    return float(
        np.exp(sum(weight * (np.nanmean(logs[a]) - np.nanmean(logs[b])) for a, b in pairs))
    )


def lost_requests(view: View) -> tuple[float, float] | None:
    """Returns how many requests by UDP were lost at their first try, and how many there were."""
    lost = asked = 0.0
    for cell in range(view.data.count):
        row = view.row(cell)
        if view.data.value(cell, "scheme") == "udp" and row.get("lost", "-") not in ("-", ""):
            runs = int(row["n"])
            lost += float(row["lost"]) * runs
            asked += float(view.data.value(cell, "requests")) * runs
    return (lost, asked) if asked else None


# --- one server alone ---


@dataclass(frozen=True)
class Range:
    """The range of a measure of one server over the cells of a part."""

    server: str
    least: float
    least_where: str
    most: float
    most_where: str


def range_of(view: View, part: Part, measure: str, server: str) -> Range | None:
    known = [
        (estimate.mean, cell)
        for cell in part.cells
        if view.data.value(cell, "server") == server
        and (estimate := view.estimate(cell, measure)) is not None
    ]
    if not known:
        return None
    (least, at_least), (most, at_most) = min(known), max(known)
    where_least, where_most = (
        view.where_text(part, view.cell_values(cell)) for cell in (at_least, at_most)
    )
    return Range(server, least, where_least, most, where_most)


def ranges_of(view: View, part: Part, measure: str) -> list[Range]:
    """The range of each server that has the measure."""
    found = (range_of(view, part, measure, server) for server in part.levels["server"])
    return [one for one in found if one]


# --- held connections ---


@dataclass(frozen=True)
class HeldMemory:
    """The memory of a held connection in KiB: of the processes, and with the kernel's."""

    server: str
    user: Estimate
    kernel: Estimate | None
    held: str


def held_memory(view: View, part: Part) -> list[HeldMemory]:
    """Returns the memory of a held connection in each server at its most, the least first.

    They are held by idle clients, or by all clients of a load that opens its connections first.
    """
    factor = "idle" if part.levels["idle"] != ["0"] else "concurrency"
    found = []
    for server in part.levels["server"]:
        held = [
            (float(view.data.value(cell, factor)), cell, estimate)
            for cell in part.cells
            if view.data.value(cell, "server") == server
            and (estimate := view.estimate(cell, "idle_kib")) is not None
        ]
        if held:
            most, cell, kib = max(held, key=lambda one: one[0])
            kernel = view.estimate(cell, "each_kib")
            found.append(HeldMemory(server, kib, kernel, thousands(most)))
    return sorted(found, key=lambda one: one.user.mean)


def kind_of(view: View) -> str:
    """The kind of the study: ordinary, held, fault or surge."""
    return view.parts[0].kind if view.parts else ORDINARY
