"""The first tenth of a run against the rest: runs that are not steady are found, and no others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from synthetic import invent

from collect.infer.read_results import read_cells
from collect.infer.threats import weigh
from collect.tables import read_table, write_table


def with_first_tenth(folder: Path, ratios: dict[str, float]) -> Path:
    """Gives the first tenth of each run of a server about this ratio to the rest."""
    table = read_table(folder / "runs.tsv")
    noise = np.random.default_rng(3)
    for row in table.rows:
        ratio = ratios.get(row["server"])
        row["first_tenth"] = f"{ratio * noise.lognormal(0, 0.2):.4f}" if ratio else "-"
    columns = [*table.columns[:-1], "first_tenth", table.columns[-1]]
    write_table(folder / "runs.tsv", columns, table.rows)
    return folder


def threats(folder: Path) -> list[tuple[str, str, str]]:
    frame = weigh(read_cells(folder), 0, folder / "machine.tsv")
    rows = frame[frame["name"].str.startswith("unsteady")]
    return [(row["name"], row["subject"], row["value"]) for _, row in rows.iterrows()]


def test_a_server_that_begins_slowly_is_found(tmp_path: Path) -> None:
    folder = invent(tmp_path / "study", blocks=6, concurrency=4)
    with_first_tenth(folder, {"fork": 1.0, "thread": 0.6})
    found = threats(folder)
    assert found[0] == ("unsteady", "-", "1")
    assert found[1][:2] == ("unsteady_server", "thread")
    assert 0.5 < float(found[1][2]) < 0.7


def test_runs_that_are_too_short_to_tell_are_counted(tmp_path: Path) -> None:
    folder = invent(tmp_path / "study", blocks=6, concurrency=4)
    assert threats(folder) == []  # the first edition did not look
    with_first_tenth(folder, {"fork": 1.0})
    assert threats(folder) == [("unsteady", "-", "0"), ("unsteady_unknown", "-", "48")]
    folder = with_first_tenth(invent(tmp_path / "other", blocks=6, concurrency=4), {})
    assert threats(folder) == [("unsteady", "-", "0"), ("unsteady_unknown", "-", "96")]
