"""Figures: the looks of servers, groups, scales, and the figures of a study."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from synthetic import invent

from collect.design.study import FIGURES
from collect.infer.analyse_results import analyse
from collect.measure.run_plan import keep_histogram
from collect.present import server_looks
from collect.present.chart import DrawnFigure, LineFigure, RowFigure, script_of
from collect.present.facts import figures_named
from collect.present.figures import figures_of
from collect.present.gnuplot import tidy_svg
from collect.present.results_view import load_view
from collect.present.scales import (
    level_scale,
    linear_tics,
    log_tics,
    nice_step,
    ratio_scale,
    spread_out,
    value_scale,
)  # fmt: skip
from collect.present.server_groups import LINES, group_servers
from collect.project import PUBLISHED
from collect.tables import read_table, write_table

STUDIES = sorted(path.parent for path in PUBLISHED.glob("*/*/runs.tsv"))


# --- the looks ---


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_each_server_has_a_look_of_its_own() -> None:
    looks = [(look.colour, look.mark) for look in server_looks.SERVERS.values()]
    assert len(set(looks)) == len(looks)
    assert len({look.colour for look in server_looks.SERVERS.values()}) == len(looks)


@pytest.mark.parametrize("look", server_looks.all_looks(), ids=lambda look: look.colour)
def test_contrast(look: server_looks.Look) -> None:
    """WCAG 2 asks for 4.5 for text and 3 for graphics; sky blue and orange are labelled in text."""
    assert contrast(look.text_colour, server_looks.PAPER) >= 4.5
    assert contrast(look.dark, server_looks.DARK_PAPER) >= 4.5
    assert contrast(look.colour, server_looks.PAPER) >= 2


def test_looks_follow_the_name() -> None:
    assert server_looks.look_of("fork") is server_looks.SERVERS["fork"]
    assert server_looks.look_of("fork~2") is server_looks.COPY
    assert server_looks.look_of("pool+accept=mutex") is server_looks.look_of("prefork+accept=mutex")
    assert server_looks.look_of("unheard-of") == server_looks.look_of("unheard-of")


# --- groups ---


def test_few_servers_are_one_group() -> None:
    (group,) = group_servers(["fork", "thread", "nginx"])
    assert (group.title, group.labels) == ("", ("fork", "thread", "nginx"))


def test_many_servers_are_small_multiples() -> None:
    ways = [f"prefork+accept={way}" for way in ("lock", "mutex", "pass", "reuseport")]
    servers = ["fork", "thread", "prefork", *ways, "floor-one", "nginx", "lighttpd"]
    groups = group_servers(servers)
    assert [group.title for group in groups] == [
        "one process or thread per connection", "prefork, by way to accept", "bare models",
        "other servers",
    ]  # fmt: skip
    assert groups[1].labels == ("default", "lock", "mutex", "pass", "reuseport")
    assert group_servers(["iterative", *servers])[0].title == "without workers"


def test_no_panel_shows_two_servers_with_one_look() -> None:
    servers = ["thread+protocol=simple", "fork+protocol=simple"]
    assert [group.servers for group in group_servers(servers)] == [(s,) for s in servers]


def test_a_server_and_itself_again_share_a_panel() -> None:
    servers = ["fork", "fork~2", "thread", "thread~2"]
    assert [group.servers for group in group_servers(servers)] == [
        ("fork", "fork~2"), ("thread", "thread~2"),
    ]  # fmt: skip


# --- scales ---


@pytest.mark.parametrize(
    ("span", "parts", "step"), [(100, 5, 20), (30, 6, 5), (1, 5, 0.2), (0.07, 5, 0.02)]
)
def test_nice_steps(span: float, parts: int, step: float) -> None:
    assert nice_step(span, parts) == pytest.approx(step)


def test_tics() -> None:
    assert [text for text, _ in linear_tics(0, 1.06)][1:] == ["0.5", "1.0"]
    assert [text for text, _ in log_tics(0.5, 200)] == ["1", "10", "100"]
    assert [text for text, _ in log_tics(0.5, 20)] == ["0.5", "1", "2", "5", "10", "20"]
    thousands = [text for text, _ in linear_tics(0, 21000)]
    assert thousands == ["0", "5,000", "10,000", "15,000", "20,000"]


def test_an_axis_begins_at_zero() -> None:
    scale = value_scale([3, 4, 5], [4, 5, 6], [2, 3, 4])
    assert (scale.low, scale.log) == (0, False)
    assert scale.high >= 6


def test_one_interval_does_not_set_the_scale() -> None:
    assert value_scale([3, 4, 5], [4, 500, 6], [2, 0, 4]).high < 10
    assert ratio_scale([0.9, 1.1], [0.8, 0.001], [1.0, 900]).high < 4


def test_one_outlier_makes_the_axis_logarithmic() -> None:
    assert value_scale([1, 1.2, 1.1, 400], [1, 1.2, 1.1, 400], [1, 1, 1, 400]).log


def test_levels_that_are_spread_unevenly_have_a_logarithmic_axis() -> None:
    assert level_scale(["1", "10", "100", "1000"], 600).log
    assert not level_scale([str(n) for n in range(1, 31)], 600).log


@pytest.mark.parametrize("places", [[0.5, 0.5, 0.5], [0, 0.01, 1], [1, 1, 1, 1], [0.3, 0.9, 0.31]])
def test_labels_are_moved_apart_by_little(places: list[float]) -> None:
    moved = spread_out(places, 0.1, 0.03, 0.97)
    ordered = sorted(moved)
    assert all(b - a >= 0.1 - 1e-9 for a, b in itertools.pairwise(ordered))
    assert sorted(range(len(places)), key=lambda i: places[i]) == sorted(
        range(len(places)), key=lambda i: moved[i]
    )
    assert ordered[0] >= 0.03 - 1e-9
    assert ordered[-1] <= 0.97 + 1e-9


# --- the figures of the published studies ---


@pytest.fixture(scope="module", params=STUDIES, ids=lambda path: path.parent.name)
def figures(request: pytest.FixtureRequest) -> list[LineFigure | RowFigure]:
    return figures_of(load_view(request.param))  # type: ignore[return-value]


def test_panels_hold_at_most_five_lines_each_with_a_look(figures: list) -> None:
    lines = [figure for figure in figures if isinstance(figure, LineFigure)]
    for figure in lines:
        for panel in figure.panels:
            measured = [series for series in panel.series if not series.dashed]
            assert 1 <= len(measured) <= LINES, figure.name
            assert len({series.look for series in measured}) == len(measured), figure.name


def test_a_server_has_one_look(figures: list) -> None:
    for figure in figures:
        if isinstance(figure, LineFigure):
            for panel in figure.panels:
                for series in panel.series:
                    if series.name in server_looks.SERVERS:
                        assert series.look == server_looks.SERVERS[series.name], figure.name


def test_means_have_their_intervals(figures: list) -> None:
    """Each mean of several runs has its interval, unless all runs are the same."""
    for figure in figures:
        if "Mean of" not in figure.subtitle or figure.kind in ("spread", "busiest"):
            continue
        if isinstance(figure, RowFigure):
            marks = [m for _, rows in figure.groups for row in rows for m in row.marks]
        else:
            marks = [p for panel in figure.panels for s in panel.series if not s.dashed
                     for p in s.points]  # fmt: skip
        assert any(mark.low < mark.high for mark in marks), figure.name
        assert all(mark.low <= mark.high for mark in marks)
        assert all("(" in mark.text for mark in marks if mark.low < mark.high), figure.name


def test_a_study_may_ask_for_each_kind_of_figure() -> None:
    lists = [read_table(path / "figures" / "list.tsv").rows for path in STUDIES]
    assert {row["kind"] for rows in lists for row in rows} <= set(FIGURES)


def test_a_study_of_where_a_ratio_falls_shows_that_ratio_first(tmp_path: Path) -> None:
    folder = invent(tmp_path / "falls", blocks=4, concurrency=3)
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(
        'contrast = { measure = "requests", of = { server = "thread" }, to = { server = "fork" }, '
        f"falls-to = [1.1, 1.5] }}\n{text}"
    )
    analyse(folder)
    view = load_view(folder)
    assert figures_named(view)[0] == "falls-to"
    (figure,) = [figure for figure in figures_of(view) if figure.kind == "falls-to"]
    ratio, *bounds = figure.panels[0].series
    assert [point.x for point in ratio.points] == [1, 2, 3]
    assert all(1.5 < point.low <= point.y <= point.high for point in ratio.points)
    assert [bound.points[0].y for bound in bounds] == [1.5, 1.1]
    assert all(bound.dashed for bound in bounds)


def test_a_logarithmic_axis_says_so(figures: list) -> None:
    for figure in figures:
        if isinstance(figure, DrawnFigure):
            continue
        if figure.x.log:
            assert "logarithmic" in figure.x_title, figure.name
        if isinstance(figure, LineFigure) and any(scale.log for scale in figure.scales):
            assert "logarithmic" in figure.y_title + figure.subtitle, figure.name


def test_a_legend_names_what_is_shown(figures: list) -> None:
    for figure in figures:
        if isinstance(figure, RowFigure) and figure.levels:
            shown = {mark.level for line in figure.lines() for mark in line.marks}
            shown |= {level for line in figure.lines() for level, _, _ in line.notes}
            assert shown == set(range(len(figure.levels))), figure.name


def test_words_at_the_beginning_of_an_axis_are_on_it(figures: list) -> None:
    """gnuplot leaves out what a rounding puts before a logarithmic axis."""
    for figure in figures:
        if isinstance(figure, RowFigure) and figure.x.log:
            labels = script_of(figure).files[f"{figure.name}.labels"].splitlines()
            for line in labels if any(line.notes for line in figure.lines()) else ():
                assert float(line.split()[0]) > figure.x.low, (figure.name, line)


def test_names_are_unique_and_scripts_whole(figures: list) -> None:
    names = [figure.name for figure in figures]
    assert len(set(names)) == len(names)
    for figure in figures:
        if isinstance(figure, DrawnFigure):
            assert figure.svg().startswith("<svg ") and figure.svg().endswith("</svg>\n")
            continue
        script = script_of(figure)
        text = script.parameters + "".join(script.files.values())
        assert " nan" not in text
        assert "inf " not in text


# --- other studies ---


def test_a_ceiling_stands_beside_requests(tmp_path: Path) -> None:
    folder = invent(tmp_path / "designs", kind="designs", blocks=3)
    analyse(folder)
    figures = figures_of(load_view(folder))
    requests = next(figure for figure in figures if figure.name == "small-requests")
    assert isinstance(requests, LineFigure)
    dashed = {series.name for panel in requests.panels for series in panel.series if series.dashed}
    assert dashed <= {"ceiling"}
    if "floor-one" in load_view(folder).data.levels["server"]:
        assert dashed == {"ceiling"}


def test_rounds_floors_and_times_of_all_requests(tmp_path: Path) -> None:
    """Makes runs of four rounds, with the floors before and after each and the times of requests."""
    folder = invent(tmp_path / "rounds", blocks=8, concurrency=3)
    runs = read_table(folder / "runs.tsv")
    for row in runs.rows:
        row["round"] = str((int(row["block"]) + 1) // 2)
    write_table(folder / "runs.tsv", runs.columns, runs.rows)
    for row in runs.rows:
        keep_histogram(folder, row["run"], {300: 900.0, 350: 100.0})
    floors = [
        {"round": str(n), "when": when, "server": server, "started": str(3600 * n), "rps": "9000",
         "server_cpu_us": "12.5", "valid": "yes"}
        for n in range(1, 5) for when in ("begin", "end") for server in ("floor-one", "floor-fork")
    ]  # fmt: skip
    write_table(folder / "calibration.tsv", list(floors[0]), floors)
    analyse(folder)
    figures = {figure.name: figure for figure in figures_of(load_view(folder))}
    assert {"rounds", "calibration", "latency"} <= set(figures)
    rounds, floor, times = (figures[name] for name in ("rounds", "calibration", "latency"))
    assert isinstance(rounds, LineFigure)
    assert [len(panel.series[0].points) for panel in rounds.panels] == [4, 4]  # of two files
    assert all(panel.band for panel in rounds.panels)
    assert isinstance(floor, LineFigure)
    assert {point.y for panel in floor.panels for point in panel.points()} == {1.0}
    assert isinstance(times, LineFigure)
    ends = [series.points[-1] for panel in times.panels for series in panel.series]
    assert all(end.x == pytest.approx(0.001 * 1.02**350, rel=0.05) for end in ends)
    assert "rounds (" in figures["small-cpu"].subtitle


def test_svg_is_tidied() -> None:
    drawn = (
        "<title>Gnuplot</title>\n"
        '<rect x="0" y="0" width="9" height="9" fill="#ffffff"/>\n'
        '<g fill="none" color="black">\n</g>\n'
        "<g onmousemove=\"showHypertext(evt,'fork: 1')\"><title> </title>\n"
        "<path stroke='rgb(  0, 114, 178)'  d=\"M1 1\"/></g>\n"
    )
    tidy = tidy_svg(drawn)
    assert "Gnuplot" not in tidy
    assert '<g class="value"><title>fork: 1</title>' in tidy
    assert "rgb(0,114,178)" in tidy
    assert "prefers-color-scheme: dark" in tidy
    assert 'fill="none"' not in tidy


@pytest.mark.parametrize(
    ("study", "titled"), [("weight", "where each request computes (cpu)"), ("table1", "small.txt")]
)
def test_a_title_says_what_requests_for_work_do(study: str, titled: str) -> None:
    figures = figures_of(load_view(next(s for s in STUDIES if s.parent.name == study)))
    titles = {figure.title for figure in figures if figure.kind in ("requests", "cpu")}
    assert f"Requests per second, {titled}" in titles
    assert f"Server CPU per connection of one request, {titled}" in titles
