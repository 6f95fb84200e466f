"""The pages that lead to the published studies, and what the README shows of them."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from collect.design.study import Study, load_study, study_names, study_path
from collect.infer.claims_file import read_wording
from collect.infer.contrast import contrast_test, mean_of_pairs
from collect.infer.read_results import read_cells
from collect.present.claims_page import claims_page, html_body, markdown_page
from collect.present.gnuplot import require
from collect.present.markdown_to_html import body_of_markdown, page_of_body
from collect.present.paper import PAPER, paper, studies_cited
from collect.present.paper import TITLE as PAPER_TITLE
from collect.present.present_results import PAGES, write_page
from collect.present.published_runs import Published, check_published, find_published
from collect.present.repeated import REPEATED, repeated_page
from collect.present.repeated import TITLE as REPEATED_TITLE
from collect.present.report import main_picture, read_pictures
from collect.present.study_topics import by_topic
from collect.present.templating import render_markdown
from collect.project import COMPARISONS_FILE, PROJECT, PUBLISHED, fail
from collect.tables import read_table, write_text

MAIN_STUDY = "designs"
PAIR_STUDY = "fork-vs-thread"
PAIR_FIGURE = "requests"
# The studies of what a process costs, and the beginning of the paragraph that says it; "": all but
# the last paragraph, which is about the interval.
PROCESS_STUDIES = {"dial": "Step by step", "anatomy": "Of the ", "memory": ""}
# The studies of many requests on a connection, the best one first.
KEPT_OPEN = ("persistent", "protocols")


def overview(reports: Path = PUBLISHED, readme: Path | None = PROJECT / "README.md") -> str:
    """Makes REPORTS/README.md and index.html, claims, paper and repeated as .md and .html, the page
    of each study, and the blocks of the README. Returns the path of the page."""
    require("cmark-gfm", "cmark-gfm")
    runs = find_published(reports) if reports.is_dir() else []
    if not runs:
        fail(f"{reports} holds no report")
    check_published(reports, runs)
    narrow = {run.path: write_page(run.folder, run.title) for run in runs}
    studies = {name: load_study(study_path(name)) for name in study_names()}
    more = _more_pages(runs)
    for name, page in more.items():
        _write_both(reports, name, *page, narrow)
    _write_overview(reports, runs, studies, narrow, list(more))
    _write_claims(reports, runs, studies)
    if readme:
        _write_readme(readme, reports.name, runs)
    return str(reports / "index.html")


def _write_overview(
    reports: Path,
    runs: list[Published],
    studies: dict[str, Study],
    narrow: Mapping[str, Mapping[str, str]],
    more: list[str],
) -> None:
    missing = [study for name, study in studies.items() if name not in {run.study for run in runs}]
    for page, ending, file in (
        ("report.md", "md", "README.md"),
        ("index.html", "html", "index.html"),
    ):
        text = render_markdown(
            "overview.md.j2", topics=by_topic(runs), missing=missing, page=page,
            claims=f"claims.{ending}", more={name: f"{name}.{ending}" for name in more},
            reports=read_wording().reports, sentences=first_sentences,
        )  # fmt: skip
        if ending == "html":
            text = _html(text, "What was measured", PAGES[1:], reports, narrow)
        write_text(reports / file, text)


def _more_pages(runs: list[Published]) -> dict[str, tuple[str, str]]:
    """The pages over several studies whose runs are there: the title and the text of each."""
    found = {}
    if studies_cited() <= {run.study for run in runs}:
        found[PAPER] = (PAPER_TITLE, paper(runs))
    if text := repeated_page(runs):
        found[REPEATED] = (REPEATED_TITLE, text)
    return found


def _write_both(
    reports: Path, name: str, title: str, text: str, narrow: Mapping[str, Mapping[str, str]]
) -> None:
    """Writes a page as Markdown and as HTML."""
    write_text(reports / f"{name}.md", text)
    write_text(reports / f"{name}.html", _html(text, title, PAGES[:1], reports, narrow))


def _html(
    text: str,
    title: str,
    pages: Sequence[tuple[str, str]],
    reports: Path,
    narrow: Mapping[str, Mapping[str, str]],
) -> str:
    body, terms = body_of_markdown(text, reports)
    return page_of_body(title, images_that_fit(body, narrow), pages, terms)


IMAGE = re.compile(r'<img src="([^"]*)/figures/([^"]*)\.svg"[^>]*>')


def images_that_fit(html: str, narrow: Mapping[str, Mapping[str, str]]) -> str:
    """Fits images to the width of the page; narrow screens get the narrow form of a figure."""

    def fitting(match: re.Match[str]) -> str:
        image = match[0].replace("<img ", '<img style="max-width:100%;height:auto" ')
        svg = narrow.get(match[1], {}).get(match[2])
        if svg is None:
            return image
        data = base64.b64encode(svg.encode()).decode()
        source = f'media="(max-width: 44rem)" srcset="data:image/svg+xml;base64,{data}"'
        return f"<picture><source {source}>{image}</picture>"

    return IMAGE.sub(fitting, html)


def first_sentences(text: str, count: int = 2) -> str:
    """The first sentences of a paragraph."""
    ends = [match.end() - 1 for match in re.finditer(r"[.?!] (?=[A-Z*])", text)]
    return text[: ends[count - 1]] if len(ends) >= count else text


def _write_claims(reports: Path, runs: list[Published], studies: dict[str, Study]) -> None:
    tests: dict[str, list[str]] = {}
    for name, study in studies.items():
        for claim in study.claims:
            if claim not in ("none", "-"):
                tests.setdefault(claim, []).append(name)
    page = claims_page(runs, tests)
    title = "What four reports claimed, and what we measured"
    write_text(reports / "claims.md", markdown_page(page))
    write_text(reports / "claims.html", page_of_body(title, html_body(page), PAGES[:1]))


# --- the README ---


@dataclass(frozen=True)
class Model:
    """A server as it describes itself."""

    name: str
    summary: str
    take: str
    leave: str
    alone: bool  # it serves one connection at a time


def models() -> list[Model]:
    """Returns the description of each server, by --describe."""
    found = []
    for source in sorted(PROJECT.glob("*_server.c")):
        server = source.with_suffix("")
        if not server.is_file():
            fail(f"{server.name} is not built: make")
        done = subprocess.run([server, "--describe"], capture_output=True, text=True, check=False)
        try:
            told = json.loads(done.stdout)
        except json.JSONDecodeError:
            fail(f"{server.name} --describe prints no JSON")
        advice = told["advice"]
        name = told["name"].removesuffix("_server")
        alone = told["defaults"]["max_connections"] == 1
        found.append(Model(name, told["summary"], advice["take"], advice["avoid"], alone))
    return found


@dataclass(frozen=True)
class Cost:
    """An average of a server over all levels of concurrency."""

    mean: float
    low: float
    high: float


def costs_of(run: Published) -> dict[tuple[str, str], Cost]:
    rows = read_table(run.folder / "averages.tsv").rows
    return {
        (row["measure"], row["server"]): Cost(*(float(row[n]) for n in ("mean", "low", "high")))
        for row in rows
    }


def ways_of(costs: dict[tuple[str, str], Cost], name: str) -> list[tuple[str, float]]:
    """The cheapest and the dearest of a server's ways to accept, without the default."""
    known = [
        (server.partition("+accept=")[2], cost.mean)
        for (measure, server), cost in costs.items()
        if measure == "server_cpu_us" and re.fullmatch(rf"{re.escape(name)}(\+accept=.*)?", server)
    ]
    ends = [min(known, key=lambda way: way[1]), max(known, key=lambda way: way[1])] if known else []
    return [end for end in dict.fromkeys(ends) if end[0]]


@dataclass(frozen=True)
class KeptOpen:
    """The cost of a request on a connection that carries several, relative to one alone."""

    calls: str
    where: str
    ratios: dict[str, Cost]


def kept_open_costs(run: Published, where: str) -> KeptOpen:
    """CPU per request with the most requests on a connection against one, in the same study."""
    data = read_cells(run.folder)
    calls = data.levels["calls"][-1]
    found: dict[str, Cost] = {}
    for server in data.levels["server"]:
        name, _, option = server.partition("+")
        if option not in ("", "protocol=persistent"):
            continue
        many = [c for c in data.pick(server=server, calls=calls) if not data.in_first_blocks(c)]
        pairs = [(cell, one) for cell in many if (one := data.like(cell, calls="1")) is not None]
        result = contrast_test(data, mean_of_pairs(pairs), "server_cpu_us")
        if result:
            found[name] = Cost(result.ratio, *result.ratio_interval())
    return KeptOpen(calls, where, found)


def newest(runs: list[Published], *studies: str) -> Published | None:
    """Returns the newest run of the first of these studies that is published."""
    for study in studies:
        known = [run for run in runs if run.study == study]
        if known:
            return max(known, key=lambda run: run.machine["started"])
    return None


def _write_readme(readme: Path, reports: str, runs: list[Published]) -> None:
    text = readme.read_text(encoding="utf-8")
    blocks: dict[str, str] = {}
    if designs := newest(runs, MAIN_STUDY):
        blocks["models"] = _models_block(designs, newest(runs, *KEPT_OPEN), reports)
    if pair := newest(runs, PAIR_STUDY):
        others = [run for run in runs if run.study == PAIR_STUDY and run is not pair]
        blocks["pair"] = _answer_block(pair, others, reports, PAIR_FIGURE)
    if process := _process_block(runs, reports):
        blocks["process"] = process
    for name, block in blocks.items():
        text = _with_block(text, name, block)
    if text != readme.read_text(encoding="utf-8"):
        write_text(readme, text)


PEERS = ("lighttpd", "nginx", "apache-prefork", "apache-worker", "apache-event")


def _answer_block(run: Published, others: list[Published], reports: str, kind: str) -> str:
    """Returns the block of README with the answer of a study, in two sentences, a figure, and the
    ratio of server CPU in its other runs."""
    shown = main_picture(read_pictures(run.folder), [kind])
    where = f"{reports}/{run.path}"
    figure = f"![{shown.text}]({where}/figures/{shown.name}.png)" if shown else ""
    text = " ".join(run.abstract[1])
    answer = first_sentences(text)
    return render_markdown(
        "readme_answer.md.j2", figure=figure, answer=answer, limit=text[len(answer) :].strip(),
        where=where, others=[(other, ratio) for other in others if (ratio := _ratio_of(other))],
    )  # fmt: skip


def _ratio_of(run: Published) -> Cost | None:
    """The ratio of server CPU that a run of two servers has, over all cells."""
    for row in read_table(run.folder / COMPARISONS_FILE).rows:
        if row["scope"] == "all" and row["measure"] == "server_cpu_us":
            return Cost(float(row["ratio"]), float(row["low"]), float(row["high"]))
    return None


def _process_block(runs: list[Published], reports: str) -> str:
    """Returns the block of README with what the parts of a process cost, as abstracts have it."""
    lines = []
    for study, begin in PROCESS_STUDIES.items():
        run = newest(runs, study)
        paragraphs = run.abstract[1] if run else []
        at = next((i for i, text in enumerate(paragraphs) if text.startswith(begin)), None)
        if run and at is not None:
            text = " ".join(paragraphs[at:-1]) if not begin else paragraphs[at]
            lines.append(f"- [{run.title}]({reports}/{run.path}/report.md): {text}\n")
    return "".join(lines)


def _models_block(run: Published, kept_open: Published | None, reports: str) -> str:
    costs = costs_of(run)
    kept = kept_open_costs(kept_open, f"{reports}/{kept_open.path}") if kept_open else None
    return render_markdown(
        "readme_models.md.j2", models=_by_cost(costs), costs=costs, ways_of=ways_of,
        where=f"{reports}/{run.path}", kept=kept,
        peers=[peer for peer in PEERS if ("server_cpu_us", peer) in costs],
    )  # fmt: skip


def _by_cost(costs: dict[tuple[str, str], Cost]) -> list[Model]:
    """The models that were measured; a model of the user's own has no place in the README."""
    measured = [model for model in models() if ("server_cpu_us", model.name) in costs]
    return sorted(measured, key=lambda model: costs[("server_cpu_us", model.name)].mean)


def _with_block(text: str, name: str, block: str) -> str:
    """Puts a block in place of what stands between its marks."""
    pattern = rf"(<!-- made: {name} -->\n).*?(<!-- /made -->)"
    return re.sub(pattern, lambda m: m[1] + block + m[2], text, count=1, flags=re.S)
