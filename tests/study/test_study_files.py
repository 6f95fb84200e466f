"""Study files and plans: how they are read, and which mistakes are reported in one line."""

from __future__ import annotations

import itertools
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from collect import new_results_folder
from collect.design.factors import NAMES, Context, choose_axis, factor_value
from collect.design.plan import (
    cells_of,
    check_ballast,
    check_baseline,
    check_servers,
    check_workers,
    plan_round,
    plan_sitting,
)
from collect.design.study import (
    Study,
    given_toml,
    load_study,
    read_toml,
    source_of,
    study_of,
    study_path,
)
from collect.project import PUBLISHED, STUDIES, StudyError

SMALL = """
servers = ["fork", "thread"]
files = "small.txt"
concurrency = 1
repetitions = 4
seed = 5
"""


def study(text: str, **given: Any) -> Study:
    data = {**tomllib.loads(SMALL), **tomllib.loads(text)}
    data = {**data, "given": given} if given else data
    return study_of(data, "small", source_of(data, "small.toml"))


def plan(made: Study) -> list[dict[str, str]]:
    return plan_sitting(made, cells_of(made, 2))


def by_block(rows: list[dict[str, str]], name: str) -> list[list[str]]:
    blocks = itertools.groupby(rows, key=lambda row: row["block"])
    return [sorted(row[name] for row in block) for _, block in blocks]


# --- what a study means ---


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.toml")), ids=lambda path: path.stem)
def test_every_study_has_cells(path: Path) -> None:
    made = load_study(path)
    cells = cells_of(made, 2)
    assert made.title and made.question and made.source
    assert not made.baseline or made.baseline in made.levels["server"]
    assert len(plan_sitting(made, cells)) == sum(cells.blocks.values())


# Studies whose requests/s say nothing about the server: a link is the limit, memory is measured,
# each server is compared with itself, clients of an open loop say themselves that they were late,
# the study is about the floors, or it keeps many connections at once, which floors do not serve.
NO_CEILING = {
    "active",
    "crash",
    "distance",
    "download",
    "growth-memory",
    "idle",
    "mistakes",
    "mixed",
    "offered-load",
    "overload",
    "proxy-always",
    "recovery",
    "rings-late",
    "slow-clients",
    "spread",
    "working-set",
}


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.toml")), ids=lambda path: path.stem)
def test_a_server_that_does_nothing_is_in_every_block_that_a_client_can_limit(path: Path) -> None:
    """The floor serves neither TLS nor UDP nor, of kept connections, more than one at once; and a
    client cannot see what a proxy does."""
    made = load_study(path)
    if path.stem in NO_CEILING or "all" in made.levels["server"]:  # `all` has the floors, too
        return
    names = [n for n in made.levels if n not in ("server", "service", "certificate", "sessions")]
    rows = [
        row
        for row in plan(made)
        if row["scheme"] == "http" and (row["keepalive"] == "off" or row["concurrency"] == "1")
    ]
    kinds = [tuple(row[name] for name in ("block", *names)) for row in rows]
    floors = {k for k, row in zip(kinds, rows, strict=True) if row["server"] == "floor-one"}
    misses = {k for k, row in zip(kinds, rows, strict=True) if row["service"] == "proxy-miss"}
    assert floors and set(kinds) - floors <= misses


@pytest.mark.parametrize(
    "path", sorted(PUBLISHED.glob("*/*/study.toml")), ids=lambda p: p.parent.parent.name
)
def test_published_plans_are_those_of_their_studies(path: Path) -> None:
    from collect.tables import read_pairs, read_table

    made = load_study(path)
    old = read_table(path.parent / "plan.tsv")
    names = ["block", *(name for name in old.columns if name in made.levels)]
    kept = sorted([row[name] for name in names] for row in old.rows)
    if " campaign " in read_pairs(path.parent / "machine.tsv")["command"]:
        # It has as many rounds as it was asked for.
        made = replace(made, repetitions=max(int(row["block"]) for row in old.rows))
    assert sorted([row[name] for name in names] for row in plan(made)) == kept


def test_every_cell_is_once_in_each_block_in_an_order_of_its_own() -> None:
    rows = plan(study('concurrency = "1-6"'))
    assert [row["run"] for row in rows] == [str(i + 1) for i in range(4 * 12)]
    blocks = [list(block) for _, block in itertools.groupby(rows, key=lambda row: row["block"])]
    orders = []
    for block in blocks:
        assert [row["order"] for row in block] == [str(i + 1) for i in range(12)]
        cells = [(row["server"], row["concurrency"]) for row in block]
        assert sorted(cells) == sorted(itertools.product(("fork", "thread"), "123456"))
        orders.append(cells)
    assert len({tuple(order) for order in orders}) == 4


def test_the_same_seed_gives_the_same_plan() -> None:
    text = 'concurrency = "1-6"'
    assert plan(study(text)) == plan(study(text))
    assert plan(study(text)) != plan(study(text + "\nseed = 6"))


def test_a_server_named_again_gets_a_number() -> None:
    made = study('servers = ["fork", "fork", "thread", "fork"]')
    assert made.levels["server"] == ("fork", "fork~2", "thread", "fork~3")


def test_what_does_not_apply_is_a_dash() -> None:
    made = study(
        'load = ["ab", "wrk", "httperf"]\nconcurrency = [1, 2]\nscheme = ["http", "https"]'
    )
    for row in plan(made):
        none = row["load"] == "wrk" or (row["load"] == "httperf" and row["concurrency"] == "2")
        assert (row["requests"] == "-") == none
        assert (row["certificate"] == "-") == (row["scheme"] == "http") == (row["sessions"] == "-")


def test_work_has_an_amount_and_nothing_else_has() -> None:
    made = study("service = ['files', 'work']\nfiles = ['small.txt', 'cpu']\namount = [0, 10]")
    seen = {(row["service"], row["file"], row["amount"]) for row in plan(made)}
    assert seen == {("files", "small.txt", "-"), ("work", "cpu", "0"), ("work", "cpu", "10")}


def test_where_rules_cells_out() -> None:
    made = study(
        """
        requests = [10, 100]
        [[where]]
        when = { server = "fork" }
        only = { requests = 10 }
        """
    )
    cells = {(row["server"], row["requests"]) for row in plan(made)}
    assert cells == {("fork", "10"), ("thread", "10"), ("thread", "100")}


@pytest.mark.parametrize(
    ("when", "first", "expected"),
    [
        ("requests = 100", 2, ["10 10 100 100", "10 10 100 100", "10 10", "10 10"]),
        ("requests = 100, server = 'fork'", 1, ["10 10 100 100", *["10 10 100"] * 3]),
        ("requests = 100", 9, ["10 10 100 100"] * 4),
        ("server = 'none'", 1, ["10 10 100 100"] * 4),
        ("requests = [10, 100]", 2, ["10 10 100 100"] * 2),
    ],
)
def test_what_takes_long_is_in_the_first_blocks_alone(
    when: str, first: int, expected: list[str]
) -> None:
    made = study(f"requests = [10, 100]\n[[blocks]]\nwhen = {{ {when} }}\nfirst = {first}")
    blocks = by_block(plan(made), "requests")
    assert [" ".join(sorted(block, key=int)) for block in blocks] == expected


def test_the_fewest_blocks_count() -> None:
    limits = "[[blocks]]\nwhen = { requests = 100 }\nfirst = {0}\n"
    text = "requests = [10, 100]\n" + limits.replace("{0}", "3") + limits.replace("{0}", "1")
    assert [len(block) for block in by_block(plan(study(text)), "requests")] == [4, 2, 2, 2]


def test_what_has_no_certificate_is_in_all_blocks() -> None:
    made = study(
        """
        scheme = ["http", "https"]
        certificate = ["p256", "rsa2048"]
        [[blocks]]
        when = { certificate = "rsa2048" }
        first = 1
        """
    )
    assert [len(block) for block in by_block(plan(made), "server")] == [6, 4, 4, 4]


def test_rounds_go_on_where_the_last_one_ended() -> None:
    made = study(
        """
        requests = [10, 100]
        round-blocks = 2
        [[blocks]]
        when = { requests = 100 }
        first = 2
        """
    )
    cells = cells_of(made, 2)
    rows: list[dict[str, str]] = []
    for number in (1, 2, 3):
        rows += plan_round(made, cells, number, len(rows) + 1)
    assert [row["run"] for row in rows] == [str(i + 1) for i in range(len(rows))]
    assert [row["block"] for row in rows] == sorted((row["block"] for row in rows), key=int)
    assert {row["round"] for row in rows if row["block"] in "12"} == {"1"}
    # Cells that take long are in the first block of the first two rounds only.
    assert [len(block) for block in by_block(rows, "run")] == [4, 2, 4, 2, 2, 2]


def test_quick_and_the_command_line_go_before_the_study() -> None:
    text = "[quick]\nrepetitions = 2\nconcurrency = [1, 9]"
    assert study(text).repetitions == 4
    quick = study(text, quick=True)
    assert (quick.repetitions, quick.levels["concurrency"]) == (2, ("1", "9"))
    both = study(text, quick=True, concurrency="3-5")
    assert (both.repetitions, both.levels["concurrency"]) == (2, ("3", "4", "5"))


def test_what_is_given_can_be_read_again(tmp_path: Path) -> None:
    given = {
        "name": "small",
        "seed": 7,
        "servers": ["a+b=c", "d"],
        "files": 'x".txt',
        "fresh": True,
    }
    path = tmp_path / "study.toml"
    path.write_text(SMALL + "[[theirs]]\nmeasures = 'rps'\nby = 'server'\nvalues.fork = 1\n"
                    + given_toml(given))  # fmt: skip
    made = load_study(path)
    assert made.given == given
    assert (made.name, made.seed, made.fresh) == ("small", 7, True)
    assert made.levels["server"] == ("a+b=c", "d") and made.levels["file"] == ('x".txt',)


def test_numbers_of_a_report() -> None:
    made = study(
        """
        [[theirs]]
        measures = ["rps", "max_ms"]
        by = "concurrency"
        when = { server = "fork" }
        values = { 1 = [2, 3.5], 5 = [4, 6] }
        """
    )
    fork = plan(made)[0] | {"server": "fork", "concurrency": "1"}
    assert made.theirs_of(fork, "max_ms") == 3.5
    assert made.theirs_of(fork | {"concurrency": "5"}, "rps") == 4
    assert made.theirs_of(fork | {"concurrency": "2"}, "rps") is None
    assert made.theirs_of(fork | {"server": "thread"}, "rps") is None
    assert made.theirs_of(fork, "min_ms") is None


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.toml")), ids=lambda path: path.stem)
@pytest.mark.parametrize("quick", [False, True])
def test_a_study_can_be_planned(path: Path, quick: bool) -> None:
    data = {**read_toml(path), "given": {"quick": quick}}
    made = study_of(data, path.stem, source_of(data, str(path)))
    check_baseline(made)
    assert cells_of(made, 2).blocks


@pytest.mark.parametrize("path", sorted(STUDIES.glob("*.toml")), ids=lambda path: path.stem)
@pytest.mark.parametrize("quick", [False, True])
def test_a_contrast_has_cells_on_both_sides(path: Path, quick: bool) -> None:
    data = {**read_toml(path), "given": {"quick": quick}}
    made = study_of(data, path.stem, source_of(data, str(path)))
    # What else a study asks may be too much for its quick form.
    asked = [made.contrast, *(() if quick else made.also)]
    names = list(made.levels)
    cells = [dict(zip(names, (row[n] for n in names), strict=True)) for row in plan(made)]
    for one in filter(None, asked):
        found = [cell for cell in cells if one.when.matches(cell) and cell == {**cell, **one.of}]
        assert any({**cell, **one.to} in cells for cell in found), one


def test_each_is_one_comparison_for_each_value() -> None:
    of_two = "[[also]]\nof = { requests = 2 }\nto = { requests = 1 }\n"
    made = study(of_two + "when = { server = ['fork', 'thread'], file = 1 }\neach = 'server'")
    apart = study(
        of_two
        + "when = { server = 'fork', file = 1 }\n"
        + of_two
        + "when = { server = 'thread', file = 1 }"
    )
    assert len(made.also) == 2 and made.also == apart.also


# --- wording ---


def test_values_in_words() -> None:
    assert factor_value("requests", "1000") == "1,000 requests"
    httperf = Context(frozenset({"httperf"}))
    assert factor_value("requests", "1", httperf) == "1 connection"
    assert factor_value("requests", "-", httperf) == "all at once"
    assert factor_value("scheme", "http", Context(schemes=frozenset({"http", "udp"}))) == "TCP"
    assert factor_value("certificate", "-") == ""
    assert factor_value("file", "150") == "/150"
    assert factor_value("idle", "0") == "no idle connections"
    assert factor_value("processors", "1") == "1 processor"


def test_the_axis_is_the_number_that_varies_most() -> None:
    assert choose_axis({"concurrency": ["1", "2"], "requests": ["1", "2", "3"]}) == "requests"
    assert choose_axis({"concurrency": ["1", "2"], "requests": ["1", "2"]}) == "concurrency"
    assert choose_axis({"processors": ["1", "2"]}) == "processors"
    assert choose_axis({"processors": ["1", "all"]}) == ""


# --- mistakes ---


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("concurency = 1", "concurency: there is no such key"),
        ("contrast = 1", "contrast: 1 is no table such as"),
        ("contrast = { of = { file = 1 } }", "contrast: `to` is missing"),
        ("contrast = { of = { file = 1 }, to = { calls = 1 } }", "contrast: `of` and `to` have"),
        (
            "contrast = { of = { file = [1, 3] }, to = { file = 1 } }",
            "contrast: `of` and `to` have",
        ),
        (
            'contrast = { measure = "rps", of = { file = 1 }, to = { file = 3 } }',
            "contrast.measure: `rps` is none of cpu, requests, p50, p99, busiest, memory",
        ),
        ("contrast = { of = { fil = 1 }, to = { fil = 2 } }", "contrast.of: `fil` is no factor"),
        (
            "contrast = { of = { file = 1 }, to = { file = 2 }, falls-to = [1] }",
            "contrast.falls-to: [1] is",
        ),
        (
            "contrast = { of = { file = 1 }, to = { file = 2 }, falls-to = 1.1 }",
            "contrast.falls-to: 1.1",
        ),
        ("also = 1", "also: is a list of tables"),
        ("[[also]]\nof = { file = 1 }", "also: `to` is missing"),
        (
            "[[also]]\nof = { file = 1 }\nto = { file = 2 }\nfalls-to = [0.9]",
            "also.falls-to: [0.9] is",
        ),
        (
            "[[also]]\nof = { file = 1 }\nto = { file = 2 }\neach = 'server'",
            "also.each: `server` is no factor that `when` names",
        ),
        ("remarks = 'one'", "remarks: 'one' is no list of texts"),
        ("remarks = ['a line', '']", "remarks: '' is no text of one line"),
        ("steps = ['fork']", "steps: a step leads from one server to another"),
        ("steps = ['fork', 'spoon']", "steps: `spoon` is none of the servers"),
        ("concurrency = 0", "concurrency: 0 is no number above 0"),
        ("concurrency = '9-3'", "concurrency: 9-3 is no range"),
        ("concurrency = []", "concurrency: names nothing"),
        ("idle = 'many'", "idle: many is no number"),
        ("repetitions = 'many'", "repetitions: many is no number above 0"),
        ("processors = '1-many'", "processors: 1-many is no number above 0, nor all"),
        ("scheme = 'ftp'", "scheme: `ftp` is none of http, https, udp"),
        ("load = 'siege'", "load: `siege` is none of ab"),
        ("service = 'proxy'", "service: `proxy` is none of"),
        ("certificate = 'dsa'", "certificate: `dsa` is none of p256, rsa2048"),
        ("link = 'fast'", "link: `fast` is no rate such as 20mbit"),
        ("figure = 'cup'", "figure: `cup` is none of cpu, requests, time, ratio"),
        ("fresh = 'yes'", "fresh: 'yes' is neither true nor false"),
        ("parts = 'none'", "parts: `none` is not one, and no factor"),
        ("load = 'open'", "rate: the open loop needs the number of requests per second"),
        ("load = 'open'\nrate = 5\noffered = 50", "rate: the study has `offered`"),
        ("offered = 50", "offered: only the load `open` offers requests"),
        ("load = 'open'\noffered = 0", "offered: 0 is no number above 0"),
        ("load = 'open'\nrate = 5\nsurge = 200", "surge: it is a share of the capacity"),
        ("mixed = 5", "mixed: the study has no `other` document"),
        ("fault = 5", "fault: only the witness survives a server that dies"),
        ("duration = 0", "duration: 0 is no number above 0"),
        ("title = 7", "title: 7 is no text of one line"),
        ("where = 7", "where: is a list of tables"),
        ("[[where]]\nonly = 7", "where.only: 7 is no table"),
        ("[[where]]\nwhen = { load = 'ab' }", "where: `only` is missing"),
        ("[[where]]\nonly = { request = 1 }", "where.only: `request` is no factor"),
        ("[[where]]\nonly = { load = 'siege' }", "where.only.load: `siege` is none of ab"),
        ("[[where]]\nonly = { requests = 0 }", "where.only.requests: 0 is no number above 0"),
        ("[[blocks]]\nfirst = 1", "blocks: `when` is missing"),
        ("[[blocks]]\nwhen = { request = 1 }\nfirst = 2", "blocks.when: `request` is no factor"),
        ("[[blocks]]\nwhen = { requests = 1 }\nfirst = 0", "blocks.first: 0 is no number"),
        ("[[blocks]]\nwhen = { requests = 1 }\nfirst = 'two'", "blocks.first: two is no number"),
        ("[[theirs]]\nmeasures = 'rps'\nvalues = { 1 = 2 }", "theirs: `by` is missing"),
        ("[[theirs]]\nmeasures = 'rps'\nby = 'speed'\nvalues = { 1 = 2 }", "theirs.by: `speed`"),
        (
            "[[theirs]]\nmeasures = ['rps', 'max_ms']\nby = 'load'\nvalues = { 1 = [2, 3], 5 = 2 }",
            "theirs.values: 5 = 2 is no number for each of 2",
        ),
        *(
            (f"client-ports = '{ports}'", f"client-ports: `{ports}` is no range within 1024-65535")
            for ports in ("80-60000", "2000", "5000-4000", "1024-70000", "all")
        ),
    ],
)
def test_a_mistake_is_one_line(text: str, words: str) -> None:
    with pytest.raises(StudyError) as error:
        study(text)
    message = str(error.value)
    assert message.startswith("small.toml: ") and words in message and "\n" not in message
    assert error.value.status == 2


def test_a_mistake_of_the_command_line_names_the_option() -> None:
    with pytest.raises(StudyError, match="^--repetitions: many is no number above 0$"):
        study("", repetitions="many")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("concurrency = 20\nrequests = 10", "ab cannot have more connections at once"),
        ("processors = 3", "this machine has 2 processors"),
        ("idle = 5\nslow = 5", "one kind alone is held at a time"),
        ("slow = 5\nreaders = 5", "one kind alone is held at a time"),
        ("readers = 5\nservice = 'sized'\nfiles = '125'", "slow readers read a document"),
        ("scheme = 'udp'", "only the witness and the open loop speak UDP"),
        (
            "scheme = 'https'\nsessions = 'resumed'",
            "only the witness and the open loop resume sessions",
        ),
        ("load = 'witness'\ncalls = [1, 2]\n[[where]]\nonly = { calls = 2 }", "no calls per"),
        ("service = 'proxy-hit'\nfiles = '150'", "even ones never"),
        (
            "service = 'proxy-hit'\nfiles = '125'\nload = 'wrk'",
            "a proxy is asked over http: by ab or",
        ),
        (
            "service = 'work'\nfiles = '125'",
            "the service work, and no other, has the documents cpu",
        ),
        ("files = 'cpu'", "the service work, and no other, has the documents cpu"),
    ],
)
def test_where_no_cell_is_left_it_is_said_why(text: str, words: str) -> None:
    with pytest.raises(StudyError, match="no cell is left") as error:
        cells_of(study(text), 2)
    assert words in str(error.value) and "\n" not in str(error.value)


def test_a_file_that_is_no_toml(tmp_path: Path) -> None:
    path = tmp_path / "broken.toml"
    path.write_text("servers: fork\n")
    with pytest.raises(StudyError) as error:
        load_study(path)
    assert str(error.value).startswith(f"{path}: ") and "\n" not in str(error.value)


def test_an_unknown_study() -> None:
    with pytest.raises(StudyError, match="there is no study 'nosuch'; there are: .*crash.*udp"):
        study_path("nosuch")


def test_a_server_without_a_cell_is_refused() -> None:
    text = '[[where]]\nwhen = { server = "fork" }\nonly = { concurrency = 7 }\n'
    made = study(text)
    with pytest.raises(StudyError, match=r"`fork` has no cell: \[\[where\]\] leaves none"):
        check_servers(made, cells_of(made, 2))


def test_a_ballast_that_this_machine_has_not_the_memory_for_is_left_out() -> None:
    made = study("ballast = [1, 1024, 8192]")
    cells = cells_of(made, 2, memory=4096)
    assert {key[NAMES.index("ballast")] for key in cells.blocks} == {"1", "1024"}
    assert list(cells.left_out.values()) == [2] and "4,096 MiB" in next(iter(cells.left_out))
    assert len(cells_of(made, 2).blocks) == 6


def test_a_server_without_workers_is_not_told_their_number() -> None:
    made = study('servers = ["epoll", "fork"]\nworkers = [2, 4]')
    with pytest.raises(StudyError, match="`fork` has no number of workers"):
        check_workers(made, lambda label: label != "fork")
    check_workers(study('servers = ["epoll", "nginx"]\nworkers = [2, "auto"]'), lambda _: True)
    check_workers(study('servers = ["epoll", "fork"]'), lambda label: label != "fork")


def test_a_server_that_cannot_hold_a_ballast_is_refused() -> None:
    made = study('servers = ["fork", "nginx"]\nballast = [1, 1024]')
    with pytest.raises(StudyError, match="`nginx` cannot hold a ballast"):
        check_ballast(made, lambda label: label != "nginx")
    check_ballast(study('servers = ["fork", "nginx"]'), lambda label: label != "nginx")
    command = study('servers = ["fork", "mine=cmd:mine {port}"]\nballast = [1, 1024]')
    with pytest.raises(StudyError, match="`mine` cannot hold a ballast"):
        check_ballast(command, lambda _: True)


@pytest.mark.parametrize(
    ("value", "words"),
    [("0", "no ballast"), ("1", "1 MiB of ballast"), ("8192", "8 GiB of ballast"),
     ("1536", "1,536 MiB of ballast")],
)  # fmt: skip
def test_a_ballast_in_words(value: str, words: str) -> None:
    assert factor_value("ballast", value) == words


def test_a_server_that_this_kernel_cannot_run_is_left_out_by_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lacks(label: str) -> str:
        return "io_uring" if label == "uring" else ""

    monkeypatch.setattr(new_results_folder, "lacks_of", lacks)
    study = SimpleNamespace(levels={"server": ("fork", "uring"), "service": ("files",)})
    assert new_results_folder.present_servers(study) == ["fork"]  # type: ignore[arg-type]
    told = capsys.readouterr()
    assert "uring cannot run on this machine, and is left out: it needs io_uring" in (
        told.out + told.err
    )
