"""A results folder as the reports and figures need it: the cells, and the tables over them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

import numpy as np

from collect.design.factors import WORK_KINDS, Context, axis_title, factor_value, work_title
from collect.design.study import Study
from collect.infer.cells import Cells, Part
from collect.infer.comparisons import slice_of
from collect.infer.read_results import read_cells
from collect.infer.statistics import describe
from collect.project import ROUNDS_FILE, command_from_here, fail
from collect.readable_numbers import plural, with_comma
from collect.tables import read_pairs, read_table

Row = dict[str, str]

# Rounds that were all made within this time know nothing of another day.
SHORT = timedelta(hours=12)


@dataclass(frozen=True)
class Estimate:
    """A mean with its 95% interval; low and high are the mean where there is a single run."""

    mean: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Slice:
    """Cells that differ in nothing but the server and the x axis; `first` is one of them."""

    first: int
    text: str


@dataclass
class View:
    """All of a results folder."""

    folder: Path
    data: Cells
    summary: list[Row]
    comparisons: list[Row]
    averages: list[Row]
    claims: list[Row]
    threats: list[Row]
    machine: dict[str, str]
    anatomy: list[Row] = field(default_factory=list)
    _estimates: dict[tuple[int, str], Estimate | None] = field(default_factory=dict)

    @property
    def study(self) -> Study:
        return self.data.study

    @property
    def parts(self) -> list[Part]:
        return self.data.parts

    @cached_property
    def context(self) -> Context:
        """Returns the context of the factors' wording, for the study as a whole."""
        levels = self.data.levels
        return Context(*(frozenset(levels[name]) for name in ("load", "scheme", "file")))

    def _context_of(self, loads: Iterable[str]) -> Context:
        return replace(self.context, loads=frozenset(loads))

    @cached_property
    def _row_at(self) -> dict[tuple[str, ...], Row]:
        factors = self.data.factors
        return {tuple(row[name] for name in factors): row for row in self.summary}

    def row(self, cell: int) -> Row:
        """The row of a cell in summary.tsv."""
        return self._row_at[self.data.keys[cell]]

    def number(self, cell: int | None, column: str) -> float | None:
        """A number of summary.tsv; None where there is none."""
        return None if cell is None else parsed(self.row(cell).get(column))

    def cell_values(self, cell: int) -> Row:
        """The factors of a cell by name."""
        return dict(zip(self.data.factors, self.data.keys[cell], strict=True))

    def bound(self, cell: int) -> bool:
        """Returns true if the load generator limits a cell."""
        return self.row(cell).get("client_bound") == "yes"

    # --- words ---

    @property
    def cpu_words(self) -> str:
        return self.data.cpu_words

    @property
    def cpu_title(self) -> str:
        return self.cpu_words[:1].upper() + self.cpu_words[1:]

    def say(self, name: str, value: str, cell: int | None = None) -> str:
        """A factor's value in words; those for a cell fit its load generator."""
        context = self.context
        if cell is not None:
            context = self._context_of([self.data.value(cell, "load")])
        return factor_value(name, value, context)

    def of_file(self, file: str) -> str:
        """The end of the title of a figure about a document: ", small.txt"."""
        if file in ("-", ""):
            return ""
        is_work = file in WORK_KINDS and "work" in self.data.levels.get("service", ())
        return ", " + (work_title(file) if is_work else self.say("file", file))

    def axis_title(self, part: Part) -> str:
        return axis_title(part.x_name, self._context_of(part.levels["load"]))

    def part_text(self, part: Part) -> str:
        """Returns the values that distinguish a part from the others."""
        text = ""
        cell = part.cells[0]
        for word in part.words:
            value = self.data.roots[cell] if word == "root" else self.data.value(cell, word)
            text = with_comma(text, value if word == "root" else self.say(word, value, cell))
        return text

    def where_text(self, part: Part, values: Row, load: str = "") -> str:
        """The factors that vary in a part, beside the server: "concurrency 10, keep-alive off"."""
        text = ""
        context = self._context_of([load] if load else [])
        for name in self.data.factors[1:]:
            if len(part.levels[name]) > 1:
                text = with_comma(text, factor_value(name, values[name], context))
        return text

    # --- slices of a part ---

    def slices(self, part: Part, file: str | None = None) -> list[Slice]:
        """The slices of a part; of one file where it is named."""
        found: dict[tuple[str, ...], Slice] = {}
        for cell in part.cells:
            if file is not None and self.data.value(cell, "file") != file:
                continue
            names = [
                name
                for name in self.data.factors[1:]
                if name != part.x_name
                and len(part.levels[name]) > 1
                and not (file is not None and name == "file")
            ]
            key = tuple(self.data.value(cell, name) for name in names)
            text = ""
            for name, value in zip(names, key, strict=True):
                text = with_comma(text, self.say(name, value, cell))
            found.setdefault(key, Slice(cell, text))
        return list(found.values())

    def at(self, part: Part, first: int, server: str, x: str) -> int | None:
        """The cell of a slice with this server at this value of the x axis."""
        if not part.x_name:
            return self.data.like(first, server=server)
        return self.data.like(first, **{"server": server, part.x_name: x})

    def x_values(self, part: Part) -> list[str]:
        return part.levels[part.x_name] if part.x_name else [""]

    # --- numbers ---

    def estimate(self, cell: int | None, column: str) -> Estimate | None:
        """The mean of a column over the valid runs of a cell, with its 95% interval."""
        if cell is None:
            return None
        if (cell, column) not in self._estimates:
            self._estimates[cell, column] = self._estimate(cell, column)
        return self._estimates[cell, column]

    def _estimate(self, cell: int, column: str) -> Estimate | None:
        row = self.row(cell)
        names = (f"{column}_mean", f"{column}_estimate", column)
        mean = next((n for name in names if (n := parsed(row.get(name)))), None)
        low, high = parsed(row.get(f"{column}_low")), parsed(row.get(f"{column}_high"))
        if low is None or high is None:
            units = self.data.by_unit(self.data.measured(column)[cell])
            described = describe(units[~np.isnan(units)])
            mean, low, high = described.mean, described.low, described.high
        if mean is None or mean != mean:
            return None
        if low != low:
            low = high = mean
        return Estimate(mean, min(low, mean), max(high, mean), int(row["n"]))

    @cached_property
    def _comparison_at(self) -> dict[tuple[str, ...], Row]:
        factors = self.data.factors[1:]
        return {
            (row["scope"], row["measure"], row["server"], *(row[name] for name in factors)): row
            for row in self.comparisons
        }

    def comparison(self, part: Part, scope: str, measure: str, server: str, cell: int | None):  # type: ignore[no-untyped-def]
        """The row of comparisons.tsv of a server in the slice of a cell; None if there is none."""
        if cell is None:
            return None
        key = slice_of(self.data, part, cell, scope)
        return self._comparison_at.get((scope, measure, server, *key))

    @cached_property
    def _average_at(self) -> dict[tuple[str, ...], Row]:
        factors = self.data.factors[1:]
        return {
            (row["part"], row["measure"], row["server"], *(row[name] for name in factors)): row
            for row in self.averages
        }

    def average(self, part: Part, measure: str, server: str, cell: int) -> Row | None:
        """The row of averages.tsv of a server in the slice of a cell."""
        key = tuple(
            "*" if name == part.x_name else self.data.value(cell, name)
            for name in self.data.factors[1:]
        )
        return self._average_at.get((str(part.number), measure, server, *key))

    def threat(self, name: str) -> Row:
        return next((row for row in self.threats if row["name"] == name), {})

    # --- the runs of a study at large ---

    @cached_property
    def most_runs(self) -> int:
        """Returns the greatest number of runs of a cell."""
        return max(int(row["n"]) + int(row["n_invalid"]) for row in self.summary)

    def runs_said(self, part: Part) -> str:
        """Returns the runs of a point: "8 runs", "3 to 8 runs", "4 rounds (16 runs)"."""
        counts = [int(self.row(cell)["n"]) for cell in part.cells if self.row(cell)["n"] != "0"]
        few, many = min(counts, default=0), max(counts, default=0)
        noun = "run" if many == 1 else "runs"
        runs = f"{few} to {many} {noun}" if few < many else f"{many} {noun}"
        return f"{self.rounds} rounds ({runs})" if self.rounds > 1 else runs

    def any_bound(self, part: Part) -> bool:
        return any(self.bound(cell) for cell in part.cells)

    @property
    def rounds(self) -> int:
        """Returns the number of rounds of the runs; 1 if they are of one sitting."""
        return self.data.rounds

    @cached_property
    def _round_rows(self) -> list[Row]:
        path = self.folder / ROUNDS_FILE
        return read_table(path).rows if path.exists() else []

    @cached_property
    def span(self) -> timedelta | None:
        """The time from the beginning of the first round to the end of the last, if known."""
        if not self._round_rows:
            return None
        begun = [
            datetime.strptime(row["date"], "%Y-%m-%d %H:%M:%S UTC") for row in self._round_rows
        ]
        last = self._round_rows[-1]
        took = timedelta(seconds=float(last["ended"]) - float(last["started"]))
        return max(begun) - min(begun) + took

    @property
    def is_short(self) -> bool:
        """Returns true if all rounds lie within hours of each other."""
        return self.rounds > 1 and self.span is not None and self.span < SHORT

    @property
    def span_words(self) -> str:
        """Returns when and where the rounds were made: "within 3 hours on one machine"."""
        machines = {(row["processor_model"], row["processors"]) for row in self._round_rows}
        where = "on one machine" if len(machines) < 2 else f"on {len(machines)} machines"
        if self.span is None:
            return where
        hours = self.span.total_seconds() / 3600
        if hours < 1:
            return f"within {plural(math.ceil(60 * hours), 'minute', 'minutes')} {where}"
        if hours < 48:
            return f"within {plural(math.ceil(hours), 'hour', 'hours')} {where}"
        return f"over {plural(math.ceil(hours / 24), 'day', 'days')} {where}"


def parsed(text: str | None) -> float | None:
    """A number of a table; None for what is missing."""
    return None if text in (None, "", "-") else float(str(text))


def load_view(folder: Path, needed: Iterable[str] = ("summary", "comparisons")) -> View:
    """Reads a results folder after its tables were made."""
    for name in needed:
        if not (folder / f"{name}.tsv").is_file():
            fail(f"{folder} holds no {name}.tsv: {command_from_here()} report makes it")

    def rows(name: str) -> list[Row]:
        path = folder / f"{name}.tsv"
        return read_table(path).rows if path.exists() else []

    return View(
        folder,
        read_cells(folder),
        summary=rows("summary"),
        comparisons=rows("comparisons"),
        averages=rows("averages"),
        claims=rows("claims"),
        threats=rows("threats"),
        machine=read_pairs(folder / "machine.tsv"),
        anatomy=rows("anatomy"),
    )
