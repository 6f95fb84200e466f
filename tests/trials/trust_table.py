"""The table of results: trust.tsv."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from trials.trial import Row

OWN = [field.name for field in fields(Row)]
COLUMNS = ["trial", *OWN, "date", "commit", "seconds", "machine"]


@dataclass(frozen=True)
class Kept:
    """A row, the trial that made it, when, from which commit (`+`: with changes), how many seconds
    the whole trial took, and on which machine."""

    trial: str
    row: Row
    date: str
    commit: str
    seconds: str
    machine: str


def read_rows(path: Path) -> list[Kept]:
    """The rows of a table; none where there is no table, or one of another kind."""
    if not path.is_file():
        return []
    lines = path.read_text().splitlines()
    head = lines[0].split("\t") if lines else []
    if head not in (COLUMNS, COLUMNS[:-1]):
        return []
    kept = []
    for line in lines[1:]:
        words = line.split("\t")
        words += ["not recorded"] * (len(COLUMNS) - len(head))
        kept.append(Kept(words[0], Row(*words[1 : 1 + len(OWN)]), *words[1 + len(OWN) :]))
    return kept


def write_rows(path: Path, kept: list[Kept]) -> None:
    lines = ["\t".join(COLUMNS)]
    for one in kept:
        own = [getattr(one.row, name) for name in OWN]
        words = [one.trial, *own, one.date, one.commit, one.seconds, one.machine]
        lines.append("\t".join(" ".join(word.split()) for word in words))
    part = path.with_suffix(".part")
    part.write_text("\n".join(lines) + "\n")
    part.replace(path)
