"""--live: the page that fills while a study runs."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from presenting import SCHEMES, after_scripts, told
from study_runs import Bench, until
from test_page import AXE, axe_core

from collect import live_page
from collect.live_page import LivePage

SMALL = ("--servers", "fork,thread", "--files", "small.txt", "--concurrency", 1, "--requests", 20)


def state(folder: Path) -> dict[str, object]:
    """What the script tells the page."""
    text = (folder / "live.js").read_text()
    assert text.startswith("tell(") and text.endswith(");\n")
    return dict(json.loads(text[5:-3]))


@pytest.fixture(scope="module")
def finished(bench: Bench) -> Path:
    """A study that was watched to its end."""
    folder = bench.folder / "finished"
    done = bench.dcollect("--live", "--output", folder, *SMALL, "--repetitions", 3)
    assert done.returncode == 0, done.stderr
    assert f"\nLive:    {(folder / 'live.html').as_uri()}\n" in done.stderr
    return folder


def test_the_page_leads_to_the_report_in_the_end(finished: Path) -> None:
    assert state(finished)["state"] == "ended"
    assert (finished / "index.html").stat().st_size > 10_000


def test_the_report_is_there_after_the_first_block(bench: Bench) -> None:
    folder = bench.folder / "stopped"
    words = ("--live", "--output", folder, *SMALL, "--repetitions", 50_000)
    process = bench.begin_whole(*words)
    reported = until(lambda: (folder / "live.js").is_file() and bool(state(folder)["reports"]))
    seen = state(folder) if reported else {}
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate()
    assert reported and process.returncode == 130, output
    assert seen["state"] == "runs" and seen["total"] == 100_000
    assert "fork" in (folder / "index.html").read_text()
    assert state(folder)["state"] == "stopped"


def test_a_report_is_made_where_it_costs_little_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first report takes 5 s: the next one is made when 50 s have passed."""
    clock = [0.0]
    monkeypatch.setattr(live_page.time, "monotonic", lambda: clock[0])

    class Made:
        returncode = 0

    def report(*_words: object, **_options: object) -> Made:
        clock[0] += 5
        return Made()

    monkeypatch.setattr(live_page.subprocess, "run", report)
    page = LivePage(tmp_path)
    made = []
    for block in range(1, 12):
        clock[0] += 10
        page.after_block(block, 11)
        made.append(state(tmp_path)["reports"])
    assert made == [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3]


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"state": "runs", "done": 30, "total": 120, "reports": 0}, "30 of 120 runs are made."),
        ({"state": "stopped", "done": 0, "total": 0, "reports": 0}, "The study was stopped."),
    ],
)
def test_the_page_tells_how_far_the_study_is(
    finished: Path, tmp_path: Path, told: dict[str, object], words: str
) -> None:
    (tmp_path / "live.html").write_text((finished / "live.html").read_text())
    (tmp_path / "live.js").write_text(f"tell({json.dumps(told)});\n")
    document, errors = after_scripts(tmp_path / "live.html")
    assert errors == [] and words in document


def test_the_page_shows_the_report_of_the_runs_so_far(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "live.html").write_text((finished / "live.html").read_text())
    (tmp_path / "live.js").write_text('tell({"state":"runs","done":1,"total":2,"reports":1});\n')
    (tmp_path / "index.html").write_text("<p>a report</p>")
    document, errors = after_scripts(tmp_path / "live.html")
    assert errors == [] and 'src="index.html"' in document


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", [400, 1280])
def test_axe(finished: Path, tmp_path: Path, width: int, scheme: str) -> None:
    axe = axe_core()
    page = tmp_path / "live.html"
    page.write_text((finished / "live.html").read_text())
    (tmp_path / "live.js").write_text('tell({"state":"runs","done":1,"total":2,"reports":0});\n')
    found = told(page, f"{axe};\n{AXE}", width, prefers_color_scheme=scheme)
    assert found["violations"] == ""


def test_a_campaign_has_no_such_page(bench: Bench) -> None:
    done = bench.dcollect("campaign", "--live", "--quick", "idle")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "--live shows one study" in done.stderr
