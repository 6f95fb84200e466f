"""The inside of a request: the purposes of its CPU time, its system calls, and flame graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from collect.infer.anatomy_table import PURPOSES
from collect.infer.cells import Part, is_peer
from collect.present import server_looks
from collect.present.chart import DrawnFigure, Figure, Line, Mark, RowFigure
from collect.present.facts import CPU, answered_cells
from collect.present.flame_graph import flame_graph
from collect.present.results_view import Row, Slice, View, parsed
from collect.present.scales import zero_scale
from collect.project import STACKS_FILE
from collect.readable_numbers import DASH, estimate_text, human, join_text, percent_text, thousands
from collect.tables import read_table

# Rarer calls are not shown, such as those that begin a connection where connections are kept.
LEAST_CALLS = 0.05
# Parts of a request that are named in one sentence.
NAMED = 3


def rows_of(view: View, cell: int | None, kind: str) -> list[Row]:
    """The rows of anatomy.tsv of a cell: its purposes or its calls."""
    return _rows_where(view, kind, view.cell_values(cell)) if cell is not None else []


def _rows_where(view: View, kind: str, values: Mapping[str, str]) -> list[Row]:
    return [
        row
        for row in view.anatomy
        if row["kind"] == kind and all(row[name] == value for name, value in values.items())
    ]


def _cells(view: View, part: Part, one: Slice) -> Iterator[tuple[str, int]]:
    for server in part.levels["server"]:
        cell = view.at(part, one.first, server, view.x_values(part)[0])
        if cell is not None:
            yield server, cell


# --- figures ---


def anatomy_figures(view: View, part: Part, file: str, prefix: str) -> list[Figure]:
    """The figure of the purposes of the CPU time of a request, and a flame graph of each server."""
    groups = []
    for one in view.slices(part, file):
        lines = [
            _line(server, rows)
            for server, cell in _cells(view, part, one)
            if (rows := rows_of(view, cell, "purpose"))
        ]
        lines.sort(key=lambda line: line.marks[-1].value)
        if lines:
            groups.append((one.text, lines))
    if not groups:
        return []
    of = view.of_file(file)
    figure = RowFigure(
        prefix + "anatomy", "anatomy", file, "What the CPU time of a request is spent on" + of,
        "Less is better. The shares are those of the stacks that perf has sampled; the lengths are "
        "the CPU time without it.", part.number, view.part_text(part),
        x_title="microseconds of CPU", groups=groups, bars=True, stacked=True,
    )  # fmt: skip
    figure.levels = list(zip(PURPOSES, server_looks.PURPOSES, strict=True))
    figure.x = zero_scale(max(line.marks[-1].value for _, lines in groups for line in lines))
    return [figure, *_flame_figures(view, part, file, prefix)]


def _line(server: str, rows: list[Row]) -> Line:
    marks: list[Mark] = []
    begin = 0.0
    for level, row in enumerate(rows):
        each, share = float(row["each"]), float(row["share"])
        low, high = parsed(row["low"]), parsed(row["high"])
        size = human(each) if low is None or high is None else estimate_text(each, low, high)
        text = f"{server}, {row['name']}: {size} µs, {percent_text(share)}"
        look = server_looks.PURPOSES[level]
        end = begin + each
        said = human(end) if level == len(rows) - 1 else ""
        marks.append(Mark(level, end, begin, end, False, text, look, said))
        begin = end
    return Line(server, tuple(marks))


def _flame_figures(view: View, part: Part, file: str, prefix: str) -> Iterator[Figure]:
    stacks = _stacks(view)
    for number, one in enumerate(view.slices(part, file), 1):
        for server, cell in _cells(view, part, one):
            seen = stacks.get(view.data.keys[cell])
            if not seen:
                continue
            where = ", ".join(text for text in (view.part_text(part), one.text) if text)
            title = f"{server}{', ' + where if where else ''}"
            said = (
                f"{thousands(seen.total())} samples of its CPU time. A frame lies on the one that "
                "has called it; those of the kernel are orange."
            )
            name = f"{prefix}flame-{server}" + (f"-{number}" if number > 1 else "")
            yield DrawnFigure(
                name, "flame", file, f"Flame graph of {title}", said, part.number, "",
                svg=partial(flame_graph, title, said, seen),
            )  # fmt: skip


def _stacks(view: View) -> dict[tuple[str, ...], Counter[str]]:
    """The stacks of each cell, of all rounds together."""
    path = view.folder / STACKS_FILE
    found: dict[tuple[str, ...], Counter[str]] = {}
    for row in read_table(path).rows if path.exists() else []:
        key = tuple(row[name] for name in view.data.factors)
        found.setdefault(key, Counter())[row["stack"]] += int(row["samples"])
    return found


# --- tables ---


@dataclass(frozen=True)
class Request:
    """A request of a server in numbers."""

    server: str
    cpu: str
    user: str
    system: str
    calls: str
    faults: str
    voluntary: str
    involuntary: str


def requests(view: View, part: Part, one: Slice) -> list[Request]:
    """A row for each server of a slice; none where no instrument has looked."""
    if not view.anatomy:
        return []
    found = []
    for server, cell in _cells(view, part, one):
        calls = rows_of(view, cell, "call")
        row = view.row(cell)
        cpu = view.estimate(cell, CPU)
        found.append(
            Request(
                server,
                DASH if cpu is None else estimate_text(cpu.mean, cpu.low, cpu.high),
                human(row.get("server_user_us")),
                human(row.get("server_system_us")),
                human(sum(float(call["each"]) for call in calls)) if calls else DASH,
                *(human(row.get(name)) for name in ("faults", "voluntary", "involuntary")),
            )
        )
    return found


def call_table(view: View, part: Part, one: Slice) -> list[list[str]]:
    """The system calls of a request: a head with the servers, and a row for each call."""
    columns = {
        server: {row["name"]: float(row["each"]) for row in known}
        for server, cell in _cells(view, part, one)
        if (known := rows_of(view, cell, "call"))
    }
    total: Counter[str] = Counter()
    for calls in columns.values():
        total.update({name: each for name, each in calls.items() if each >= LEAST_CALLS})
    rows = [
        [name, *(_times(calls.get(name, 0.0)) for calls in columns.values())]
        for name, _ in total.most_common()
    ]
    return [["", *columns], *rows] if rows else []


def _times(each: float) -> str:
    return human(round(each, 2)) if each >= LEAST_CALLS else ""


# --- sentences ---


@dataclass(frozen=True)
class Spent:
    """The purposes that take most of the CPU time of a request of a server, in words."""

    server: str
    cpu: str
    parts: str


def _amount(row: Row) -> str:
    """The time of a part, with its interval where more rounds than one have looked."""
    if row["low"] == row["high"]:
        return human(row["each"])
    return f"{human(row['each'])} ({human(row['low'])} to {human(row['high'])})"


def spent(view: View) -> list[Spent]:
    """The parts that make up most of the time of the servers whose contrast answers a study."""
    cells = answered_cells(view)
    return [
        _spent(server, rows, NAMED)
        for server, cell in cells
        if (rows := rows_of(view, cell, "purpose"))
    ]


def spent_by_peers(view: View) -> list[Spent]:
    """The part that makes up most of the time of each peer, under the load of the first of these
    servers, from the peer that takes the least."""
    cells = answered_cells(view)
    if not cells:
        return []
    peers: dict[str, list[Row]] = {}
    values = {**view.cell_values(cells[0][1])}
    del values["server"]
    for row in _rows_where(view, "purpose", values):
        if is_peer(row["server"]):
            peers.setdefault(row["server"], []).append(row)
    in_order = sorted(peers.items(), key=lambda peer: _total(peer[1]))
    return [_spent(server, rows, 1) for server, rows in in_order]


def _total(rows: list[Row]) -> float:
    return sum(float(row["each"]) for row in rows)


def _spent(server: str, rows: list[Row], named: int) -> Spent:
    most = sorted(rows, key=lambda row: -float(row["each"]))[:named]
    words = [f"{_amount(row)} µs go into {row['name']}" for row in most if float(row["each"]) > 0]
    words[1:] = [word.replace(" µs go", "") for word in words[1:]]
    return Spent(server, human(_total(rows)), join_text(words))
