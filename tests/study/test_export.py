"""Results in the formats of other tools."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from pathlib import Path

import pytest
from synthetic import invent

from collect.infer.analyse_results import analyse
from collect.present.export import export
from collect.project import PROJECT, StudyError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = invent(tmp_path_factory.mktemp("export") / "run", blocks=3, concurrency=2, invalid=1)
    analyse(folder)
    return folder


def test_csv_is_the_runs(folder: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(export(folder, "csv"))))
    assert len(rows) == 3 * 2 * 2 * 2
    assert rows[0]["server"] in ("fork", "thread")
    assert float(rows[0]["rps"]) > 0
    assert "-" not in {row["idle_kib"] for row in rows if "idle_kib" in row}


def test_json_is_everything(folder: Path) -> None:
    found = json.loads(export(folder, "json"))
    assert found["study"] == "fork-vs-thread"
    assert found["machine"]["kernel"] == "Linux invented"
    assert {"runs", "summary", "comparisons", "averages", "claims", "threats"} <= set(found)
    assert isinstance(found["runs"][0]["rps"], float)
    assert len(found["summary"]) == 8


def test_benchstat_reads_names_values_and_units(folder: Path) -> None:
    lines = export(folder, "benchstat").splitlines()
    assert "goos: linux" in lines
    runs = [line.split() for line in lines if line.startswith("Benchmark")]
    assert len(runs) == 23  # one run is invalid
    for name, count, *measured in runs:
        assert name.startswith("BenchmarkRequest/server=")
        assert int(count) > 0
        assert len(measured) % 2 == 0
        assert all(float(value) > 0 for value in measured[::2])
        assert measured[1::2][:1] == ["server-ns/op"]


def test_unknown_formats(folder: Path) -> None:
    with pytest.raises(StudyError, match="there is no format `xml`; there are: csv, json"):
        export(folder, "xml")


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--to", "benchstat"], 0, "BenchmarkRequest/"),
        ([], 2, "export needs a format"),
        (["--to", "xml"], 2, "there is no format `xml`"),
    ],
)
def test_the_command(folder: Path, words: list[str], status: int, said: str) -> None:
    done = subprocess.run(
        ["/usr/bin/python3", "-m", "collect", "export", folder, *words],
        cwd=PROJECT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == status
    assert said in done.stdout + done.stderr
