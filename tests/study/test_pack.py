"""Packs: a pack has all that was measured, and nothing that can be made from it."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest
from presenting import published

from collect.pack import machine_name, pack
from collect.project import StudyError


def test_the_name_of_a_machine() -> None:
    pairs = {
        "processor_model": "Intel(R) Xeon(R) Processor",
        "processors": "2",
        "started": "2026-11-21 16:44:00 UTC",
    }
    assert machine_name(pairs) == "intel-xeon-processor-2-20261121"
    assert machine_name({}) == "machine-1-undated"


def test_a_pack_can_be_unpacked_in_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = published("udp")
    folder = tmp_path / "results"
    shutil.copytree(source, folder)
    (folder / ".lock").touch()
    file = pack(folder)
    assert file.name.startswith("udp-") and file.name.endswith(".tar.gz")
    with tarfile.open(file) as archive:
        names = archive.getnames()
        archive.extractall(tmp_path / "report")
    machine = file.name.removeprefix("udp-").removesuffix(".tar.gz")
    there = tmp_path / "report" / "udp" / machine
    assert (there / "runs.tsv").read_bytes() == (source / "runs.tsv").read_bytes()
    assert all(name.startswith(f"udp/{machine}/") for name in names)
    left = {Path(name).name for name in names}
    assert not left & {"report.md", "index.html", ".lock", "list.tsv"}
    assert {"study.toml", "plan.tsv", "machine.tsv", "summary.tsv"} <= left
    before = file.read_bytes()
    assert pack(folder) == file and file.read_bytes() == before, "the same bytes again"


def test_a_folder_without_runs_is_no_pack(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="nothing to pack"):
        pack(tmp_path)
