"""The tables of a results folder: tab-separated values with a header line."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from collect import gzip_members

if TYPE_CHECKING:
    import pandas

ABSENT = "-"


@dataclass
class Table:
    """A table as text, and the number of its lines that were left out."""

    columns: list[str]
    rows: list[dict[str, str]]
    disbelieved: int = 0


def whole_lines(path: Path) -> list[str]:
    """Returns the lines of a file; a last one without its line end was cut off and is left out."""
    if path.suffix == ".gz":
        return gzip_members.read(path).split("\n")[:-1]
    text = path.read_text(encoding="utf-8", errors="replace")
    return text.split("\n")[:-1]


def read_table(path: Path, key: str | None = None) -> Table:
    """Reads a table. Lines with a wrong number of fields are left out, and so is a line whose
    value in the column `key` was there before."""
    lines = whole_lines(path)
    if not lines:
        return Table([], [])
    table = Table(lines[0].split("\t"), [])
    seen: set[str] = set()
    for line in lines[1:]:
        fields = line.split("\t")
        row = dict(zip(table.columns, fields, strict=False))
        if len(fields) != len(table.columns) or (key and row[key] in seen):
            table.disbelieved += 1
            continue
        if key:
            seen.add(row[key])
        table.rows.append(row)
    return table


def read_frame(path: Path, key: str | None = None) -> pandas.DataFrame:
    """Reads a table as a data frame of text."""
    import pandas

    table = read_table(path, key)
    return pandas.DataFrame(table.rows, columns=table.columns, dtype=str)


def read_pairs(path: Path) -> dict[str, str]:
    """Reads a table of key and value without a header; the last value of a key counts."""
    if not path.exists():
        return {}
    pairs = (line.split("\t", 1) for line in whole_lines(path) if "\t" in line)
    return {pair[0]: pair[1] for pair in pairs}


def write_text(path: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    descriptor, name = tempfile.mkstemp(prefix=path.name + ".", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def number(value: float) -> str:
    """Returns a number with six significant digits, as tables have it; - for NaN."""
    return "-" if math.isnan(value) else f"{value:.6g}"


def row_text(columns: Sequence[str], row: Mapping[str, object]) -> str:
    """A row as a line with its line end; what is missing is `-`."""
    return "\t".join(str(row.get(column, ABSENT)) for column in columns) + "\n"


def write_table(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> None:
    """Writes a table whole or not at all."""
    body = "".join(row_text(columns, row) for row in rows)
    write_text(path, "\t".join(columns) + "\n" + body)


def append_line(path: Path, line: str) -> None:
    """Appends a line in one write."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        data = line.encode()
        if os.write(descriptor, data) != len(data):
            raise OSError(f"{path}: the disk is full")
    finally:
        os.close(descriptor)


def append_pairs(path: Path, pairs: Mapping[str, object]) -> None:
    """Appends lines of key and value."""
    append_line(path, "".join(f"{key}\t{value}\n" for key, value in pairs.items()))
