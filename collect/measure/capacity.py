"""The capacity of a server: the requests/s of a closed loop that keeps it busy.

Each round measures it anew, before the first run that offers a share of it: a machine that has
become slower is offered less. What an interrupted round measured counts when the round goes on.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from collect.project import CAPACITY_FILE
from collect.schema import CAPACITY, MEASURED
from collect.tables import append_line, read_table, row_text, write_table

RUNS = 3
RUN_SECONDS = 1
OF = [name for name in CAPACITY.names if name not in {column.name for column in MEASURED}]

Key = tuple[str, ...]


class Capacities:
    """The capacities that a study has measured so far."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / CAPACITY_FILE
        self.rates: dict[Key, list[float]] = {}
        for row in read_table(self.path).rows if self.path.exists() else []:
            if row["valid"] == "yes":
                self._add(row)

    def of(
        self, cell: Mapping[str, str], measure: Callable[[], Iterator[Mapping[str, str]]]
    ) -> float | None:
        """Returns the capacity of the server of a cell in requests/s; None if no run was valid.

        measure  makes runs, and yields their columns; it is called if the capacity is not known
        """
        key = _key(cell)
        if len(self.rates.get(key, [])) < RUNS:
            for columns in measure():
                row = {**cell, **columns}
                if not self.path.exists():
                    write_table(self.path, CAPACITY.names, [])
                append_line(self.path, row_text(CAPACITY.names, row))
                if row["valid"] == "yes":
                    self._add(row)
        known = self.rates.get(key, [])
        return statistics.median(known) if known else None

    def _add(self, row: Mapping[str, str]) -> None:
        self.rates.setdefault(_key(row), []).append(float(row["rps"]))


def _key(row: Mapping[str, str]) -> Key:
    return tuple(row[name] for name in OF)
