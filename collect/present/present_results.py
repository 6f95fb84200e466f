"""The figures and the report of a results folder."""

from __future__ import annotations

import re
import shutil
import tempfile
import textwrap
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from collect.present.chart import NARROW, DrawnFigure, Figure
from collect.present.facts import figures_named
from collect.present.figures import figures_of
from collect.present.gnuplot import draw, require, terminal_text, tidy_svg, write_script
from collect.present.markdown_to_html import figures_in, page_of_markdown
from collect.present.report import USUAL_FIGURES, write_report
from collect.present.results_view import View, load_view
from collect.tables import write_table, write_text

# The kinds of figures that a README or a slide may want as PNG, too.
PICTURES = ("anatomy", "bars", "ways", "cpu", "requests")
# The pages that lead to the published studies.
PAGES = (("index.html", "What was measured"), ("claims.html", "What four reports claimed"))
LIST_COLUMNS = ("name", "kind", "file", "text", "part")


def draw_figures(view: View) -> list[Figure]:
    """Draws all figures of a study as SVG, the main ones as PNG, too; removes all others."""
    require("gnuplot", "gnuplot-nox")
    figures = figures_of(view)
    folder = view.folder / "figures"
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="figures-") as scratch, ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda figure: _draw(figure, Path(scratch), folder), figures))
    rows = [
        {
            "name": f.name,
            "kind": f.kind,
            "file": f.file or "-",
            "text": f.description,
            "part": f.part,
        }
        for f in figures
    ]
    write_table(folder / "list.tsv", LIST_COLUMNS, rows)
    known = {figure.name for figure in figures}
    for path in [*folder.glob("*.svg"), *folder.glob("*.png")]:
        if path.stem not in known:
            path.unlink()
    return figures


def _draw(figure: Figure, work: Path, folder: Path) -> None:
    if isinstance(figure, DrawnFigure):
        write_text(folder / f"{figure.name}.svg", figure.svg())
        return
    write_script(figure, work)
    svg = draw(figure, work, "svg").read_text(encoding="utf-8")
    write_text(folder / f"{figure.name}.svg", tidy_svg(svg))
    if figure.kind in PICTURES:
        shutil.move(draw(figure, work, "png"), folder / f"{figure.name}.png")


def narrow_figures(figures: Iterable[Figure]) -> dict[str, str]:
    """Returns figures as SVG for narrow screens, by name. They are in pages only, in no file."""
    require("gnuplot", "gnuplot-nox")
    with tempfile.TemporaryDirectory(prefix="figures-") as scratch, ThreadPoolExecutor(2) as pool:
        drawn = pool.map(lambda figure: (figure.name, _narrow(figure, Path(scratch))), figures)
        return dict(drawn)


def _narrow(figure: Figure, work: Path) -> str:
    if isinstance(figure, DrawnFigure):
        return figure.svg(NARROW)
    write_script(figure, work, narrow=True)
    return tidy_svg(draw(figure, work, "svg").read_text(encoding="utf-8"))


def present(folder: Path) -> None:
    """Writes figures, report.md and index.html of a results folder, from its tables."""
    require("cmark-gfm", "cmark-gfm")
    view = load_view(folder)
    figures = draw_figures(view)
    write_text(folder / "report.md", write_report(view))
    _write_page(folder, view.study.title or view.study.name, narrow_figures(figures))


def write_page(folder: Path, title: str) -> dict[str, str]:
    """Writes index.html of a published run, from its report.md. Returns its narrow figures."""
    shown = set(figures_in((folder / "report.md").read_text(encoding="utf-8")))
    figures = figures_of(load_view(folder)) if shown else []
    narrow = narrow_figures(figure for figure in figures if figure.name in shown)
    _write_page(folder, title, narrow)
    return narrow


def _write_page(folder: Path, title: str, narrow: Mapping[str, str]) -> None:
    """Writes index.html; that of a published run links to the pages that lead to it."""
    markdown = (folder / "report.md").read_text(encoding="utf-8")
    reports = folder.resolve().parent.parent
    pages = PAGES if (reports / "claims.md").is_file() else ()
    links = [(f"../../{file}", words) for file, words in pages]
    write_text(folder / "index.html", page_of_markdown(title, markdown, folder, links, narrow))


def answer(folder: Path) -> str:
    """The question and the answer at the top of a report, as plain text."""
    abstract = (folder / "report.md").read_text().partition("\n## Abstract\n")[2]
    top = re.split(r"^(?:!\[|## )", abstract, maxsplit=1, flags=re.MULTILINE)[0]
    width = min(shutil.get_terminal_size((80, 24)).columns, 100)
    plain = re.sub(r"\*\*|`|^> |\[([^]]*)\]\([^)]*\)", r"\1", top.strip(), flags=re.MULTILINE)
    return "\n\n".join(textwrap.fill(text, width) for text in re.split(r"\n\n+", plain))


def terminal(folder: Path) -> str:
    """The main figure of a study as text."""
    view = load_view(folder)
    figures = [figure for figure in figures_of(view) if not isinstance(figure, DrawnFigure)]
    wanted = [*figures_named(view), *USUAL_FIGURES]
    ordered = [figure for kind in wanted for figure in figures if figure.kind == kind]
    if not ordered:
        return ""
    with tempfile.TemporaryDirectory(prefix="figures-") as scratch:
        return terminal_text(ordered[0], Path(scratch))
