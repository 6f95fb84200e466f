"""compare: the ratios of several results folders side by side."""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import pytest
from presenting import add_machine
from synthetic import invent

from collect.cli import main
from collect.infer.analyse_results import analyse
from collect.infer.compare import compare_folders
from collect.tables import read_frame


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    top = tmp_path_factory.mktemp("compare")
    made = [
        invent(top / f"run-{i}", seed=i, blocks=4, concurrency=4, slow=slow)
        for i, slow in enumerate((1.0, 1.1, 1.3), 1)
    ]
    for folder in made:
        analyse(folder)
    return made


def test_ratios_side_by_side(folders: list[Path]) -> None:
    found = compare_folders(folders)
    assert [same.what[:4] for same in found.comparisons] == [
        ("all", "rps", "thread", "fork"), ("all", "server_cpu_us", "thread", "fork"),
    ]  # fmt: skip
    rps = found.comparisons[0]
    single = [
        float(read_frame(f / "comparisons.tsv").query("scope == 'all'")["ratio"].iloc[0])
        for f in folders
    ]
    assert [float(ratio.split()[0]) for ratio in rps.ratios] == pytest.approx(single, rel=5e-3)
    assert rps.units == ("4 blocks",) * 3
    # Truths are 1, 1.1 and 1.3 times one ratio: the spread is that of their logarithms.
    assert rps.pooled.tau == pytest.approx(0.133, abs=0.02)
    assert rps.pooled.heterogeneity > 0.9
    low, high = rps.pooled.prediction()
    assert math.exp(low) < min(single) < max(single) < math.exp(high)


def test_the_command(folders: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *map(str, folders)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("thread / fork, requests/s, mean over file, mean over concurrency\n")
    assert said.count("invented | processor, 2 processors") == 6
    assert said.count("another run") == 2
    assert "one sitting" in said


def test_two_folders_do_not_tell_of_a_third(
    folders: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *map(str, folders[:2])]) == 0
    said = capsys.readouterr().out
    assert "is expected" not in said
    assert "three or more do" in said


def test_folders_of_other_commits_and_how_far_they_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = []
    for i, commit in enumerate(("a" * 12, "b" * 12)):
        folder = invent(tmp_path / commit, seed=i, blocks=6, concurrency=3, slow=1 + 0.3 * i)
        analyse(folder)
        add_machine(folder, project_commit=commit)
        made.append(str(folder))
    assert main(["compare", *made]) == 0
    said = capsys.readouterr().out
    assert "p below 0.0001 if they are alike" in said
    assert "different commits" in said
    alike = shutil.copytree(made[0], tmp_path / "alike")
    assert main(["compare", made[0], str(alike)]) == 0
    said = capsys.readouterr().out
    assert "p = 1.0000 if they are alike" in said
    assert "different commits" not in said


def test_folders_that_compare_nothing_in_common(
    folders: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = invent(tmp_path / "other", kind="same-server", blocks=3, concurrency=2)
    analyse(other)
    assert main(["compare", str(folders[0]), str(other)]) == 1
    assert "compare nothing in common" in capsys.readouterr().err


def test_a_folder_counts_once(folders: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    again = folders[0] / ".." / folders[0].name
    assert main(["compare", *map(str, folders), str(again)]) == 2
    assert "takes each folder once" in capsys.readouterr().err


def test_one_folder_is_too_few(folders: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(folders[0])]) == 2
    assert "usage: " in capsys.readouterr().err
