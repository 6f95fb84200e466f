"""Looks inside the servers of a study with its instruments, once a round.

A cell at which an interrupted round has looked is not looked at again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from collect import gzip_members
from collect.measure.instruments import PERF, STRACE, problem
from collect.measure.one_run import Runner
from collect.measure.progress import Progress
from collect.measure.servers import ServerProblem
from collect.project import STACKS_FILE, SYSTEM_CALLS_FILE, say
from collect.schema import CELL, STACKS, SYSTEM_CALLS
from collect.tables import append_line, read_table, row_text, write_table

FILES = {STRACE: SYSTEM_CALLS_FILE, PERF: STACKS_FILE}
NAMES = tuple(column.name for column in CELL)
Row = Mapping[str, str]


def look_inside(
    folder: Path, runner: Runner, number: str, rows: Iterable[Row], progress: Progress
) -> None:
    """Makes what is left of the runs of a round under the instruments of the study."""
    for kind in runner.study.instruments:
        if words := problem(kind):
            say(f"{words}: the servers are not looked into by it")
            continue
        path = folder / FILES[kind]
        known = read_table(path).rows if path.exists() else []
        seen = {_key(row) for row in known if row["round"] == number}
        for cell in _unlike(rows):
            if _key(cell) in seen:
                continue
            progress.look(kind, cell)
            try:
                _look(folder, runner, kind, {**cell, "round": number})
            except ServerProblem as reason:
                say(f"{kind}: {cell['server']}: {reason}")
            runner.stop.check()
        runner.end_block()


def _look(folder: Path, runner: Runner, kind: str, cell: Row) -> None:
    """Looks at a cell, and keeps what it has seen in one write."""
    if kind == STRACE:
        calls = runner.count_calls(cell)
        rows = [{**cell, "call": name, "each": f"{each:.4f}"} for name, each in calls.items()]
        path = folder / FILES[kind]
        if not path.exists():
            write_table(path, SYSTEM_CALLS.names, [])
        append_line(path, "".join(row_text(SYSTEM_CALLS.names, row) for row in rows))
        return
    stacks = runner.sample_stacks(cell)
    found = [{**cell, "stack": stack, "samples": count} for stack, count in stacks.items()]
    path = folder / FILES[kind]
    head = "" if path.exists() else "\t".join(STACKS.names) + "\n"
    gzip_members.append(path, head + "".join(row_text(STACKS.names, row) for row in found))


def _key(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in NAMES)


def _unlike(rows: Iterable[Row]) -> Iterator[Row]:
    """A row of each cell, in the order of the first ones."""
    seen = set()
    for row in rows:
        if _key(row) not in seen:
            seen.add(_key(row))
            yield row
