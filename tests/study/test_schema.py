"""collect/SCHEMA.md agrees with collect/schema.py, and tables have the columns that it names."""

from __future__ import annotations

from collect.project import COLLECT
from collect.schema import MEASURED, PLAN, RUNS, TABLES, markdown


def test_the_page_is_that_of_the_tables() -> None:
    """`/usr/bin/python3 -m collect schema >collect/SCHEMA.md` makes it."""
    assert (COLLECT / "SCHEMA.md").read_text() == markdown()


def test_every_column_has_a_meaning_and_comes_once() -> None:
    for table in TABLES:
        assert all(column.meaning for column in table.columns), table.file
        assert len(set(table.names)) == len(table.names), table.file
    assert RUNS.names == [*PLAN.names, *(column.name for column in MEASURED)]
