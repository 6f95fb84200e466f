"""Makes figures, reports and pages for tests, and opens pages in a browser."""

from __future__ import annotations

import atexit
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from chromium import Chromium, OpenPage, installed
from mark_long_cases import FOR_ALL, SHORT

from collect.infer.analyse_results import analyse
from collect.present import present_results
from collect.present.present_results import LIST_COLUMNS, present
from collect.present.report import write_report
from collect.present.results_view import load_view
from collect.project import PUBLISHED
from collect.tables import read_table, write_table


def need_programs() -> None:
    for program in ("gnuplot", "cmark-gfm"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed", allow_module_level=True)


def reported(folder: Path, pictures: Sequence[str] = (), narrow: bool = False) -> Path:
    """Makes tables, figures and report of a results folder; PNG of these kinds of figures, which
    take most of the time of gnuplot; and with `narrow` the figures for narrow screens, too."""
    analyse(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(present_results, "PICTURES", pictures)
        if not narrow:
            patch.setattr(present_results, "narrow_figures", lambda figures: {})
        present(folder)
    return folder


def written(folder: Path) -> str:
    """Makes the tables of a results folder. Returns its report, for which no figure is drawn."""
    analyse(folder)
    drawn = folder / "figures" / "list.tsv"
    if not drawn.exists():
        drawn.parent.mkdir()
        write_table(drawn, LIST_COLUMNS, [])
    return write_report(load_view(folder))


def text_of(folder: Path, name: str = "report.md") -> str:
    return (folder / name).read_text(encoding="utf-8")


def figures_of(folder: Path) -> list[dict[str, str]]:
    return read_table(folder / "figures" / "list.tsv").rows


def add_machine(folder: Path, **values: str) -> None:
    with (folder / "machine.tsv").open("a") as file:
        file.writelines(f"{key}\t{value}\n" for key, value in values.items())


def published(study: str) -> Path:
    """Returns the first published run of a study: folders end with the day."""
    runs = (PUBLISHED / study).glob("*/runs.tsv")
    return min((path.parent for path in runs), key=lambda folder: folder.name.rpartition("-")[2])


def publish(study: str, target: Path) -> Path:
    """Copies a published run, without the files that are made from its tables."""
    keep = shutil.ignore_patterns("*.svg", "*.png", "*.html")
    shutil.copytree(published(study), target, ignore=keep)
    return target


# --- the browser ---

# The widths of a window that pages are looked at in.
WIDTHS = (400, 1280)
SCHEMES = ("light", "dark")

# Tells what is wrong with the figures of a page.
LAYOUT = """
document.querySelectorAll('details').forEach(d => { d.open = true; });
const root = document.documentElement, flaws = [];
const figures = [...document.querySelectorAll('figure')];
const shown = [...document.querySelectorAll('figure svg')].filter(s => s.getBoundingClientRect().width > 0);
const seen = shown.map(s => s.getBoundingClientRect()).filter(r => r.width > 200 && r.height > 100);
let least = 99;
shown.forEach(svg => {
    const edge = svg.getBoundingClientRect(), texts = [];
    svg.querySelectorAll('text').forEach(t => {
        const r = t.getBoundingClientRect(), words = t.textContent.trim();
        if (!words || r.width < 1) return;
        least = Math.min(least, parseFloat(getComputedStyle(t).fontSize) * edge.width / svg.viewBox.baseVal.width);
        if (r.left < edge.left - 1 || r.right > edge.right + 1 || r.top < edge.top - 1
            || r.bottom > edge.bottom + 1) flaws.push('cut: ' + words);
        texts.forEach(([other, o]) => {
            if (Math.min(r.right, o.right) - Math.max(r.left, o.left) > 2
                && Math.min(r.bottom, o.bottom) - Math.max(r.top, o.top) > 4)
                flaws.push(other + ' / ' + words);
        });
        texts.push([words, r]);
    });
});
send({ wide: root.scrollWidth - root.clientWidth, figures: figures.length, seen: seen.length,
    scrolled: shown.filter(s => s.getBoundingClientRect().width > s.parentNode.clientWidth + 1).length,
    width: innerWidth, least, flaws: flaws.length + ': ' + flaws.slice(0, 5).join('; '),
    fetched: performance.getEntriesByType('resource').map(e => e.name).join(' ') });
"""


@cache
def chromium() -> Chromium:
    if SHORT:
        pytest.skip(FOR_ALL)
    if not (found := installed()):
        pytest.skip("chromium is not installed")
    started = Chromium(found)
    atexit.register(started.end)
    return started


@contextmanager
def opened(page: Path, width: int = 1280, **media: str) -> Iterator[OpenPage]:
    """Opens the page of a file, which is closed in the end."""
    shown = OpenPage(chromium(), page.as_uri(), width, **media)
    try:
        yield shown
    finally:
        shown.close()


def after_scripts(page: Path) -> tuple[str, list[str]]:
    """Returns the document after its scripts, and what the console prints."""
    with opened(page) as shown:
        shown.settle()
        return str(shown.evaluate("document.documentElement.outerHTML")), shown.console()


def told(page: Path, script: str, width: int = 1280, **media: str) -> dict[str, str]:
    """Runs a script in a page of that width. Returns what it sends as text: send({...})."""
    with opened(page, width, **media) as shown:
        found = shown.evaluate(f"new Promise(send => {{ {script} }})")
    assert isinstance(found, dict) and found, "the page told nothing"
    return {key: json.dumps(value) if isinstance(value, bool) else str(value)
            for key, value in found.items()}  # fmt: skip


def without_lines(page: Path) -> Path:
    """Takes lines and points out of the figures of a page, which are most of it, and which move no text."""
    text = re.sub(r"<(path|use|circle)\b[^>]*/>", "", page.read_text(encoding="utf-8"))
    empty = re.compile(r"<(g|path)\b[^>]*>\s*(<title>[^<]*</title>)?\s*</\1>")
    while (fewer := empty.sub("", text)) != text:
        text = fewer
    page.write_text(text, encoding="utf-8")
    return page
