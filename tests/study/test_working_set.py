"""Sets of documents that are larger than the memory of a server."""

from __future__ import annotations

import os
import re
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import pytest
from study_runs import Bench, raw, runs

from collect.design.factors import FACTORS
from collect.design.study import Study, load_study, source_of, study_of
from collect.measure import control_groups
from collect.measure.documents import count_of_set, forget, prepare_sets
from collect.measure.loads import Load, command_of
from collect.measure.one_run import seed_of_block
from collect.project import StudyError

USUAL = {"servers": "thread", "files": "4096.bin", "load": "wrk", "memory-limit": 8}
CELL = {factor.name: factor.default for factor in FACTORS} | {"file": "4096.bin"}


def study(**keys: object) -> Study:
    data = {**USUAL, **{key.replace("_", "-"): value for key, value in keys.items()}}
    return study_of(
        {k: v for k, v in data.items() if v is not None}, "mine", source_of(data, "mine.toml")
    )


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"memory_limit": None}, "the `memory-limit`, which the study lacks"),
        ({"load": "ab"}, "only the load wrk"),
        ({"files": "small.txt"}, "documents that are made, such as 65536.bin"),
    ],
)
def test_what_a_set_needs(keys: dict[str, object], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        study(data_share=[50, 200], **keys)


def test_a_set_is_a_share_of_the_memory() -> None:
    made = study(data_share=[50, 200])
    counts = [count_of_set({**CELL, "data_share": share}, made) for share in ("0", "50", "200")]
    assert counts == [0, 1024, 4096]


def test_documents_of_a_set_are_made_once_and_may_be_read(tmp_path: Path) -> None:
    made = study(data_share=[1, 2], memory_limit=2)
    prepare_sets(tmp_path, made, [{**CELL, "data_share": share} for share in ("1", "2", "1")])
    documents = sorted((tmp_path / "4096.bin.set").iterdir())
    assert [path.name for path in documents] == [str(number) for number in range(10)]
    assert {path.stat().st_size for path in documents} == {4096}
    assert all(path.stat().st_mode & stat.S_IROTH for path in documents)
    assert len({path.read_bytes() for path in documents}) == len(documents)
    forget(documents[0])


def test_wrk_asks_for_one_of_a_set() -> None:
    load = Load("wrk", "http://127.0.0.1:80/", "4096.bin.set/0", 4, None, documents=20, seed=3)
    assert command_of(load, Path("-"))[-4:] == [
        "http://127.0.0.1:80/4096.bin.set/",
        "--",
        "20",
        "3",
    ]
    one = replace(load, documents=0, file="small.txt")
    assert command_of(one, Path("-"))[-1] == "http://127.0.0.1:80/small.txt"


def test_documents_that_do_not_fit_come_from_the_disk(bench: Bench) -> None:
    accounting = control_groups.begin()
    limits = accounting.memory is not None
    accounting.end()
    if not limits or not shutil.which("wrk") or os.geteuid() != 0:
        pytest.skip("it needs wrk, and a control group that limits memory")
    for seconds in (1, 10, 100):
        folder = bench.folder / f"sets.{seconds}"
        toml = bench.spit(
            "sets.toml",
            'servers = ["thread"]\nfiles = "65536.bin"\nload = "wrk"\nkeepalive = "on"\nconcurrency = 4\n'
            f"duration = {seconds}\nrepetitions = 1\nmemory-limit = 24\ndata-share = [25, 400]\n",
        )
        done = bench.measure(toml, "--output", folder)
        assert done.returncode == 0, done.stderr
        # On a busy machine a second is not enough for more than the first look at each of 96 documents.
        if all(int(row["complete"]) > 10 * 96 for row in runs(folder)):
            break
    disk = {row["data_share"]: float(row["disk_kib"]) for row in runs(folder)}
    # Three of four documents cannot be in memory; a machine with other work reads for that, too.
    assert disk["400"] > 16
    assert disk["400"] > disk["25"]
    commands = " ".join(raw(folder).values())
    seed = seed_of_block(load_study(folder / "study.toml").seed, 1)
    for count in (96, 1536):
        assert re.search(rf"65536\.bin\.set/ -- {count} {seed}\b", commands)
