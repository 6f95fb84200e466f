"""The paper: its numbers are those of the published runs, and its sentences hold."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from collect.cli import main
from collect.present.paper import (
    PAPER,
    TEMPLATE,
    Cited,
    Number,
    paper,
    require,
    studies_cited,
    typeset,
)
from collect.present.published_runs import Published, find_published
from collect.present.templating import TEMPLATES
from collect.project import PUBLISHED, StudyError

# Numbers that are no results: the confidence, a percentile, the bound of section 5, the sizes of a
# column, Kerrisk's children a second, a round trip, and the closed loop that finds a capacity.
GIVEN = {"95", "99", "1.1", "1", "8", "4,544", "34,333", "60", "20"}


@pytest.fixture(scope="module")
def runs() -> list[Published]:
    return find_published(PUBLISHED)


def test_the_published_paper_is_that_of_the_published_tables(runs: list[Published]) -> None:
    assert (PUBLISHED / f"{PAPER}.md").read_text() == paper(runs)


def test_no_result_is_typed_by_hand() -> None:
    text = (TEMPLATES / TEMPLATE).read_text().partition("\n## References\n")[0]
    text = re.sub(r"\{([{%#]).*?[}%#]\}", "", text, flags=re.S)
    text = re.sub(
        r"^```\n.*?^```\n|^## \d+|`[^`]*`|\[R\d\]|\b(chapter|table|section) [\d-]+",
        "",
        text,
        flags=re.M | re.S,
    )
    assert set(re.findall(r"\d+(?:[.,]\d+)*", text)) <= GIVEN


def test_the_studies_that_it_cites(runs: list[Published]) -> None:
    assert {"dial", "anatomy", "memory", "work", "offered-load"} <= studies_cited()
    some = [run for run in runs if run.study != "dial"]
    with pytest.raises(StudyError, match="the study dial, of which no run is published"):
        paper(some)


def test_a_sentence_that_does_not_hold_stops_it() -> None:
    assert require(True, "fork is dear") == ""
    with pytest.raises(StudyError, match="no longer show: fork is dear"):
        require(False, "fork is dear")


def test_the_newest_run_counts(runs: list[Published]) -> None:
    dials = sorted((run for run in runs if run.study == "dial"), key=lambda r: r.machine["started"])
    each = [Cited("dial", [run]).ratio("clone", "fork") for run in dials]
    assert len(each) > 1 and len(set(each)) == len(each)
    cited = Cited("dial", dials)
    assert cited.ratio("clone", "fork") == each[-1]
    assert cited.earlier.ratio("clone", "fork") == each[-2]
    with pytest.raises(StudyError, match="of which no run is published"):
        _ = Cited("dial", dials[:1]).earlier


def test_a_share_is_that_of_the_claim_and_a_purpose_that_of_the_table(runs: list[Published]) -> None:
    dial = Cited("dial", runs)
    share = dial.share(("clone", "clone+share=memory"), ("clone", "clone+share=all"))
    found = [float(number) for number in re.findall(r"[\d.]+", dial.found("DIAL.2"))]
    assert found[:3] == pytest.approx([share.value, share.low, share.high], abs=0.006)
    anatomy = Cited("anatomy", runs)
    purposes = anatomy.purposes("fork", keepalive="off")
    assert sum(purposes.values()) == pytest.approx(anatomy.mean("fork", keepalive="off").value, rel=0.02)
    assert re.fullmatch(r"12 rounds, \d+ min", dial.sitting)
    with pytest.raises(StudyError, match="the purposes of fork, seen in one cell"):
        anatomy.purposes("fork")
    with pytest.raises(StudyError, match="a share of"):
        anatomy.share(("nosuch", "fork"), ("fork", "thread"))


def test_a_ratio_has_the_cells_that_differ_in_its_two_sides_alone(runs: list[Published]) -> None:
    memory = Cited("memory", runs)
    grown = memory.ratio({"ballast": "1024"}, {"ballast": "1"}, server="fork")
    of, to = (memory.mean("fork", ballast=size) for size in ("1024", "1"))
    assert grown.value == pytest.approx(of.value / to.value, rel=0.01)


def test_a_sentence_that_the_runs_no_longer_show_stops_the_paper(
    runs: list[Published], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cited, "verdict", lambda cited, claim: "not reproduced")
    with pytest.raises(StudyError, match="no longer show: most of what a process costs"):
        paper(runs)


def test_what_was_not_measured_is_not_cited(runs: list[Published]) -> None:
    dial = Cited("dial", runs)
    for ask, message in (
        (lambda: dial.ratio("clone", "nosuch"), "clone / nosuch"),
        (lambda: dial.mean("nosuch"), "of nosuch"),
        (lambda: dial.bound, "comes to its bound: nowhere"),
        (lambda: dial.knee("fork"), "the knee of fork"),
        (lambda: dial.figure("nosuch", ""), "the figure nosuch"),
        (lambda: dial.found("DIAL.2", "nosuch"), "DIAL.2 found on nosuch"),
        (lambda: Cited("memory", runs).steps, "the steps of memory"),
    ):
        with pytest.raises(StudyError, match=message):
            ask()


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Number(0.449, 0.4431, 0.4542), "0.449 (0.443 to 0.454)"),
        (Number(37467.1, 36669, 38282), "37,467 (36,669 to 38,282)"),
        (Number(37467.1, 36669, 38282).times(0.001), "37.5 (36.7 to 38.3)"),
    ],
)
def test_numbers_in_words(number: Number, text: str) -> None:
    assert str(number) == text


# --- the PDF ---


@pytest.fixture
def pandoc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A pandoc that puts its arguments and its input where a PDF should be."""
    program = tmp_path / "bin" / "pandoc"
    program.parent.mkdir()
    program.write_text(
        "#!/bin/sh\nfor word; do case $word in --output=*) file=${word#*=};; esac; done\n"
        '{ echo "$@"; cat; } >"$file"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setattr("collect.present.paper.install", lambda needs: None)
    return program


def test_a_pdf_has_figures_and_no_links_to_pages(pandoc: Path, tmp_path: Path) -> None:
    text = "See [`dial`](dial/a/report.md), [the web](https://a.b/c).\n\n![F](dial/f.svg)\n"
    target = typeset(text, tmp_path, tmp_path / "new" / "made.pdf")
    words, _, made = target.read_text().partition("\n")
    assert "--pdf-engine=xelatex" in words
    assert made == "See `dial`, [the web](https://a.b/c).\n\n![F](dial/f.svg){width=66%}\n"


def test_an_error_of_pandoc_is_told(pandoc: Path, tmp_path: Path) -> None:
    pandoc.write_text("#!/bin/sh\necho no such font >&2\nexit 43\n")
    with pytest.raises(StudyError, match=r"pandoc cannot make .*made.pdf: no such font"):
        typeset("text", tmp_path, tmp_path / "made.pdf")


def test_the_command(pandoc: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "paper.pdf"
    assert main(["paper", str(target)]) == 0
    assert capsys.readouterr().out == f"{target}\n"
    assert "What a process costs" in target.read_text()
    assert main(["paper", "a.txt"]) == 2
    assert main(["paper", "a.pdf", "b.pdf"]) == 2
