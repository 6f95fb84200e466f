"""The report of a study, from invented runs whose truth is known, and from published ones."""

from __future__ import annotations

import re
import shutil
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from mark_long_cases import SHORT, takes_long
from presenting import (
    add_machine,
    figures_of,
    need_programs,
    publish,
    published,
    reported,
    text_of,
    written,
)
from synthetic import invent

from collect.infer.analyse_results import analyse
from collect.present.facts import CPU, RPS, compared, extremes
from collect.present.figures import figures_of as figures_of_study
from collect.present.markdown_to_html import figures_in
from collect.present.present_results import PICTURES, terminal
from collect.present.published_runs import Published, abstract_of, find_published
from collect.present.report import write_report
from collect.present.results_view import load_view
from collect.project import PUBLISHED
from collect.tables import read_table, write_table

need_programs()


@pytest.fixture(scope="module")
def main(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a whole report of fork against thread."""
    folder = tmp_path_factory.mktemp("main") / "run"
    return reported(invent(folder, blocks=6, concurrency=6, invalid=2), PICTURES, narrow=True)


def test_the_figures_of_a_study(main: Path) -> None:
    kinds = ("cpu", "requests", "time", "ratio", "memory", "alone")
    expected = {f"{file}-{kind}" for file in ("small", "big") for kind in kinds}
    assert {row["name"] for row in figures_of(main)} == expected | {"order", "spread"}


def test_figures_are_whole_and_tell_their_values(main: Path) -> None:
    for row in figures_of(main):
        svg = text_of(main, f"figures/{row['name']}.svg")
        assert svg.rstrip().endswith("</svg>")
        assert re.search(r'class="value"><title>(fork|thread)', svg)
        if row["kind"] in ("cpu", "requests"):
            assert (main / f"figures/{row['name']}.png").read_bytes()[1:4] == b"PNG"


@pytest.mark.parametrize(
    "section",
    ["Abstract", "Results", "Claims", "Threats to validity", "Method", "Machine",
     "How to reproduce"],
)  # fmt: skip
def test_sections(main: Path, section: str) -> None:
    assert f"\n## {section}\n" in text_of(main)


def test_the_abstract_has_the_answer(main: Path) -> None:
    abstract = text_of(main).partition("## Abstract")[2].partition("## ")[0]
    cpu = abstract.index("times as much server CPU per connection of one request as fork")
    rps = re.search(
        r"As this client sees it, \*\*thread\*\* answers 2\.\d+ times as many", abstract
    )
    assert rps and cpu < rps.start()  # CPU per request leads


def test_averages_and_ratio_go_together(main: Path) -> None:
    found = re.search(
        r"answers ([\d.]+) times .*? as fork \(([\d,]+) against ([\d,]+);", text_of(main)
    )
    assert found
    ratio, mine, base = (float(text.replace(",", "")) for text in found.groups())
    assert mine / base == pytest.approx(ratio, rel=0.01)


def test_what_a_report_says(main: Path) -> None:
    report = text_of(main)
    assert "Invalid runs**: 2 of 144" in report
    assert "\n./dcollect.sh --seed 1 fork-vs-thread\n" in report
    assert "**What else ran** was not recorded." in report
    assert "**One sitting.**" in report
    assert not re.search(r"\b(nan|inf|None|Undefined)\b", report)
    assert not re.search(r"origin|network namespace|Dashed", report)


def test_the_page_holds_everything(main: Path) -> None:
    page = text_of(main, "index.html")
    # Each figure is there for a wide and for a narrow screen.
    assert page.count('<svg role="img"') == 2 * len(figures_of(main))
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!data:|#)""", page)
    ids = re.findall(r"""\sid=["']([^"']+)["']""", page)
    assert len(set(ids)) == len(ids)


def test_built_again_every_file_is_the_same(main: Path) -> None:
    stale = main / "figures/small-part9-cpu.svg"
    shutil.copy(main / "figures/small-cpu.svg", stale)
    files = [main / "report.md", main / "index.html", *main.glob("figures/small-*")]
    before = {path: path.read_bytes() for path in files if path != stale}
    reported(main, PICTURES, narrow=True)
    assert not stale.exists()
    assert [path.name for path, data in before.items() if path.read_bytes() != data] == []


def test_what_else_ran(tmp_path: Path) -> None:
    folder = invent(tmp_path / "run", blocks=3, concurrency=2)
    add_machine(folder, others_percent="1", stolen_percent="3")
    report = written(folder)
    assert "**What else ran**: other programs had 1% of the processors.\n" in report
    assert "**A shared host**: 3%" in report
    assert "Run it again on a quiet machine" not in report
    add_machine(folder, others_percent="40")
    report = written(folder)
    assert (
        "other programs had 40% of the processors: **the study did not have the machine" in report
    )
    abstract = report.partition("\n## Abstract\n")[2].partition("\n## ")[0]
    assert "**Run it again on a quiet machine**: other programs had 40% of" in abstract
    question, answer = abstract_of(report)
    assert question and answer and not any("Run it again" in paragraph for paragraph in answer)


def test_the_terminal(main: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    drawn = terminal(main)
    assert "Server CPU per connection of one request, small.txt" in drawn
    assert max(map(len, drawn.split("\n"))) <= 80


@takes_long
def test_the_terminal_of_many_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    folder = invent(tmp_path / "designs", kind="designs", blocks=3)
    analyse(folder)
    drawn = terminal(folder)
    assert re.search(r"^ *iterative #+ [\d.]+$", drawn, re.M)
    assert max(map(len, drawn.split("\n"))) <= 80


def test_no_difference_is_seen_where_there_is_none(tmp_path: Path) -> None:
    """A thread answers 2.3 times as many requests as a process; divided by that there is none."""
    folder = invent(tmp_path / "even", blocks=12, concurrency=8, slow=1 / (30000 / 13000))
    report = written(folder)
    assert "**thread** and fork differ by less than a tenth in requests per second" in report


@pytest.mark.parametrize(
    "kind",
    ["table1", "requests", "udp", "designs", *(pytest.param(kind, marks=takes_long) for kind in (
        "processors", "persistent", "mistakes", "download", "protocols", "https", "same-server"))],
)  # fmt: skip
def test_studies_of_other_shapes(tmp_path: Path, kind: str) -> None:
    pictures = ["bars"] if kind == "designs" else []
    folder = reported(invent(tmp_path / kind, kind=kind, blocks=3), pictures)
    report = text_of(folder)
    assert not re.search(r"\b(nan|inf|None|Undefined)\b", report)
    if kind == "designs":  # its main figure is rows
        assert (folder / "figures/small-bars.png").read_bytes()[1:4] == b"PNG"
    assert "\n## Results\n" in report


def test_a_single_run(tmp_path: Path) -> None:
    report = written(invent(tmp_path / "single", blocks=1, concurrency=1))
    assert "too few valid runs" in report


# --- the numbers of earlier reports beside those of this one ---


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = invent(tmp_path_factory.mktemp("proxy") / "run", kind="proxy", blocks=3)
    add_machine(folder, link="20mbit by tbf")
    return reported(folder)


def test_theirs_in_a_table(proxy: Path) -> None:
    report = text_of(proxy)
    assert "\n| where | concurrency | report | fork | thread |\n" in report
    row = r"^\| /125, proxy hit \| 7 \| 11\.7 \(0\.0442\) \| [\d,]+ \([\d.]+\) \| [\d,]+ \([\d.]+\) \|$"
    assert re.search(row, report, re.M)
    # Not where their conditions are not met.
    wrong = r"^\| /125, (?:service sized|proxy revalidation) \| \d+ \| [\d.]+ \("
    assert not re.search(wrong, report, re.M)


def test_theirs_in_a_figure(proxy: Path) -> None:
    drawn = text_of(proxy, "figures/125-requests.svg")
    assert len(re.findall(r"<title>report, concurrency \d+: [\d.]+ requests/s", drawn)) == 3
    assert "stroke-dasharray" in drawn
    assert ">report<" not in text_of(proxy, "figures/150-requests.svg")
    subtitle = next(row["text"] for row in figures_of(proxy) if row["name"] == "125-requests")
    assert "Dashed, report: theirs." in subtitle


def test_the_method_of_a_proxy(proxy: Path) -> None:
    report = text_of(proxy)
    assert "the origin is asked for none of the requests of a hit" in report
    assert "over a link between two network namespaces: 20mbit by tbf." in report


def test_the_table_of_the_first_report(tmp_path: Path) -> None:
    report = written(invent(tmp_path / "table1", kind="table1", blocks=3))
    assert re.search(
        r"^\| small\.txt \| thread \| report \| 2\.146 \|(?:  \|){5} 7 \|$", report, re.M
    )
    assert re.search(r"^\| small\.txt \| thread \| here \|(?: \d+\.\d{3} \|){7}$", report, re.M)
    assert not re.search(r"^\| big\.txt \| \w+ \| (?:report|here)", report, re.M)


def test_a_load_generator_that_knows_no_percentiles(tmp_path: Path) -> None:
    folder = invent(tmp_path / "bare", kind="mistakes", blocks=3)
    runs = read_table(folder / "runs.tsv")
    unknown = {f"p{n}_ms": "-" for n in (50, 90, 95, 99)}
    write_table(folder / "runs.tsv", runs.columns, [{**row, **unknown} for row in runs.rows])
    reported(folder)
    times = [row for row in figures_of(folder) if row["kind"] == "time"]
    assert times
    for row in times:
        assert re.search(r"Mean of (each|\d+) run|mean of", row["text"])
        assert not re.search("percentile|median", text_of(folder, f"figures/{row['name']}.svg"))


# --- the answer ---


def answered(folder: Path, contrast: str) -> list[str]:
    """The sentences of the abstract of a study with a contrast, which all parts follow."""
    study = folder / "study.toml"
    study.write_text(f"contrast = {contrast}\n" + study.read_text())
    report = written(folder)
    assert "\n## Part by part\n" in report
    abstract = report.partition("\n## Abstract\n")[2].partition("\n## ")[0]
    paragraphs = [
        p.strip() for p in abstract.split("\n\n") if not p.strip().startswith(("> ", "!", "["))
    ]
    return re.split(r"(?<=\.)\s(?=[A-Z])", " ".join(filter(None, paragraphs)))


@pytest.mark.parametrize(
    ("kind", "contrast", "answer", "size"),
    [
        ("https", '{ of = { scheme = "https", certificate = "p256", sessions = "new" }, '
         'to = { scheme = "http", certificate = "-", sessions = "-" }, when = { load = "witness" } }',
         r"A request takes more server CPU with \*\*HTTPS, P-256, new sessions\*\* than with HTTP\.",
         r"The ratio is 12\.\d+ \(.* µs against .* µs; 95% interval 1[12]\.\d+ to 1[23]\.\d+; .*"
         r"average of 4 cells, whose ratios run from [\d.]+ \(\w+\) to [\d.]+ \(\w+\)\)\."),
        ("fork-vs-thread", '{ measure = "requests", of = { server = "thread" }, '
         'to = { server = "fork" }, when = { concurrency = [1, 2] } }',
         r"\*\*thread\*\* answers more requests per second than fork, as this client sees it\.",
         r"The ratio is 2\.\d+ \(.*; 95% interval 2\.\d+ to 2\.\d+; "
         r"average of 4 cells, whose ratios run from 2\.\d+ to 2\.\d+[^)]*\)\."),
        ("fork-vs-thread", '{ measure = "requests", of = { file = "big.txt" }, '
         'to = { file = "small.txt" } }',
         r"As this client sees it, fewer requests per second are answered with \*\*big\.txt\*\* than",
         r"The ratio is 0\.9\d+ \("),
        ("fork-vs-thread", '{ of = { concurrency = 3 }, to = { concurrency = 2 } }',
         r"\*\*concurrency 3\*\* and concurrency 2 differ by less than a tenth in server CPU per connection of one request\.",
         r"The ratio is \d\.\d+ \("),
        ("fork-vs-thread", '{ measure = "p99", of = { concurrency = 3 }, to = { concurrency = 1 } }',
         r"The 99th percentile of the time of a request is longer with \*\*concurrency 3\*\* than with",
         r"The ratio is \d\.\d+ \(.* ms against .* ms; "),
        ("fork-vs-thread", '{ measure = "requests", of = { server = "thread" }, '
         'to = { server = "fork" }, falls-to = [1.5] }',
         r"\*\*thread\*\* answers more than 1\.5 times as many requests per second as fork everywhere\.",
         r"The ratio falls from 2\.\d+ \(.*\) at concurrency 1 to 2\.\d+ \(.*\) at concurrency 3\."),
        ("fork-vs-thread", '{ measure = "requests", of = { server = "thread" }, '
         'to = { server = "fork" }, falls-to = [9.5, 1.5] }',
         r"\*\*thread\*\* answers at most 9\.5 times as many requests per second as fork everywhere, "
         r"and more than 1\.5 times everywhere\.",
         r"The ratio falls from 2\.\d+ "),
    ],
)  # fmt: skip
def test_an_abstract_has_answer_size_and_limit(
    tmp_path: Path, kind: str, contrast: str, answer: str, size: str
) -> None:
    folder = invent(tmp_path / kind, kind=kind, blocks=8, concurrency=3)
    sentences = answered(folder, contrast)
    bound = [sentence for sentence in sentences if re.match(r"In \d+ of \d+ cells", sentence)]
    sizes = [sentence for sentence in sentences if sentence.startswith("The ratio ")]
    assert len(sentences) == 2 * len(sizes) + len(bound) + 1, sentences
    assert re.match(answer, sentences[0]), sentences
    assert re.match(size, sentences[1]), sentences
    assert re.match(r"The interval holds within this sitting of 8 blocks", sentences[-1])


def test_an_abstract_answers_what_else_is_asked(tmp_path: Path) -> None:
    folder = invent(tmp_path / "also", blocks=8, concurrency=3)
    contrast = '{ of = { server = "thread" }, to = { server = "fork" } }'
    also = '{ measure = "p99", of = { concurrency = 3 }, to = { concurrency = 1 } }'
    sentences = answered(folder, f"{contrast}\nalso = [{also}]")
    assert len(sentences) == 5, sentences
    assert re.match(r"\*\*thread\*\* takes less server CPU", sentences[0])
    assert re.match(r"The 99th percentile .* is longer with \*\*concurrency 3\*\*", sentences[2])
    assert re.match(r"The ratio is \d\.\d+ \(.* ms against .* ms; ", sentences[3])


def test_an_abstract_says_where_further_ratios_fall(tmp_path: Path) -> None:
    folder = invent(tmp_path / "falls", blocks=8, concurrency=3)
    contrast = '{ of = { server = "thread" }, to = { server = "fork" } }'
    also = (
        '{ measure = "requests", of = { server = "thread" }, to = { server = "fork" }, '
        'when = { file = "small.txt" }, falls-to = [9.5] }'
    )
    sentences = answered(folder, f"{contrast}\nalso = [{also}]")
    assert re.match(r"\*\*thread\*\* takes less server CPU", sentences[0]), sentences
    fallen = r"\*\*thread\*\* answers at most 9\.5 times as many requests per second as fork everywhere"
    assert re.search(fallen, sentences[1]), sentences
    ends = r"The ratio falls from [\d.]+ \(.*\) at concurrency 1 to .* at concurrency 3 \(small\.txt\)\."
    assert re.match(ends, sentences[2]), sentences


def test_an_abstract_compares_two_sides_once_and_says_how_much_elsewhere(tmp_path: Path) -> None:
    folder = invent(tmp_path / "elsewhere", blocks=8, concurrency=3)
    contrast = '{ of = { server = "thread" }, to = { server = "fork" } }'
    also = ", ".join(
        f'{{ of = {{ server = "thread" }}, to = {{ server = "fork" }}, when = {{ {where} }} }}'
        for where in ('file = "small.txt"', "concurrency = 3")
    )
    sentences = answered(folder, f"{contrast}\nalso = [{also}]")
    assert len(sentences) == 2, sentences
    one = r"\*\*less\*\*, 0\.\d+ \([^;]* µs against [^;]* µs; 95% interval [^;]*; average of \d cells, [^;]*\)"
    places = "; ".join(f"{place} {one}" for place in ("over all cells", "for small.txt", "for concurrency 3"))
    assert re.match(rf"Server CPU .* of \*\*thread\*\*, relative to that of fork: {places}\.$", sentences[0])


def test_a_report_of_an_open_loop_tells_of_the_client_and_of_the_other_document(
    tmp_path: Path,
) -> None:
    report = written(publish("mixed", tmp_path / "mixed"))
    late = r"A late client\*\*: in the worst of \d+ valid runs \d\.\d% of the requests started over 100 µs late"
    assert re.search(late, report)
    assert "\n99th percentile of the time of a request for 1048576.bin, milliseconds" in report
    other = r"\n\| server \|.* 5% of the requests for the other file \|.*\|\n\| --- \|( ---: \|)+\n"
    assert re.search(other + r"\| fork \| [\d.]+ \([\d.]+ to [\d.]+\) \|", report)


def test_a_client_whose_share_of_a_surge_is_not_known(tmp_path: Path) -> None:
    report = written(publish("recovery", tmp_path / "recovery"))
    assert "a run in which the client itself was late is invalid" in report
    assert "httperf never sleeps" not in report


def test_an_abstract_says_what_each_step_saves(tmp_path: Path) -> None:
    folder = invent(tmp_path / "steps", blocks=8, concurrency=3)
    contrast = '{ of = { server = "thread" }, to = { server = "fork" } }'
    sentences = answered(folder, f'{contrast}\nsteps = ["fork", "thread"]')
    assert len(sentences) == 4, sentences
    saved = r"(\d+\.\d \(\d+\.\d to \d+\.\d\))"
    said = re.match(
        rf"Step by step: \*\*fork\*\* takes {saved} µs more than \*\*thread\*\*; "
        rf"of them, each beside the step before it, \*\*thread\*\* saves {saved}\.$",
        sentences[2],
    )
    assert said and said[1] == said[2]
    assert f"| fork | thread | {said[1]} | 100% |" in written(folder)


def test_an_abstract_says_what_the_steps_save_that_are_not_shown(tmp_path: Path) -> None:
    report = written(publish("dial", tmp_path / "dial"))
    abstract = report.partition("## Abstract")[2].partition("\n## ")[0]
    names = r"(\*\*clone\+share=[a-z-]+\*\*(, | and )?){2,4}"
    saved = r"\d+\.\d \(−?\d+\.\d to \d+\.\d\)"
    assert re.search(
        rf"no saving is shown of {names} one by one; together they save {saved}\.", abstract
    )


def test_a_contrast_that_was_not_measured_is_no_answer(tmp_path: Path) -> None:
    folder = invent(tmp_path / "small", blocks=3, concurrency=2)
    study = folder / "study.toml"
    contrast = "contrast = { of = { concurrency = 9 }, to = { concurrency = 1 } }\n"
    study.write_text(contrast + study.read_text())
    report = written(folder)
    assert "Part by part" not in report
    assert "takes" in report.partition("\n## Abstract\n")[2].partition("\n## ")[0]


def test_the_abstract_of_a_server_against_itself_counts_false_alarms(tmp_path: Path) -> None:
    folder = invent(tmp_path / "same", kind="same-server", concurrency=5, blocks=8)
    study = folder / "study.toml"
    contrast = 'contrast = { of = { server = "fork~2" }, to = { server = "fork" } }'  # is no answer
    study.write_text(f"{contrast}\n{study.read_text()}")
    report = written(folder)
    abstract = report.partition("\n## Abstract\n")[2].partition("\n## ")[0]
    counted = r"f 10 tests of {} in a cell, \d+ have a p below 0\.05 \(.*?\), and (none|\d+) after adjustment"
    for measure in ("server CPU per connection of one request", "requests per second"):
        assert re.search(counted.format(measure), abstract), measure
    assert "The ratio is" not in abstract
    threats = report.partition("## Threats to validity")[2]
    assert "**A/A**, a server against itself: of 10 tests" in threats


def test_where_the_client_limits_the_baseline_it_is_said_of_that(tmp_path: Path) -> None:
    folder = invent(tmp_path / "limited", kind="designs", blocks=6)
    analyse(folder)
    runs = load_view(folder)
    part = runs.parts[0]
    base = {cell for cell in part.cells if runs.data.value(cell, "server") == part.baseline}
    runs.bound = lambda cell: cell in base  # type: ignore[method-assign]
    rows = compared(runs, part, RPS)
    assert len(rows) > 2 and {row.own_bound for row in rows} == {0}
    assert {row.base_bound for row in rows} == {len(base)}


# --- published runs ---


# Without --all, so many are enough to see that a report changes.
FEW_PUBLISHED = 8


def rendered_here() -> list[Published]:
    found = find_published(PUBLISHED)
    return found[:: max(1, len(found) // FEW_PUBLISHED)] if SHORT else found


@pytest.mark.parametrize("run", rendered_here(), ids=lambda run: run.path)
def test_published_abstracts_end_with_their_limit(run: Published) -> None:
    """The reports and their figures, too, are those that the tables of today make."""
    view = load_view(run.folder)
    report = write_report(view)
    assert report == (run.folder / "report.md").read_text()
    assert set(figures_in(report)) <= {figure.name for figure in figures_of_study(view)}
    abstract = report.partition("\n## Abstract\n")[2].partition("\n## ")[0]
    assert re.search(r"within this sitting of|rounds within|the client is the limit|These are medians", abstract)
    _, answer = abstract_of(report)
    assert answer and "Part 1" not in abstract
    if "The ratio is" in abstract:
        first = next(text for text in answer if "The ratio is" in text)
        sentences = re.split(r"(?<=\.)\s(?=[A-Z*])", first)
        assert len(sentences) == 2 * first.count("The ratio is")


def test_an_abstract_tells_opposite_answers_apart(tmp_path: Path) -> None:
    report = written(publish("udp", tmp_path / "udp"))
    answers = re.findall(r"for (fork|thread) \*\*(more|less)\*\*, [01]\.\d+ \(", report)
    assert answers == [("fork", "more"), ("thread", "less")]


def test_a_run_that_was_cut_short_is_told(tmp_path: Path) -> None:
    report = written(publish("memory", tmp_path / "memory"))
    assert re.search(r"A run ends after 8 s at the latest: \d+ of the runs had fewer requests answered", report)
    assert "all requests completed or its time was up, none failed" in report
    assert "A run ends after" not in written(publish("table1", tmp_path / "table1"))


def test_averages_are_geometric_means_of_the_runs() -> None:
    """The first edition printed 21,507 and 9,595, geometric means of arithmetic means."""
    view = load_view(published("fork-vs-thread"))
    (found,) = compared(view, view.parts[0], RPS)
    assert found.average == pytest.approx(21067, abs=1)
    assert found.base_average == pytest.approx(9500, abs=1)
    assert found.average / found.base_average == pytest.approx(found.ratio, rel=1e-5)
    assert compared(view, view.parts[0], CPU)[0].state == "lower"


@pytest.mark.parametrize("study", ["idle", "slow-clients", "crash", "growth-memory", "udp"])
def test_published_studies_of_other_kinds(tmp_path: Path, study: str) -> None:
    folder = publish(study, tmp_path / study)
    report = write_report(load_view(folder))
    assert not re.search(r"\b(nan|inf|None|Undefined)\b", report)
    sentences = {
        "idle": "cannot hold 1,000 idle connections",
        "slow-clients": "With 100 slow clients,",
        "crash": "somebody has to start them again",
        "growth-memory": "A held connection takes this much memory",
        "udp": "requests by UDP",
    }
    assert sentences[study] in report


def with_floor(folder: Path) -> Path:
    """Adds runs of floor-one, three times as fast as fork, to the runs of a study."""
    runs = read_table(folder / "runs.tsv")
    rows = list(runs.rows)
    for row in runs.rows:
        if row["server"] == "fork":
            faster = {"server": "floor-one", "rps": f"{3 * float(row['rps']):.2f}"}
            rows.append({**row, **faster, "run": str(len(rows) + 1)})
    write_table(folder / "runs.tsv", runs.columns, rows)
    study = folder / "study.toml"
    study.write_text(study.read_text().replace('["fork", ', '["floor-one", "fork", '))
    return folder


@pytest.mark.parametrize("known", [True, False])
def test_a_client_whose_cpu_time_is_not_known(tmp_path: Path, known: bool) -> None:
    """With floors the cells are judged. Without floors the report says that it is not known."""
    folder = invent(tmp_path / "httperf", blocks=4, concurrency=2)
    folder = with_floor(folder) if known else folder
    runs = read_table(folder / "runs.tsv")
    rows = [{**row, "load_cpu": "-"} for row in runs.rows]
    if known:  # as fast as the floor: the client is the limit
        floor = {
            (r["file"], r["concurrency"], r["block"]): r["rps"]
            for r in rows
            if r["server"] == "floor-one"
        }
        rows = [{**r, "rps": floor[r["file"], r["concurrency"], r["block"]]} for r in rows]
    write_table(folder / "runs.tsv", runs.columns, rows)
    report = written(folder)
    if known:
        assert "In 8 of 8 cells (100%) the client is the limit" in report
    else:
        assert "**The client as the limit**: not recorded" in report


def test_the_ceiling_of_the_client_stands_beside_requests(tmp_path: Path) -> None:
    folder = reported(with_floor(invent(tmp_path / "floor", blocks=4, concurrency=4)))
    texts = {row["name"]: row["text"] for row in figures_of(folder)}
    assert "floor-one, the most that this client can ask for" in texts["small-requests"]
    assert "floor-one" not in texts["small-cpu"]
    drawn = text_of(folder, "figures/small-requests.svg")
    assert "<title>ceiling of the client, floor-one, concurrency 1: " in drawn
    assert "from a server that does nothing (`floor-one`)" in text_of(folder)


@pytest.mark.parametrize("study", ["growth", "designs"])
def test_servers_that_the_client_limits_have_no_rank(study: str) -> None:
    view = load_view(published(study))
    part = view.parts[0]
    cpu, rps = (extremes(view, part, measure, sign) for measure, sign in ((CPU, 1), (RPS, -1)))
    assert cpu and rps
    assert (cpu.best[0].server, cpu.limited) == ("iterative", ())
    assert "iterative" in {average.server for average in rps.limited}
    assert [average.server for average in rps.worst] == ["fork"]
    answers = text_of(published(study)).partition("## Abstract")[2].partition("## Results")[0]
    assert "Who answers the most is not known" in answers
    assert "answers the most requests" not in answers


def test_servers_that_the_data_do_not_tell_from_the_best(tmp_path: Path) -> None:
    """A server against itself is named with the other one."""
    folder = invent(tmp_path / "same", kind="same-server", blocks=6)
    analyse(folder)
    view = load_view(folder)
    found = [e for part in view.parts if (e := extremes(view, part, CPU, 1))]
    assert found
    for one in found:
        assert {average.server for average in one.best} == {average.server for average in one.worst}


def with_rounds(folder: Path, minutes: float) -> Path:
    """Splits the blocks of a study into two rounds. The second one ends after so many minutes."""
    runs = read_table(folder / "runs.tsv")
    half = max(int(row["block"]) for row in runs.rows) // 2
    rows = [{**row, "round": "1" if int(row["block"]) <= half else "2"} for row in runs.rows]
    write_table(folder / "runs.tsv", runs.columns, rows)
    end = 60 * minutes
    columns = ["round", "started", "ended", "date", "processor_model", "processors"]
    start = datetime(2026, 1, 1) + timedelta(minutes=minutes - 1)
    values = [
        ["1", "0", "60", "2026-01-01 00:00:00 UTC", "a", "2"],
        ["2", f"{end - 60}", f"{end}", f"{start:%Y-%m-%d %H:%M:%S} UTC", "a", "2"],
    ]
    table = [dict(zip(columns, row, strict=True)) for row in values]
    write_table(folder / "rounds.tsv", columns, table)
    return folder


@pytest.mark.parametrize(
    ("minutes", "words"),
    [(3.0, "within 3 minutes on one machine"), (3 * 1440.0, "over 3 days on one machine")],
)
def test_a_report_says_when_its_rounds_were(tmp_path: Path, minutes: float, words: str) -> None:
    folder = with_rounds(invent(tmp_path / "rounds", blocks=8, concurrency=2), minutes)
    report = written(folder)
    assert f"**2 rounds**, {words}." in report
    assert ("the intervals hold for that time alone" in report) == (minutes < 60)
    assert f"of 2 rounds {words}: another machine" in report


def test_times_of_requests_have_intervals_and_ratios(main: Path) -> None:
    latency = text_of(main).partition("Time of a request, milliseconds")[2]
    pair = r" [\d.]+ \([\d.]+ to [\d.]+\) \| [\d.]+ \([\d.]+ to [\d.]+\)[^|]* \|"
    assert re.search(rf"^\| small\.txt \| thread \|{pair}{pair}$", latency, re.M)


def spoil(study: str, folder: Path, **where: str) -> Path:
    """Copies a published study, and makes all runs of these cells invalid. Returns the folder."""
    publish(study, folder)
    runs = read_table(folder / "runs.tsv")
    for row in runs.rows:
        if all(row[name] == value for name, value in where.items()):
            row["valid"] = "2 requests failed"
    write_table(folder / "runs.tsv", runs.columns, runs.rows)
    return folder


def test_means_are_of_the_same_cells(tmp_path: Path) -> None:
    """A server without a valid run in a cell has no mean over all of them."""
    folder = spoil(
        "fork-vs-thread", tmp_path / "one", server="thread", concurrency="1", file="small.txt"
    )
    report = written(folder)
    averaged = {
        (row["measure"], row["server"], row["file"])
        for row in read_table(folder / "averages.tsv").rows
    }
    assert ("rps", "fork", "small.txt") in averaged and ("rps", "thread", "big.txt") in averaged
    assert ("rps", "thread", "small.txt") not in averaged
    (found,) = compared(load_view(folder), load_view(folder).parts[0], CPU)
    assert found.cells == found.asked - 1
    assert found.average and found.base_average
    assert found.average / found.base_average == pytest.approx(found.ratio, rel=1e-5)
    assert "A dash: the server has valid runs at other values than fork" in report


def test_a_question_that_the_runs_do_not_answer(tmp_path: Path) -> None:
    report = written(spoil("rings", tmp_path / "rings", server="uring", keepalive="on"))
    abstract = report.partition("## Abstract")[2].partition("\n## ")[0]
    assert "**The question is not answered**: too few runs are valid to compare" in abstract
    assert "of uring with that of epoll, keep-alive on." in abstract


@pytest.fixture(scope="module")
def offered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return reported(publish("offered-load", tmp_path_factory.mktemp("offered") / "run"))


def test_requests_that_were_asked_for_compare_no_servers(offered: Path, tmp_path: Path) -> None:
    """Below its capacity, a server answers as many requests a second as an open loop sends."""
    folder = shutil.copytree(offered, tmp_path / "offered")
    assert "As this client sees it" in text_of(folder)
    runs = read_table(folder / "runs.tsv")
    write_table(folder / "runs.tsv", runs.columns, [r for r in runs.rows if r["offered"] == "50"])
    study = folder / "study.toml"
    study.write_text(re.sub(r"(?m)^offered = .*", "offered = [50]", study.read_text()))
    report = text_of(reported(folder))
    assert "As this client sees it" not in report
    assert not {"requests", "alone"} & {row["kind"] for row in figures_of(folder)}
    assert "requests per second than" not in report and "do not compare the servers" in report


def test_servers_that_answered_nobody(tmp_path: Path) -> None:
    folder = publish("rings", tmp_path / "rings")
    runs = read_table(folder / "runs.tsv")
    for row in runs.rows:
        if row["server"] in ("uring", "nginx") and row["keepalive"] == "on":
            row["complete"] = "0"
    write_table(folder / "runs.tsv", runs.columns, runs.rows)
    abstract = written(folder).partition("## Abstract")[2].partition("\n## ")[0]
    assert "**uring** and **nginx** answer nobody in these runs (keep-alive on)." in abstract


def test_what_is_answered_before_a_deadline(tmp_path: Path) -> None:
    folder = publish("overload", tmp_path / "overload")
    report = written(folder)
    table = report.partition("So much of what was due was answered within ")[2].partition("\n\nPerc")[0]
    rows = {cells[0]: cells[1:] for line in table.splitlines()[4:]
            if (cells := line.strip("| ").split(" | "))}  # fmt: skip
    runs = [r for r in read_table(folder / "runs.tsv").rows if r["valid"] == "yes"]
    assert set(rows) == {run["server"] for run in runs}
    for server, shares in rows.items():
        mine = [r for r in runs if r["server"] == server and r["offered"] == "300"]
        good, failed = (sum(int(r[name]) for r in mine) for name in ("complete", "unanswered"))
        assert int(shares[-1].rstrip("%")) == pytest.approx(100 * good / (good + failed), abs=1)
    # The load before the run costs CPU time that belongs to no request of the run.
    assert "too few valid runs" not in report and "server CPU, µs/request" not in report


def test_a_server_that_cannot_hold_all_connections(tmp_path: Path) -> None:
    folder = publish("active", tmp_path / "active")
    runs = read_table(folder / "runs.tsv")
    cell = [r for r in runs.rows if r["server"] == "nginx" and r["concurrency"] == "19000"]
    for row in cell[1:]:
        row["valid"] = "cannot hold: 123 of 19000"
    for row in runs.rows:
        if row["server"] == "fork" and row["concurrency"] == "1000":
            row["valid"] = "cannot hold: 983 of 1000"
    write_table(folder / "runs.tsv", runs.columns, runs.rows)
    abstract = written(folder).partition("## Abstract")[2].partition("\n## ")[0]
    assert "**fork** cannot hold 1,000 connections: it held 983." in abstract
    many = f"in {len(cell) - 1} of {len(cell)} runs"
    assert f"**nginx** cannot hold 19,000 connections {many}: it held 123." in abstract
    assert "**epoll** cannot" not in abstract


def test_the_knee_of_an_offered_load(offered: Path) -> None:
    """It lies where the 99th percentile comes over five times that at the lowest load, and is told
    as a share of the most that the server answered at any load."""
    report = text_of(offered)
    table = report.partition("\n### The knee\n")[2].partition("\n#")[0]
    capacity = r" ([\d,]+) \([\d,]+ to [\d,]+\) \|"
    pattern = r"^\| (\w+) \|" + capacity + r" ([\d,]+) \|" * 2 + r" (\d+)% \((.*)\) \|$"
    rows = re.findall(pattern, table, re.MULTILINE)
    times: dict[str, dict[int, float]] = {}
    most: dict[str, float] = {}
    for row in read_table(offered / "summary.tsv").rows:
        times.setdefault(row["server"], {})[int(row["offered"])] = float(row["p99_ms_estimate"])
        most[row["server"]] = max(most.get(row["server"], 0), float(row["rps_mean"]))
    assert {row[0] for row in rows} == set(times) and len(rows) >= 6
    for server, *numbers, percent, interval in rows:
        capacity, top, rate = (int(number.replace(",", "")) for number in numbers)
        assert top == pytest.approx(most[server], abs=1)
        assert int(percent) == pytest.approx(100 * rate / top, abs=0.6)
        low, high = (int(end.rstrip("%")) for end in interval.split(" to "))
        assert low <= int(percent) <= high
        known = times[server]
        above = min(x for x in known if known[x] > 5 * known[10])
        below = max(x for x in known if x < above)
        assert below <= 100 * rate / capacity <= above, server
    abstract = report.partition("## Abstract")[2].partition("\n## ")[0]
    assert "with a 99th percentile of 5 times that at the lowest load" in abstract
    assert all(f"{row[4]}% for **{row[0]}** (" in abstract for row in rows)


def test_the_batches_of_event_loops(tmp_path: Path) -> None:
    """The report tells of them, and its main figure is of the part that has the answer."""
    folder = reported(publish("rings", tmp_path / "rings"))
    report = text_of(folder)
    found = re.findall(r"A wait of an event loop brought \*\*epoll\*\* (.*?)\n", report)
    assert len(found) == 2 and all("**uring**" in text and "on average." in text for text in found)
    assert "small-part2-batch" in {row["name"] for row in figures_of(folder)}
    assert "small-part2-cpu.svg" in report.partition("## Abstract")[2].partition("\n## ")[0]
