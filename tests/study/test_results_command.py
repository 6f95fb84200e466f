"""./dcollect.sh results: what it lists, what it opens, and what it removes."""

from __future__ import annotations

import fcntl
import io
import os
import sys
from pathlib import Path

import pytest

from collect import results_command as results
from collect.options import parse
from collect.project import StudyError
from collect.results_command import results_command
from collect.tables import write_table


def study(folder: Path, done: int, planned: int, page: str = "") -> Path:
    """Makes a results folder with so many of its planned runs."""
    folder.mkdir(parents=True)
    (folder / "study.toml").write_text('servers = "fork"\n')
    for name, count in (("plan.tsv", planned), ("runs.tsv", done)):
        write_table(folder / name, ["run"], [{"run": str(n)} for n in range(count)])
    if page:
        (folder / "index.html").write_text(page)
    return folder


def campaign(folder: Path, *names: str) -> Path:
    for name in names:
        study(folder / name, 4, 4, "a page")
    (folder / "campaign.toml").write_text("rounds = 1\n")
    return folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with three results: one is finished, one was interrupted, one is a campaign."""
    monkeypatch.setattr(results, "results_folder", lambda: tmp_path)
    study(tmp_path / "idle" / "20260103-000000", 3, 10)
    study(tmp_path / "growth" / "20260101-000000", 7, 7, "a page")
    campaign(tmp_path / "campaign" / "20260102-000000", "idle", "growth")
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    line = parse(["results", *words])
    line.words.pop(0)
    results_command(line)
    return capsys.readouterr().out


def refused(*words: str) -> str:
    line = parse(["results", *words])
    line.words.pop(0)
    with pytest.raises(StudyError) as problem:
        results_command(line)
    return str(problem.value)


def left(place: Path) -> list[str]:
    return sorted(str(path.relative_to(place)) for path in place.glob("*/*"))


ALL = ["campaign/20260102-000000", "growth/20260101-000000", "idle/20260103-000000"]


@pytest.mark.parametrize("words", [(), ("list",)])
def test_the_list_has_every_folder_in_the_order_of_time(
    place: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    (place / "growth" / "notes.txt").write_text("no results folder\n")
    (place / "own" / "things").mkdir(parents=True)
    head, *lines = told(capsys, *words).splitlines()
    assert head.split() == ["Folder", "Runs", "Size", "State"]
    rows = [line.split() for line in lines]
    assert [Path(row[0]).parent.name for row in rows] == ["growth", "campaign", "idle"]
    assert [row[1:4] for row in rows] == [["7", "of", "7"], ["8", "of", "8"], ["3", "of", "10"]]
    assert [row[-1] for row in rows] == ["finished", "finished", "interrupted"]


def test_the_list_has_the_replays(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [place / "replay" / f"2026010{day}-000000" / "replay.html" for day in (2, 1)]
    for page in pages:
        page.parent.mkdir(parents=True)
        page.write_text("a page")
    lines = told(capsys).splitlines()
    assert len(lines) == 8
    assert lines[-4:] == ["", "Replays", str(pages[1]), str(pages[0])]
    alone = place / "alone"
    alone.mkdir()
    (place / "replay").rename(alone / "replay")
    monkeypatch.setattr(results, "results_folder", lambda: alone)
    assert told(capsys).splitlines()[0] == "Replays"


def test_without_results_it_tells_how_to_make_some(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "results_folder", lambda: place / "nowhere")
    assert "--quick measures this machine" in told(capsys)
    assert told(capsys, "clean", "--yes") == "There is nothing to remove\n"
    assert "no report yet" in refused("open")


def test_open_prints_the_address_of_the_latest_report(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    latest = place / "campaign" / "20260102-000000" / "growth" / "index.html"
    for path in place.rglob("index.html"):
        os.utime(path, (1000, 2000 if path == latest else 1000))
    assert told(capsys, "open") == f"{latest.as_uri()}\n"
    named = place / "growth" / "20260101-000000"
    assert told(capsys, "open", str(named)) == f"{(named / 'index.html').as_uri()}\n"
    assert "no report yet" in refused("open", str(place / "idle" / "20260103-000000"))
    page = place / "replay" / "20260109-000000" / "replay.html"
    page.parent.mkdir(parents=True)
    page.write_text("a page")
    assert told(capsys, "open", str(page.parent)) == f"{page.as_uri()}\n"
    assert "is not a results folder" in refused("open", str(place))


def test_open_shows_the_report_where_there_is_a_screen(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = place / "programs"
    programs.mkdir()
    (programs / "xdg-open").write_text(f'#!/bin/sh\necho "$1" >{place}/opened\n')
    (programs / "xdg-open").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":0")
    named = place / "growth" / "20260101-000000"
    told(capsys, "open", str(named))
    assert (place / "opened").read_text() == f"{named / 'index.html'}\n"


def test_clean_removes_what_is_named_and_nothing_else(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "1 folder removed" in told(capsys, "clean", "--yes", str(place / ALL[2]))
    assert left(place) == ALL[:2]
    assert "1 folder removed" in told(capsys, "clean", "--yes", str(place / ALL[0]))
    assert left(place) == ALL[1:2]


def test_clean_without_a_name_removes_all_results_and_nothing_else(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "own" / "things").mkdir(parents=True)
    (place / "growth" / "notes.txt").write_text("no results folder\n")
    elsewhere = study(place.parent / f"{place.name}-elsewhere" / "x", 1, 1)
    (place / "growth" / "link").symlink_to(elsewhere)
    assert "3 folders removed" in told(capsys, "clean", "--yes")
    assert left(place) == ["growth/link", "growth/notes.txt", "own/things"]
    assert (elsewhere / "runs.tsv").is_file()


def test_clean_removes_replays(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replays = [place / "replay" / f"2026010{day}-000000" for day in (1, 2)]
    for folder in replays:
        folder.mkdir(parents=True)
        (folder / "replay.html").write_text("a page")
        (folder / "replay-pool+accept=queue.json").write_text("{}")
    (replays[1] / "notes.txt").write_text("of the user\n")
    assert "1 folder removed" in told(capsys, "clean", "--yes", str(replays[0]))
    assert not replays[0].exists()
    assert len(left(place)) == len(ALL) + 1
    said = told(capsys, "clean", "--yes")
    assert "4 folders removed" in said
    assert "holds other things" in said
    assert left(place) == ["replay/20260102-000000"]
    assert [path.name for path in replays[1].iterdir()] == ["notes.txt"]


def test_clean_leaves_what_no_study_writes(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Somebody may have measured into a folder of other things, by --output."""
    mixed, whole = place / ALL[2], place / ALL[0] / "idle"
    for folder in (mixed, whole):
        (folder / "figures").mkdir()
        (folder / "figures" / "cpu.svg").write_text("a figure\n")
        for name in ("report.md", "machine.tsv", "raw.gz", "runs.tsv.abc_1234", ".lock", "live.js"):
            (folder / name).write_text("of a study\n")
    own = [mixed / "notes.txt", mixed / "photos" / "report.md", mixed / "runs.tsv.old"]
    for path in own:
        path.parent.mkdir(exist_ok=True)
        path.write_text("of somebody\n")
    said = told(capsys, "clean", "--yes")
    assert f"{mixed} holds other things, which were left" in said
    assert sorted(path for path in place.rglob("*") if path.is_file()) == sorted(own)
    assert not (place / ALL[0]).exists()


@pytest.mark.parametrize("name", ["own", "own/things", "growth", "nowhere", "link"])
def test_clean_refuses_what_is_no_results_folder(place: Path, name: str) -> None:
    (place / "own" / "things").mkdir(parents=True)
    (place / "link").symlink_to(place / ALL[1])
    good, bad = str(place / ALL[2]), str(place / name)
    assert "is not a results folder" in refused("clean", "--yes", good, bad)
    assert set(ALL) <= set(left(place))


def test_clean_leaves_a_study_that_is_being_measured(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = place / "campaign" / "20260102-000000"
    with (running / "idle" / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert "running" in told(capsys)
        assert "is being measured" in refused("clean", "--yes", str(running))
        assert "2 folders removed" in told(capsys, "clean", "--yes")
        assert left(place) == ALL[:1]
    assert "1 folder removed" in told(capsys, "clean", "--yes")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "remain"), [("y\n", []), ("n\n", ALL), ("\n", ALL), ("", ALL), ("yes\n", [])]
)
def test_clean_asks(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    answer: str, remain: list[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    text = told(capsys, "clean")
    assert all(name in text for name in ALL) and "Remove 3 folders with all runs? [y/N]" in text
    assert left(place) == remain


def test_clean_removes_nothing_where_it_cannot_ask(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert "--yes removes without asking" in refused("clean")
    assert left(place) == ALL


@pytest.mark.parametrize("words", [("list", "x"), ("remove",), ("open", "a", "b")])
def test_other_words_are_refused(place: Path, words: tuple[str, ...]) -> None:
    assert "usage: " in refused(*words)
