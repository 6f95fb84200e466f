"""What another day shows: the answers of several runs of a study, beside each other."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from collect.infer.pooling import pool
from collect.present import facts
from collect.present.published_runs import Published, find_published
from collect.present.repeated import REPEATED, Repeated, Sitting, repeated_page
from collect.present.results_view import load_view
from collect.project import PUBLISHED


@pytest.fixture(scope="module")
def runs() -> list[Published]:
    return find_published(PUBLISHED)


@pytest.fixture(scope="module")
def sitting(runs: list[Published]) -> Sitting:
    run = next(run for run in runs if run.study == "dial")
    view = load_view(run.folder)
    answer = facts.answer(view)
    assert answer
    return Sitting(run, view, answer)


def study(runs: list[Published], name: str) -> list[Published]:
    return [run for run in runs if run.study == name]


def beside(sitting: Sitting, *ratios: tuple[float, float, float]) -> Repeated:
    sittings = tuple(
        replace(sitting, answer=replace(sitting.answer, ratio=ratio, low=low, high=high))
        for ratio, low, high in ratios
    )
    return Repeated(sittings, pool([0.0] * len(ratios), [0.1] * len(ratios)))


def test_the_published_page_is_that_of_the_published_runs(runs: list[Published]) -> None:
    assert (PUBLISHED / f"{REPEATED}.md").read_text() == repeated_page(runs)


def test_one_run_of_a_study_is_not_repeated(runs: list[Published]) -> None:
    assert repeated_page(study(runs, "dial")[:1]) == ""


def test_ratios_stand_beside_each_other(runs: list[Published]) -> None:
    dials = study(runs, "dial")
    text = repeated_page(dials[:2])
    assert text.startswith("# What another day shows\n")
    assert text.count("\n## ") == 1
    for run in dials[:2]:
        rows = [line for line in text.splitlines() if f"({run.path}/report.md)" in line]
        answers = facts.answers(load_view(run.folder))
        assert len(answers) > 1, "the contrast of the study, and what else it asks"
        for row, answer in zip(rows, answers, strict=True):
            assert f"| {answer.ratio_text} (" in row
            assert f"| {answer.blocks} rounds |" in row
            assert f"| `{run.machine['project_commit'][:10]}` |" in row
    assert "| **together** |" in text
    assert "| another run |" not in text, "two runs do not tell what to expect of a third one"


def test_bounds_stand_beside_each_other(runs: list[Published]) -> None:
    weights = study(runs, "weight")
    text = repeated_page(weights)
    bound = r"[\d,]+ µs of work \([\d,]+ to [\d,]+; measured at [\d,]+ and [\d,]+\)"
    found = re.findall(rf"^\| \[.*?\| ({bound}) \|", text, flags=re.M)
    questions = 2  # by requests/s, and by CPU time
    assert len(found) == questions * len(weights) > questions
    assert "**together**" not in text


@pytest.mark.parametrize(
    ("ratios", "overlap", "cover"),
    [
        (((1.0, 0.9, 1.1), (1.05, 0.95, 1.15)), True, True),
        (((1.0, 0.9, 1.1), (1.2, 1.05, 1.35)), True, False),
        (((1.0, 0.9, 1.1), (1.05, 1.04, 1.06)), True, False),
        (((1.0, 0.9, 1.1), (1.3, 1.2, 1.4)), False, False),
        (((1.0, 0.9, 1.1), (1.05, 0.95, 1.15), (1.3, 1.2, 1.4)), False, False),
    ],
)
def test_intervals_that_overlap_and_that_cover(
    sitting: Sitting, ratios: tuple[tuple[float, float, float], ...], overlap: bool, cover: bool
) -> None:
    found = beside(sitting, *ratios)
    assert (found.overlap, found.cover) == (overlap, cover)
    assert bool(found.expected) == (len(ratios) > 2)


def test_the_error_is_that_of_the_interval(sitting: Sitting) -> None:
    found = facts.answer(sitting.view)
    assert found
    wide = replace(sitting, answer=replace(found, low=found.low / 1.1, high=found.high * 1.1))
    assert 0 < sitting.error < wide.error
