"""The figures of published and invented runs in headless Chromium: no text of them is cut off or lies
on another."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from presenting import (
    LAYOUT,
    WIDTHS,
    chromium,
    need_programs,
    publish,
    reported,
    told,
    without_lines,
)
from synthetic import invent

from collect.present.present_results import present, write_page
from collect.present.published_runs import Published, find_published
from collect.project import PUBLISHED

need_programs()


@pytest.mark.parametrize("kind", ["mistakes", "processors", "table1", "designs", "https"])
def test_no_text_of_a_figure_is_cut_off_or_lies_on_another(tmp_path: Path, kind: str) -> None:
    chromium()
    folder = reported(invent(tmp_path / kind, kind=kind, blocks=3), narrow=True)
    assert told(without_lines(folder / "index.html"), LAYOUT)["flaws"] == "0: "


@pytest.mark.parametrize("study", ["idle", "crash", "growth"])
def test_figures_of_published_runs(tmp_path: Path, study: str) -> None:
    chromium()
    folder = publish(study, tmp_path / study)
    present(folder)
    assert told(without_lines(folder / "index.html"), LAYOUT)["flaws"] == "0: "


def newest() -> list[Published]:
    """The newest run of each study."""
    runs = sorted(find_published(PUBLISHED), key=lambda run: run.measured)
    return list({run.study: run for run in runs}.values())


@pytest.mark.parametrize("run", newest(), ids=lambda run: run.path)
def test_published_figures(tmp_path: Path, run: Published) -> None:
    """As they are published, without the words and tables between them."""
    chromium()
    folder = tmp_path / "run"
    shutil.copytree(run.folder, folder)
    report = folder / "report.md"
    lines = report.read_text(encoding="utf-8").splitlines()
    figures = [line for line in lines if line.startswith(("# ", "!["))]
    report.write_text("\n\n".join(figures) + "\n", encoding="utf-8")
    narrow = write_page(folder, run.title)
    page = without_lines(folder / "index.html")
    assert len(narrow) == page.read_text().count("<figure>")
    for width in WIDTHS:
        found = told(page, LAYOUT, width)
        assert (found["flaws"], found["seen"]) == ("0: ", str(len(narrow)))
