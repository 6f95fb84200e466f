"""The pages that lead to the published studies, from runs whose verdicts are known."""

from __future__ import annotations

import math
import re
import subprocess
from pathlib import Path

import pytest
from presenting import need_programs
from synthetic import invent

from collect.design.study import load_study, study_names, study_path
from collect.infer.claims_file import read_wording
from collect.pack import machine_name
from collect.present.claims_page import drawing
from collect.present.published_index import (
    PROCESS_STUDIES,
    Cost,
    _by_cost,
    _with_block,
    first_sentences,
    images_that_fit,
    kept_open_costs,
    models,
    newest,
    overview,
    ways_of,
)  # fmt: skip
from collect.present.published_runs import (
    KEPT,
    abstract_of,
    check_published,
    find_published,
    knows_history,
)
from collect.present.report import ClaimPart
from collect.present.study_topics import by_topic, studies_by_topic
from collect.project import PROJECT, PUBLISHED, StudyError

need_programs()

COLUMNS = ["claim", "source", "quote", "part", "kind", "tested", "found", "low", "high", "verdict", "blocks", "rule", "reason", "scale", "estimate", "error", "df", "count", "of"]  # fmt: skip

# The percentage that other programs used (- if it is not recorded), the load average, and for each
# claim: name, kind, verdict, verdict on the cause, found.
STUDIES = {
    "fork-vs-thread": (
        "0", 0.5,
        ("R1.2", "claim", "reproduced", "", "1.90 (1.76 to 2.05)"),
        ("R1.3", "claim", "cannot tell", "", "1.01 (0.9 to 1.2)"),
        ("R1.5", "claim", "not reproduced", "", "0.50 (0.40 to 0.60)"),
    ),
    "table1": ("4", 0.5, ("R1.1", "claim", "not reproduced", "", "0.50 (0.40 to 0.60)")),
    "mistakes": (
        "-", 5.5,
        ("R2.1", "claim", "not reproduced", "confirmed", "0.99 (0.98 to 1.02)"),
        ("R3.4", "reading", "not confirmed", "", "1.00 (0.99 to 1.01)"),
        ("R1.5", "reading", "a possible cause", "", "5.56 (3.77 to 8.21)"),
    ),
    "sized": ("1", 0.5, ("R2.1", "claim", "reproduced", "", "0.10 (0.09 to 0.11)")),
    "a-study": ("0", 0, ("X.1", "claim", "reproduced", "", '3 <of> 4 | "all" & more')),
}  # fmt: skip


def row(**values: object) -> str:
    return "\t".join(str(values.get(name, "-")) for name in COLUMNS) + "\n"


def rule_of(claim: str) -> str:
    known = read_wording().claims.get(claim)
    return next(iter(known.rules), "-") if known else "-"


def numbers(low: str, high: str) -> dict[str, object]:
    """Returns the estimate and error of a ratio from its interval; of a count if there is none."""
    if low == "-":
        return {"scale": "share", "count": 3, "of": 4}
    ends = math.log(float(low)), math.log(float(high))
    return {"scale": "ratio", "estimate": sum(ends) / 2, "error": (ends[1] - ends[0]) / 4,
            "df": 20, "blocks": 21}  # fmt: skip


MACHINE = "a-b-2-20260102"


def head_commit() -> str:
    """The commit that is checked out; any word where git does not know the history."""
    command = ["git", "-C", str(PROJECT), "rev-parse", "--short=12", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "none"


def write_run(top: Path, name: str, machine: str = MACHINE) -> None:
    others, load, *claims = STUDIES[name]
    folder = top / name / machine
    folder.mkdir(parents=True)
    text = "\t".join(COLUMNS) + "\n"
    for claim, kind, verdict, cause, found in claims:
        interval = re.search(r"\(([\d.]+) to ([\d.]+)\)", found)
        low, high = interval.groups() if interval else ("-", "-")
        head = {"claim": claim, "source": "a source", "quote": f"the words of {claim}"}
        text += row(**head, part="all", kind=kind, tested="all parts are needed", found="",
                    verdict=verdict)  # fmt: skip
        if cause:
            text += row(**head, part="cause", kind="reading", tested="the supposed cause", found="",
                        verdict=cause)  # fmt: skip
        text += row(**head, part=1, kind=kind, tested=f"this / that of {name}: ratio above 1",
                    found=found, low=low, high=high, verdict=verdict, rule=rule_of(claim),
                    **numbers(low, high))  # fmt: skip
        if cause:
            text += row(**head, part=2, kind="reading", tested=f"why of {name}: ratio below 0.5",
                        found="0.15 (0.12 to 0.18)", low=0.12, high=0.18, verdict="reproduced",
                        rule=rule_of(claim), **numbers("0.12", "0.18"))  # fmt: skip
    (folder / "claims.tsv").write_text(text)
    (folder / "study.toml").write_text(f'title = "The study {name}"\n')
    (folder / "report.md").write_text(f"# The study {name}\n\n## Claims\n")
    threats = [("planned", 10, 12), ("invalid", 0, 10), ("others", others, 100)]
    (folder / "threats.tsv").write_text(
        "name\tsubject\tvalue\tlow\thigh\tof\n"
        + "".join(f"{what}\t-\t{value}\t-\t-\t{of}\n" for what, value, of in threats)
    )
    (folder / "machine.tsv").write_text(
        f"command\t./dcollect.sh --seed 1 {name}\nprocessors\t2\nprocessor_model\tA & B\n"
        f"load_average\t{load} 1 1\nstarted\t2026-01-02 03:04:05 UTC\n"
        f"project_commit\t{head_commit()}\n"
    )
    (folder / "figures").mkdir()
    (folder / "figures/list.tsv").write_text("name\tkind\tfile\ttext\tpart\n")


def keep(top: Path, run: str, why: str) -> None:
    (top / KEPT).write_text(f"run\twhy\n{run}\t{why}\n")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("reports")
    for name in STUDIES:
        write_run(top, name)
    keep(top, f"mistakes/{MACHINE}", "what else ran was not recorded")
    assert overview(top, None) == f"{top}/index.html"
    return top


@pytest.fixture(scope="module")
def markdown(reports: Path) -> str:
    return (reports / "claims.md").read_text()


@pytest.fixture(scope="module")
def html(reports: Path) -> str:
    return (reports / "claims.html").read_text()


def section(text: str, claim: str) -> str:
    """Returns what claims.md says about a claim."""
    match = re.search(rf'^### <a id="{re.escape(claim)}"></a>.*?(?=^##|\Z)', text, re.M | re.S)
    return match[0] if match else f"nothing of {claim}"


def all_claims() -> list[str]:
    tested = [name for study in study_names() for name in load_study(study_path(study)).claims]
    return [*read_wording().claims, "X.1", *(name for name in tested if name not in ("none", "-"))]


def test_every_claim_stands_there_once(markdown: str, html: str) -> None:
    for text in (markdown, html):
        anchors = re.findall(r'<a id="([^"]+)"></a>', text)
        assert set(all_claims()) <= set(anchors)
        assert len(set(anchors)) == len(anchors)


def test_links_lead_somewhere(reports: Path, markdown: str, html: str) -> None:
    anchors = set(re.findall(r'\sid="([^"]+)"', html))
    links = [
        re.findall(r"\]\(([^)\s]+)\)", markdown),
        re.findall(r'(?:href|src)="([^"]+)"', html),
    ]
    for found in links:
        assert len(found) > 30
        for link in found:
            if link.startswith("#"):
                assert link[1:] in anchors
            elif not link.startswith("data:"):
                assert (reports / link.partition("#")[0]).exists(), link


def test_a_claim_that_names_another_leads_to_it(markdown: str, html: str) -> None:
    assert "is asked by [WEIGHT.1](#WEIGHT.1)." in section(markdown, "R1.1")
    assert 'is asked by <a href="#WEIGHT.1">WEIGHT.1</a>.' in html
    assert "](#R1.1)" not in section(markdown, "R1.1")


@pytest.mark.parametrize(
    ("claim", "pattern"),
    [
        ("R1.1", r"✗ not reproduced.*2\.146 ms threaded against 2\.341 ms.*\[The study table1\]"
                 r"\(table1/a-b-2-20260102/report\.md#claims\), 2026-01-02.*\| 0\.50 \(0\.40 to 0\.60\) \| "
                 r"✗ not reproduced \|.*Note: unfinished, 10 of 12 planned runs"),
        ("R1.2", r"✓ reproduced.*1\.90 \(1\.76 to 2\.05\).*Note: unfinished"),
        ("R1.3", r"\? cannot tell"),
        ("R1.4", r"– not measured yet.*Not measured yet: `\./dcollect\.sh processors` measures it\."),
        ("R1.5", r"\A[^\n]*✗ not reproduced.*Supposed cause\*\*: \*\*✗ not confirmed\*\*\. "
                 r"Threads that.*5\.56 \(3\.77 to 8\.21\).*\*\*Caution\*\*.*load average 5\.5 on 2 "
                 r"processors"),
        ("R2.1", r"mistakes[^\n]*✗ not reproduced.*sized[^\n]*✓ reproduced.*"
                 r"Supposed cause\*\*: \*\*✓ confirmed.*0\.15 \(0\.12 to 0\.18\)"),
        ("R3.4", r"\A[^\n]*– not measured yet.*✗ not confirmed.*\./dcollect\.sh persistent"),
        ("R3.6", r"§ answered by tests.*tests/valgrind\.t.*tests/validators\.t"),
        ("X.1", r"the words of X\.1 \(a source\).*3 <of> 4 \\\| \"all\" & more"),
    ],
)  # fmt: skip
def test_what_is_said_of_a_claim(markdown: str, claim: str, pattern: str) -> None:
    assert re.search(pattern, section(markdown, claim), re.S), section(markdown, claim)


def test_a_rule_that_was_changed_after_there_were_results_says_so(markdown: str, html: str) -> None:
    changed = "Written or changed once there were results"
    assert f"**{changed}**: the rule, after the first edition, which" in section(markdown, "CF.1")
    assert f"<strong>{changed}</strong>: the rule, after the first edition, which" in html
    assert f"**{changed}**: the words, after" in section(markdown, "PAI.1")
    assert changed not in section(markdown, "R1.1")


def test_nobody_used_those_machines(markdown: str) -> None:
    assert "Caution" not in section(markdown, "R1.2") + section(markdown, "X.1")


def test_what_a_study_says_is_text(html: str) -> None:
    assert "3 <of>" not in html
    assert "3 &lt;of&gt; 4 | &#34;all&#34; &amp; more" in html


def test_the_page_opens_with_what_this_is(markdown: str) -> None:
    first = markdown.split("\n\n")[1]
    assert first.startswith("Four groups of students")
    assert '"Not reproduced" means' in first


def test_counts(markdown: str) -> None:
    assert re.search(
        r"^Of 19 claims of four classroom reports \*\*1 is reproduced\*\*", markdown, re.M
    )
    causes = r"Of the \d+ causes .*\*\*1 is confirmed\*\*, \*\*2 are not confirmed\*\*"
    assert re.search(causes, markdown)
    assert "**Caution**: of the 5 runs behind this page one was made on a machine" in markdown


def test_at_a_glance_and_drawn(markdown: str, html: str) -> None:
    assert html.count('class="chip ') == markdown.count("<a id=")
    assert html.count('<svg class="strip"') == 9
    assert not re.search(r'\bnan\b|\binf\b|="-?[\d.]*e[+-]', html)


def test_every_interval_stays_within_its_drawing() -> None:
    for found, tested in (
        ("1.90 (1.76 to 2.05)", "x: ratio above 1"),
        ("0.10 (0.09 to 0.11)", "x: ratio within 0.5 and 2"),
        ("35.1 ms (30.2 to 40.0)", "x: within 20.0 and 60.0 ms"),
        ("2 of 16 (1.6% to 38%)", "x: below 25%"),
    ):
        svg = str(drawing(ClaimPart(tested, found, "8", "reproduced", False, "-")))
        numbers = re.findall(r'(?:M|H| x="|cx=")(-?[\d.]+)', svg)
        assert numbers
        assert all(0 <= float(number) <= 151 for number in numbers), svg
    assert drawing(ClaimPart("no rule", "1.9 (1 to 2)", "8", "reproduced", False, "-")) == ""


def test_the_overview_leads_to_it(reports: Path) -> None:
    text = (reports / "README.md").read_text()
    assert "(claims.md)" in text
    assert re.search(
        r"^## Not published yet\n\n.*^- `\./dcollect\.sh processors`: ", text, re.M | re.S
    )
    assert "- `./dcollect.sh table1`" not in text
    assert "intervals hold within these" in text


def test_the_overview_is_ordered_by_question(reports: Path) -> None:
    text = (reports / "README.md").read_text()
    topics = re.findall(r"^## (.*)$", text, re.M)
    asked = text.partition("## Questions")[2].partition("## Four reports")[0]
    links = re.findall(r"^- \[.*\]\(([a-z0-9-]+)/", asked, re.M)
    shown = re.findall(r"^### \[.*\]\(([a-z0-9-]+)/", text, re.M)
    assert topics[:3] == ["Questions", "Four reports", "A process or a thread"]
    assert topics[-1] == "Not published yet"
    assert links == shown
    assert sorted(shown) == sorted(STUDIES)
    for report in read_wording().reports:
        assert f"- **{report.name}. {report.title}.** " in text


def test_a_study_that_was_measured_again_stands_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # These runs have no tables.
    monkeypatch.setattr("collect.present.published_index.repeated_page", lambda runs: "")
    days = {"a-b-2-20260102": "2026-01-02", "a-b-2-20260103": "2026-01-03", "c-4-20260101": "2026-01-01"}
    for machine, day in days.items():
        write_run(tmp_path, "table1", machine)
        pairs = tmp_path / "table1" / machine / "machine.tsv"
        text = pairs.read_text().replace("2026-01-02 ", f"{day} ")
        pairs.write_text(text.replace("A & B", "C") if machine.startswith("c") else text)
    overview(tmp_path, None)
    asked = (tmp_path / "README.md").read_text().partition("## Four reports")[0]
    assert re.findall(r"^- .*", asked, re.M) == [
        "- [The study table1](table1/a-b-2-20260103/report.md) Measured 2026-01-03; also "
        "[2026-01-02](table1/a-b-2-20260102/report.md); "
        "[2026-01-01](table1/c-4-20260101/report.md) on C, 2 processors."
    ]


def test_each_study_has_a_topic() -> None:
    topics = [study for studies in studies_by_topic().values() for study in studies]
    assert sorted(topics) == study_names()


def test_a_study_without_a_topic_is_shown_too(tmp_path: Path) -> None:
    folder = invent(tmp_path / "mine" / "a-b-20260102", blocks=3, concurrency=2)
    (folder / "report.md").write_text("")
    (topic,) = by_topic(find_published(tmp_path))
    assert (topic.name, [run.study for run in topic.runs]) == ("Other questions", ["mine"])


def test_made_again_every_byte_is_the_same(reports: Path) -> None:
    files = [reports / name for name in ("README.md", "index.html", "claims.md", "claims.html")]
    before = [path.read_bytes() for path in files]
    overview(reports, None)
    assert [path.read_bytes() for path in files] == before


def test_many_parts_are_folded(reports: Path) -> None:
    more = "".join(
        row(claim="R2.1", source="a source", quote="the words", part=part, kind="claim",
            tested=f"part {part}: ratio below 0.5", found="0.1 (0.09 to 0.7)", low=0.09, high=0.7,
            verdict="cannot tell", rule=rule_of("R2.1"), **numbers("0.09", "0.7"))
        for part in range(2, 10)
    )  # fmt: skip
    with (reports / "sized" / MACHINE / "claims.tsv").open("a") as file:
        file.write(more)
    overview(reports, None)
    html = (reports / "claims.html").read_text()
    assert "<summary>8 other parts; of all 9, 1 reproduced, 8 cannot tell</summary>" in html
    assert html.count('<svg class="strip"') == 9 + 8


# --- what may be published ---


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """Makes a folder of reports with one run."""
    write_run(tmp_path, "sized")
    return tmp_path / "sized" / MACHINE


def put_in(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("file", "old", "new", "why"),
    [
        (
            "threats.tsv",
            "others\t-\t1",
            "others\t-\t40",
            "other programs had 40% of the processors",
        ),
        ("threats.tsv", "others\t-\t1", "others\t-\t5.1", "other programs had 5.1% of the pro"),
        ("threats.tsv", "others\t-\t1", "others\t-\t-", "what else ran was not recorded"),
        ("machine.tsv", "project_commit", "unknown", "its commit was not recorded"),
    ],
)
def test_what_is_refused(one: Path, file: str, old: str, new: str, why: str) -> None:
    put_in(one / file, old, new)
    with pytest.raises(StudyError, match=f"report/sized/{MACHINE} cannot be published: {why}"):
        overview(one.parents[1], None)


def test_others_may_have_five_percent(one: Path) -> None:
    put_in(one / "threats.tsv", "others\t-\t1", "others\t-\t5")
    overview(one.parents[1], None)


@pytest.mark.skipif(not knows_history(), reason="git does not know the history here")
def test_a_run_of_an_unknown_commit_is_refused(one: Path) -> None:
    put_in(one / "machine.tsv", head_commit(), "0123456789ab")
    with pytest.raises(StudyError, match="its commit 0123456789ab is not in the history"):
        overview(one.parents[1], None)


def test_a_run_that_is_kept_says_why(one: Path) -> None:
    put_in(one / "threats.tsv", "others\t-\t1", "others\t-\t40")
    reports, why = one.parents[1], "other programs had 40% of the processors"
    keep(reports, f"sized/{MACHINE}", why)
    overview(reports, None)
    assert f"**Kept from the first edition** although {why}" in (reports / "README.md").read_text()
    assert why in section((reports / "claims.md").read_text(), "R2.1")


@pytest.mark.skipif(not knows_history(), reason="git does not know the history here")
@pytest.mark.parametrize(
    ("run", "why", "message"),
    [
        (f"sized/{MACHINE}", "it is old", "it is old; it should say: -"),
        ("sized/nowhere", "it is old", "names sized/nowhere, which is not there"),
    ],
)
def test_an_exception_must_be_as_it_is_written(one: Path, run: str, why: str, message: str) -> None:
    keep(one.parents[1], run, why)
    with pytest.raises(StudyError, match=message):
        overview(one.parents[1], None)


def test_each_published_run_is_as_it_should_be_or_says_why_not() -> None:
    runs = find_published(PUBLISHED)
    check_published(PUBLISHED, runs)
    page = (PUBLISHED / "README.md").read_text()
    for run in runs:
        assert not run.kept or f"although {run.kept}" in page
        # A second sitting of a day has a word behind the date.
        assert re.fullmatch(machine_name(run.machine) + "(-[a-z]+)?", run.folder.name)


def test_several_runs_of_a_study_stand_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # These runs have no tables.
    monkeypatch.setattr("collect.present.published_index.repeated_page", lambda runs: "")
    for machine in ("epyc-20260102", "xeon-20260103"):
        write_run(tmp_path, "sized", machine)
    runs = find_published(tmp_path)
    assert [run.path for run in runs] == ["sized/epyc-20260102", "sized/xeon-20260103"]
    overview(tmp_path, None)
    assert "(sized/xeon-20260103/report.md#claims)" in (tmp_path / "claims.md").read_text()


# --- small things ---


def test_the_first_sentences() -> None:
    text = "One is 2.5 µs. **Two** is. Three."
    assert first_sentences(text) == "One is 2.5 µs. **Two** is."
    assert first_sentences("Only one.") == "Only one."


def test_narrow_screens_get_the_figures_that_are_drawn_for_them() -> None:
    image = '<img src="idle/here/figures/cpu.svg" alt="CPU" />'
    fitting = images_that_fit(image, {"idle/here": {"cpu": "<svg/>"}})
    narrow = '<source media="(max-width: 44rem)" srcset="data:image/svg+xml;base64,PHN2Zy8+">'
    assert fitting.startswith(f"<picture>{narrow}<img style=")
    assert fitting.endswith(' src="idle/here/figures/cpu.svg" alt="CPU" /></picture>')
    assert "<picture>" not in images_that_fit(image, {})


def test_the_abstract_of_a_report() -> None:
    report = "# T\n\n## Abstract\n\n> Why?\n\nSo.\n\n![f](figures/f.svg)\n\n## Results\n\nX\n"
    assert abstract_of(report) == ("Why?", ["So."])


def test_blocks_of_the_readme() -> None:
    text = (
        "a\n<!-- made: figure -->\nold\n<!-- /made -->\nb\n<!-- made: models -->\n<!-- /made -->\n"
    )
    new = _with_block(text, "figure", "new\n")
    assert new == text.replace("old\n", "new\n")


def test_the_readme_says_of_a_process_what_the_abstracts_say() -> None:
    runs = find_published(PUBLISHED)
    readme = (PROJECT / "README.md").read_text()
    block = readme.partition("<!-- made: process -->\n")[2].partition("<!-- /made -->")[0]
    lines = block.splitlines()
    assert len(lines) == len(PROCESS_STUDIES)
    for line, study in zip(lines, PROCESS_STUDIES, strict=True):
        run = newest(runs, study)
        assert run and f"](report/{run.path}/report.md): " in line
        said = line.partition(".md): ")[2]
        report = (run.folder / "report.md").read_text()
        assert said and said in report.replace("\n\n", " "), study


def test_ways_to_accept() -> None:
    costs = {
        ("server_cpu_us", server): Cost(mean, 0, 0)
        for server, mean in (("pool", 3.0), ("pool+accept=queue", 4.0), ("prefork", 1.0))
    }
    assert ways_of(costs, "pool") == [("queue", 4.0)]
    assert ways_of(costs, "prefork") == []


def test_a_model_that_was_not_measured_has_no_row() -> None:
    costs = {
        ("server_cpu_us", name): Cost(mean, 0, 0) for name, mean in (("fork", 3.0), ("pool", 1.0))
    }
    assert [model.name for model in _by_cost(costs)] == ["pool", "fork"]


def test_the_server_that_serves_one_connection_at_a_time_is_the_yardstick() -> None:
    alone = {model.name for model in models() if model.alone}
    assert "iterative" in alone and not {"fork", "thread", "pool"} & alone


def test_what_a_request_costs_on_a_connection_of_five() -> None:
    run = next(run for run in find_published(PUBLISHED) if run.study == "protocols")
    kept = kept_open_costs(run, "report/protocols")
    assert (kept.calls, set(kept.ratios) >= {"fork", "thread", "iterative"}) == ("5", True)
    assert kept.ratios["fork"].mean < kept.ratios["thread"].mean < 0.5
    assert all(cost.low < cost.mean < cost.high for cost in kept.ratios.values())
