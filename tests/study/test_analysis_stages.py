"""The stages of the analysis on invented data whose truth is known."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from presenting import published
from synthetic import invent

from collect.infer.analyse_results import analyse
from collect.infer.averages_over_x import average
from collect.infer.cells import Cells
from collect.infer.comparisons import compare
from collect.infer.read_results import read_cells
from collect.infer.summary import summarise
from collect.project import StudyError
from collect.schema import AVERAGES, CLAIMS, COMPARISONS, SUMMARY, THREATS
from collect.tables import read_frame


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> object:
    """Makes invented cells. Cells of the same options are made once."""
    top = tmp_path_factory.mktemp("made")

    @cache
    def of(**options: object) -> Cells:
        name = "-".join(f"{key}-{value}" for key, value in options.items()) or "usual"
        return read_cells(invent(top / name, **options))

    return of


def numbers(frame: pd.DataFrame, column: str) -> pd.Series[float]:
    return pd.to_numeric(frame[column])


def test_invalid_runs_are_counted_and_left_out(made) -> None:
    summary = summarise(made(blocks=8, concurrency=4, invalid=3))
    assert len(summary) == 16
    assert (numbers(summary, "n").sum(), numbers(summary, "n_invalid").sum()) == (125, 3)


def test_cells_are_in_the_order_of_the_study(made) -> None:
    summary = summarise(made(blocks=8, concurrency=4, invalid=3))
    chosen = summary.iloc[[0, 3, 4, 8]][["server", "file", "concurrency"]]
    assert [" ".join(row) for row in chosen.to_numpy()] == [
        "fork small.txt 1", "fork small.txt 4", "fork big.txt 1", "thread small.txt 1",
    ]  # fmt: skip


def test_each_cell_as_another_program_has_it(made, tmp_path: Path) -> None:
    """datamash computes mean, sd and median of each cell from the runs."""
    folder = invent(tmp_path / "spoilt", blocks=8, concurrency=4, invalid=3)
    names = (folder / "runs.tsv").read_text().split("\n")[0].split("\t")
    column = {name: names.index(name) + 1 for name in ("server", "file", "concurrency", "rps")}
    rps, keys = column.pop("rps"), ",".join(map(str, column.values()))
    valid = "".join(
        line + "\n"
        for line in (folder / "runs.tsv").read_text().splitlines()
        if line.endswith("\tyes")
    )
    command = f"datamash -s -g {keys} mean {rps} sstdev {rps} median {rps}".split()
    try:
        said = subprocess.run(
            command, input=valid, capture_output=True, text=True, check=True,
            env={**os.environ, "LC_ALL": "C"},
        )  # fmt: skip
    except (FileNotFoundError, PermissionError):  # the latter: PATH has a folder of another user
        pytest.skip("datamash is not installed")
    rows = (line.split("\t") for line in said.stdout.splitlines())
    expected = {tuple(row[:3]): [float(v) for v in row[3:]] for row in rows}
    for row in summarise(read_cells(folder)).itertuples():
        found = [float(row.rps_mean), float(row.rps_sd), float(row.rps_median)]
        assert found == pytest.approx(expected[row.server, row.file, row.concurrency], rel=1e-5)


def test_half_a_row_and_a_row_told_twice_change_nothing(tmp_path: Path) -> None:
    folder = invent(tmp_path / "cut", blocks=3, concurrency=2)
    before = summarise(read_cells(folder))
    lines = (folder / "runs.tsv").read_text().splitlines()
    with (folder / "runs.tsv").open("a") as file:
        file.write(lines[1] + "\n" + lines[1][:-4])
    data = read_cells(folder)
    assert data.disbelieved == 1
    assert summarise(data).equals(before)


def test_every_mistake_meets_the_same_server_without_it(made) -> None:
    """No average covers two load generators."""
    comparisons = compare(made(kind="mistakes", blocks=4))
    found = {f"{row.server} / {row.baseline} by {row.load}" for row in comparisons.itertuples()}
    assert found == {
        "floor-one+work8000+backlog5 / floor-one+work8000 by ab",
        "floor-one+work8000+backlog5 / floor-one+work8000 by httperf",
        "floor-thread+joinable / floor-thread by ab",
        "floor-thread+split-writes / floor-thread by httperf",
    }


def test_a_server_against_itself(made) -> None:
    """No difference is found, and plain tests at 5% reject about 5% of the time."""
    comparisons = compare(made(kind="same-server", concurrency=15, seed=3))
    cells = comparisons[comparisons["scope"] == "cell"]
    assert len(cells) == 60
    assert set(comparisons["difference"]) == {"not shown"}
    assert (numbers(cells, "p") < 0.05).sum() <= 8


def test_a_slow_down_by_four_percent_is_found(made) -> None:
    comparisons = compare(made(kind="same-server", concurrency=15, seed=3, slow=0.96))
    rps = comparisons[comparisons["measure"] == "rps"]
    cells = rps[rps["scope"] == "cell"]
    assert (cells["difference"] == "lower").sum() >= 24
    assert "higher" not in set(cells["difference"])
    row = rps[rps["scope"] == "all"].iloc[0]
    assert float(row.low) <= 0.96 <= float(row.high)
    assert float(row.high) - float(row.low) < 0.01


def test_average_as_recomputed_from_the_runs(made) -> None:
    data = made(kind="designs", blocks=5, concurrency=6)
    runs = data.runs[data.runs["server"] == "thread"]
    logs = np.log(numbers(runs, "server_cpu_us")).groupby(runs["block"]).mean()
    half = 2.776445105 * logs.std() / np.sqrt(5)  # qt(.975, 4)
    averages = average(data)
    of_thread = (averages["server"] == "thread") & (averages["measure"] == "server_cpu_us")
    row = averages[of_thread].iloc[0]
    expected = np.exp([logs.mean(), logs.mean() - half, logs.mean() + half])
    found = [float(row[name]) for name in ("mean", "low", "high")]
    assert found == pytest.approx(list(expected), rel=1e-4)


def test_an_average_over_short_and_long_runs_takes_the_blocks_that_hold_both(made) -> None:
    data = made(kind="protocols", blocks=9, first=3)
    summary = summarise(data)
    n = dict(zip(summary["requests"], numbers(summary, "n"), strict=True))
    assert n == {"10000": 9, "100000": 3}


def test_analyse_writes_every_table(tmp_path: Path) -> None:
    folder = invent(tmp_path / "whole", blocks=3, concurrency=3)
    analyse(folder)
    for name in ("summary", "comparisons", "averages", "threats", "claims"):
        assert len(read_frame(folder / f"{name}.tsv"))
    before = {path: path.read_bytes() for path in folder.glob("*.tsv")}
    analyse(folder)
    assert {path: path.read_bytes() for path in folder.glob("*.tsv")} == before


@pytest.mark.parametrize("study", ["designs", "idle", "https"])
def test_every_column_is_in_the_schema(study: str, tmp_path: Path) -> None:
    folder = tmp_path / study
    shutil.copytree(published(study), folder, ignore=shutil.ignore_patterns("figures"))
    analyse(folder)
    for table in (SUMMARY, COMPARISONS, AVERAGES, CLAIMS, THREATS):
        columns = list(read_frame(folder / table.file).columns)
        assert [name for name in table.names if name in columns] == columns


def test_a_folder_without_runs_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="not the folder of a run"):
        read_cells(tmp_path)


def test_the_invented_data_are_a_program_too(tmp_path: Path) -> None:
    program = Path(__file__).with_name("synthetic.py")
    options = ["--kind", "udp", "--blocks", "2", str(tmp_path / "udp")]
    subprocess.run([sys.executable, program, *options], check=True)
    again = invent(tmp_path / "again", kind="udp", blocks=2)
    assert (tmp_path / "udp" / "runs.tsv").read_text() == (again / "runs.tsv").read_text()


def test_single_cells_of_three_blocks_have_intervals_and_no_tests(made) -> None:
    comparisons = compare(made(blocks=3, concurrency=3))
    cells = comparisons[(comparisons["scope"] == "cell") & (comparisons["measure"] == "rps")]
    assert set(cells["p_holm"]) == {"-"}
    assert set(cells["difference"]) == {"not shown"}
    assert (numbers(cells, "low") < numbers(cells, "ratio")).all()
    averages = comparisons[comparisons["scope"] == "all"]
    assert set(averages["difference"]) == {"higher", "lower"}
