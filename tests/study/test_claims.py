"""Claims: verdicts on invented data whose truth is known, and the rules that lead to them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from presenting import publish
from synthetic import invent

from collect.infer.claim_verdicts import (
    CANNOT_TELL,
    CLAIM,
    CONFIRMED,
    MOST_UNITS,
    NOT_CONFIRMED,
    NOT_REPRODUCED,
    NOT_TESTABLE,
    POSSIBLE,
    READING,
    READING_ASIDE,
    READING_CONTROL,
    REPRODUCED,
    Finding,
    Part,
    judge,
    judge_claim,
    units_needed,
)
from collect.infer.claims_file import Claim, Rule, read_wording
from collect.infer.contrast import LIMITS, Result
from collect.infer.judge_claims import TESTS, judge_study
from collect.infer.power import rounds_needed
from collect.infer.read_results import read_cells
from collect.infer.statistics import t_test
from collect.tables import read_frame, write_table

Judge = Callable[..., pd.DataFrame]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """Judges invented data. The data of the same options are judged once."""
    top = tmp_path_factory.mktemp("judged")

    @cache
    def of(**options: object) -> pd.DataFrame:
        name = "-".join(map(str, options.values())) or "usual"
        return judge_study(read_cells(invent(top / name, **options)))

    return of


def verdict(claims: pd.DataFrame, claim: str, part: str = "all") -> str:
    rows = claims[(claims["claim"] == claim) & (claims["part"] == part)]
    return rows["verdict"].iloc[0] if len(rows) else "nothing"


PROTOCOLS = {"kind": "protocols", "blocks": 9}
HTTPS = {"kind": "https", "blocks": 9}
MISTAKES = {"kind": "mistakes", "blocks": 8}
PROXY = {"kind": "proxy", "blocks": 8}
CLASSROOM = {"kind": "classroom-proxy", "blocks": 8}
DOWNLOAD = {"kind": "download", "blocks": 8}
SLOW_DOWNLOAD = {"kind": "classroom-download", "blocks": 8}
SAME = {"kind": "same-server", "concurrency": 120, "seed": 3}

EXPECTED = [
    ({"kind": "table1"}, "R1.1", NOT_REPRODUCED, "thread is far ahead"),
    ({"kind": "processors", "blocks": 8}, "R1.4", NOT_REPRODUCED, "fork never wins"),
    ({"kind": "requests"}, "R2.2", REPRODUCED, "start-up cost"),
    (MISTAKES, "R2.1", CONFIRMED, "a backlog of 5, by ab too"),
    (MISTAKES, "R1.5", CONFIRMED, "threads that nobody joins slow down"),
    (MISTAKES, "R3.4", CONFIRMED, "two writes"),
    ({"kind": "persistent", "blocks": 8}, "R3.4", REPRODUCED, "slow at five calls"),
    ({"kind": "persistent", "blocks": 8}, "R3.3", NOT_REPRODUCED, "fork is behind Apache"),
    (PROTOCOLS, "R3.1", REPRODUCED, "simple ahead of Apache"),
    (PROTOCOLS, "R3.2", REPRODUCED, "nothing to gain with one call"),
    (PROTOCOLS, "R3.3", REPRODUCED, "persistent ahead of Apache"),
    (PROTOCOLS, "R3.4", NOT_REPRODUCED, "nor slow at five calls"),
    (PROTOCOLS, "R3.5", REPRODUCED, "a thread for each connection"),
    (PROTOCOLS | {"first": 3}, "R3.1", REPRODUCED, "three blocks of many connections"),
    (HTTPS, "R4.1", REPRODUCED, "15 times"),
    (HTTPS, "R4.2", REPRODUCED, "as many requests as one likes"),
    (HTTPS, "TLS.1", REPRODUCED, "the event loop takes less than nginx"),
    (HTTPS, "TLS.2", REPRODUCED, "the thread little more"),
    (HTTPS, "TLS.3", REPRODUCED, "resumed, P-256, RSA"),
    ({"kind": "udp", "blocks": 9}, "U1", REPRODUCED, "UDP takes less"),
    ({"kind": "udp", "blocks": 9}, "U2", NOT_REPRODUCED, "some are lost"),
    ({"kind": "udp", "blocks": 4, "slow": 0.1}, "U1", REPRODUCED, "both slow, one less so"),
    ({"kind": "work", "blocks": 8}, "PAI.1", REPRODUCED, "an event loop is first until it blocks"),
    ({"kind": "work", "blocks": 8, "slow": 0.2}, "PAI.1", NOT_REPRODUCED, "it is never first"),
    (PROXY, "R2.1", NOT_REPRODUCED, "no service collapses"),
    (CLASSROOM, "R2.1", REPRODUCED, "all services collapse"),
    (PROXY, "R2.3", NOT_REPRODUCED, "the proxy is slower than the server behind it"),
    (CLASSROOM, "R2.3", REPRODUCED, "the proxy is faster than the server behind it"),
    (DOWNLOAD, "R2.4", NOT_REPRODUCED, "five at once are no faster"),
    (SLOW_DOWNLOAD, "R2.4", REPRODUCED, "five at once are faster"),
    (DOWNLOAD, "R2.5", NOT_REPRODUCED, "keep-alive is faster"),
    (SLOW_DOWNLOAD, "R2.5", REPRODUCED, "keep-alive is slower"),
    ({"blocks": 12}, "R1.2", NOT_REPRODUCED, "the servers do not look alike"),
    ({"blocks": 12}, "R1.3", NOT_REPRODUCED, "thread is ahead everywhere"),
    ({"blocks": 12}, "R1.5", NOT_REPRODUCED, "nothing slows down or fails"),
    (SAME, "A/A", REPRODUCED, "a server against itself"),
    (SAME | {"slow": 0.9}, "A/A", NOT_REPRODUCED, "a server against itself, slowed down"),
]


@pytest.mark.parametrize(
    ("options", "claim", "expected"),
    [case[:3] for case in EXPECTED],
    ids=[f"{claim}: {name}" for _, claim, _, name in EXPECTED],
)
def test_verdict(judged: Judge, options: dict[str, object], claim: str, expected: str) -> None:
    assert verdict(judged(**options), claim) == expected


@pytest.mark.parametrize(
    ("options", "claim", "expected"),
    [
        ({"kind": "requests"}, "R2.2", NOT_CONFIRMED),
        (PROTOCOLS, "R3.5", CONFIRMED),
        (PROXY, "R2.3", NOT_TESTABLE),  # what is not there has no cause
        (CLASSROOM, "R2.3", CONFIRMED),
        (MISTAKES, "R3.4", "nothing"),  # there only the cause was tested: it is the row `all`
    ],
)
def test_cause(judged: Judge, options: dict[str, object], claim: str, expected: str) -> None:
    assert verdict(judged(**options), claim, "cause") == expected


@pytest.mark.parametrize("claim", ["R3.1", "R3.2", "R3.3", "R3.4"])
def test_each_number_of_connections_is_a_part(judged: Judge, claim: str) -> None:
    parts = judged(**PROTOCOLS, first=3)
    rows = parts[(parts["claim"] == claim) & (parts["blocks"] != "-")]
    blocks = [(("100,000" in tested), n) for tested, n in zip(rows["tested"], rows["blocks"])]  # noqa: B905
    assert blocks == [(False, "9"), (True, "3")]


def changed(folder: Path, changes: Callable[[pd.DataFrame], object]) -> pd.DataFrame:
    """Judges a folder with other runs."""
    runs = read_frame(folder / "runs.tsv")
    changes(runs)
    write_table(folder / "runs.tsv", list(runs.columns), runs.to_dict("records"))
    return judge_study(read_cells(folder))


def scale(runs: pd.DataFrame, server: str, column: str, by: float) -> None:
    chosen = runs["server"] == server
    runs.loc[chosen, column] = (pd.to_numeric(runs.loc[chosen, column]) * by).map("{:.4f}".format)


def test_what_happens_to_both_is_not_held_against_one(tmp_path: Path) -> None:
    def tire(runs: pd.DataFrame) -> None:
        order, rps = pd.to_numeric(runs["order"]), pd.to_numeric(runs["rps"])
        runs["rps"] = (rps * (1 - 0.3 * order / 120)).map("{:.2f}".format)

    assert verdict(changed(invent(tmp_path / "tired", blocks=12), tire), "R1.5") == NOT_REPRODUCED


@pytest.fixture
def rings(tmp_path: Path) -> Path:
    return invent(tmp_path / "rings", kind="rings", blocks=9)


def cost(runs: pd.DataFrame, kept: float, ends: float) -> None:
    """The CPU time of uring is that of epoll by these factors, and nginx takes as much as epoll."""
    epoll = pd.to_numeric(runs.loc[runs["server"] == "epoll", "server_cpu_us"]).mean()
    for server, on, off in (("uring", kept, ends), ("nginx", 1.0, 1.0)):
        for keepalive, factor in (("on", on), ("off", off)):
            chosen = (runs["server"] == server) & (runs["keepalive"] == keepalive)
            own = pd.to_numeric(runs.loc[chosen, "server_cpu_us"])
            runs.loc[chosen, "server_cpu_us"] = (own / own.mean() * epoll * factor).map(
                "{:.4f}".format
            )


def test_rings_save_where_connections_stay_and_cost_where_they_end(rings: Path) -> None:
    claims = changed(rings, lambda runs: cost(runs, kept=1 / 1.42, ends=1 / 0.69))
    assert verdict(claims, "ARENA.1") == REPRODUCED


def test_rings_that_cost_nothing_where_connections_end(rings: Path) -> None:
    claims = changed(rings, lambda runs: cost(runs, kept=1 / 1.42, ends=1.0))
    assert verdict(claims, "ARENA.1") == NOT_REPRODUCED
    parts = claims[(claims["claim"] == "ARENA.1") & claims["tested"].str.contains("nginx / uring")]
    assert list(parts["verdict"]) == [REPRODUCED, NOT_REPRODUCED]


def test_rings_near_the_margin(rings: Path) -> None:
    claims = changed(rings, lambda runs: cost(runs, kept=1 / 1.21, ends=1 / 0.69))
    assert verdict(claims, "ARENA.1") == CANNOT_TELL


@pytest.fixture
def designs(tmp_path: Path) -> Path:
    return invent(tmp_path / "designs", kind="designs", blocks=5, concurrency=6)


def test_designs(designs: Path) -> None:
    claims = judge_study(read_cells(designs))
    for claim in ("UNP.1", "UNP.2", "CF.1"):
        assert verdict(claims, claim) == REPRODUCED
    assert verdict(claims, "E07.1") == NOT_TESTABLE
    assert "thousands of connections" in claims[claims["claim"] == "E07.1"]["found"].iloc[0]


def test_a_dear_pool(designs: Path) -> None:
    claims = changed(designs, lambda runs: scale(runs, "pool", "server_cpu_us", 2.5))
    assert verdict(claims, "UNP.1") == NOT_REPRODUCED


def test_a_cheap_main_thread(designs: Path) -> None:
    claims = changed(designs, lambda runs: scale(runs, "prefork+accept=pass", "server_cpu_us", 0.5))
    assert verdict(claims, "UNP.2") == NOT_REPRODUCED


def test_an_even_epoll(designs: Path) -> None:
    claims = changed(
        designs, lambda runs: scale(runs, "epoll+accept=shared", "busiest", 0.51 / 0.9)
    )
    assert verdict(claims, "CF.1") == NOT_REPRODUCED


def test_nobody_counted_the_workers(designs: Path) -> None:
    def forget(runs: pd.DataFrame) -> None:
        runs["busiest"] = "-"

    assert verdict(changed(designs, forget), "CF.1") == NOT_TESTABLE


def test_where_the_load_generator_is_the_limit_cpu_time_decides(designs: Path) -> None:
    def limit(runs: pd.DataFrame) -> None:
        runs["load_cpu"] = "0.990"

    claims = changed(designs, limit)
    tested = claims[(claims["claim"] == "E07.1") & (claims["part"] == "1")]["tested"].iloc[0]
    assert "thread / epoll, server CPU per connection of one request" in tested
    assert "in 6 of 6 requests/s speaks of the load generator" in tested


def test_a_processor_that_the_client_does_not_share(judged: Judge) -> None:
    parts = judged(kind="processors", blocks=8)
    one = parts[parts["tested"].str.contains(", 1 processor:")]
    assert list(one["verdict"]) == [NOT_TESTABLE]
    assert one["found"].str.endswith("the load generator had another processor").all()


def test_a_download_over_a_link_without_delay(tmp_path: Path) -> None:
    folder = invent(tmp_path / "near", kind="download", blocks=4)
    (folder / "machine.tsv").write_text("link\t20mbit, no delay\n")
    claims = judge_study(read_cells(folder))
    assert verdict(claims, "R2.4") == NOT_TESTABLE
    assert verdict(claims, "R2.5") == NOT_REPRODUCED


def test_a_claim_without_a_test(tmp_path: Path) -> None:
    folder = invent(tmp_path / "unknown", blocks=2, concurrency=2)
    text = (folder / "study.toml").read_text()
    (folder / "study.toml").write_text(text.replace('"R1.2"', '"R9.9"'))
    assert verdict(judge_study(read_cells(folder)), "R9.9") == NOT_TESTABLE


# --- rules ---


def finding(
    rule: str, low: float, high: float, kind: str = CLAIM, df: int = 1000, scale: str = "ratio"
) -> Finding:
    """Makes a finding with about this 95% interval."""
    ends = [math.log(low), math.log(high)] if scale == "ratio" else [low, high]
    middle = (ends[0] + ends[1]) / 2
    test = t_test(middle, (ends[1] - ends[0]) / 2 / 1.9623, df)
    return Finding(kind, "a test", rule, scale, Result(test, df + 1, np.zeros(0)))


AHEAD, BEHIND = Rule("ahead", ""), Rule("behind", "")
ABOVE, BELOW = Rule("above", "", low=2), Rule("below", "", high=2)
WITHIN = Rule("within", "", low=0.9, high=1.1)


@pytest.mark.parametrize(
    ("rule", "low", "high", "expected"),
    [
        (AHEAD, 1.01, 1.2, REPRODUCED),
        (AHEAD, 0.99, 1.2, CANNOT_TELL),
        (AHEAD, 0.9, 1.005, NOT_REPRODUCED),  # not even a lead by 1% is left
        (BEHIND, 0.9, 0.99, REPRODUCED),
        (BEHIND, 0.995, 1.2, NOT_REPRODUCED),
        (BEHIND, 0.98, 1.2, CANNOT_TELL),
        (ABOVE, 2.1, 3, REPRODUCED),
        (ABOVE, 1, 1.9, NOT_REPRODUCED),
        (BELOW, 1, 1.9, REPRODUCED),
        (BELOW, 1.9, 2.1, CANNOT_TELL),
        (WITHIN, 0.95, 1.05, REPRODUCED),
        (WITHIN, 1.2, 1.5, NOT_REPRODUCED),
        (WITHIN, 0.8, 1.05, CANNOT_TELL),
        (WITHIN, 0.95, 1.102, REPRODUCED),  # two one-sided tests: the 90% interval is within
    ],
)
def test_judge(rule: Rule, low: float, high: float, expected: str) -> None:
    assert judge(rule, finding("", low, high)) == expected


def test_a_rule_with_two_margins_shows_the_interval_on_which_it_rests() -> None:
    tested = finding("", 0.95, 1.102)
    low, high = tested.interval()
    said = Part(tested, WITHIN, low, high, REPRODUCED).found()
    assert said == "1.02 (0.95 to 1.10); 90% interval 0.961 to 1.089"
    assert "90%" not in Part(tested, AHEAD, low, high, REPRODUCED).found()


def test_a_part_that_a_wider_interval_decides_shows_it() -> None:
    barely = finding("ahead", 0.8, 1.009)
    alone, of_five = (judge_claim(claim_of(), [barely] * count).parts[0] for count in (1, 5))
    assert (alone.verdict, alone.found()) == (NOT_REPRODUCED, "0.90 (0.80 to 1.01)")
    assert of_five.verdict == CANNOT_TELL
    assert re.fullmatch(r"0\.90 \(0\.80 to 1\.01\); 99% interval 0\.7\d\d to 1\.0\d\d", of_five.found())
    open_anyway = judge_claim(claim_of(), [finding("ahead", 0.9, 1.2)] * 5).parts[0]
    assert "99%" not in open_anyway.found()


@pytest.mark.parametrize(("side", "words"), zip(LIMITS, ("the first", "the second", "both"), strict=True))
def test_a_part_says_which_side_the_client_limits(side: str, words: str) -> None:
    plain = finding("ahead", 1.1, 1.2)
    assert plain.result
    limited = replace(plain, result=replace(plain.result, limited=side))
    said = Part(limited, AHEAD, 1.1, 1.2, CANNOT_TELL).found()
    assert said == f"1.15 (1.10 to 1.20); the load generator limits {words}"
    in_some = Part(replace(limited, limited_share="2 of 9 cells"), AHEAD, 1.1, 1.2, CANNOT_TELL)
    assert in_some.found() == f"{said} in 2 of 9 cells"


def needed(rule: Rule, estimate: float, spread: float, blocks: int) -> int:
    test = t_test(math.log(estimate), spread / math.sqrt(blocks), blocks - 1)
    return units_needed(rule, Finding(CLAIM, "", "", result=Result(test, blocks, np.zeros(blocks))))


def test_the_blocks_that_would_tell() -> None:
    assert judge(AHEAD, finding("", 0.95, 1.3)) == CANNOT_TELL
    for ratio, spread in ((1.1, 0.2), (1.1, 0.1), (1.05, 0.1)):
        planned = rounds_needed(spread, ratio)
        assert needed(AHEAD, ratio, spread, 4) == pytest.approx(planned, abs=2), "as power says"
    assert needed(WITHIN, 1.0, 0.2, 4) == pytest.approx((2.56 * 0.2 / math.log(1.1)) ** 2, abs=5)
    assert needed(AHEAD, 1.0001, 0.2, 4) == MOST_UNITS, "it is hardly ahead"
    assert needed(AHEAD, 3.0, 0.3, 3) == 6, "the spread of three says little"
    assert units_needed(AHEAD, replace(finding("", 0.95, 1.3), result=None)) == 0
    limited = finding("", 0.95, 1.3)
    assert limited.result
    limited = replace(limited, result=replace(limited.result, limited="both"))
    assert units_needed(AHEAD, limited) == 0, "more blocks do not make the client faster"


@pytest.mark.parametrize(
    ("rule", "low", "high", "known"),
    [
        # The verdict without a limit, and the sides that the client may limit without changing it.
        (AHEAD, 1.1, 1.2, {"numerator"}),
        (AHEAD, 0.8, 0.9, {"denominator"}),
        (BEHIND, 0.8, 0.9, {"denominator"}),
        (BEHIND, 1.1, 1.2, {"numerator"}),
        (ABOVE, 2.1, 3, {"numerator"}),
        (BELOW, 2.1, 3, {"numerator"}),
        (BELOW, 1, 1.9, {"denominator"}),
        (WITHIN, 0.95, 1.05, set()),
        (WITHIN, 1.2, 1.5, {"numerator"}),
        (WITHIN, 0.5, 0.6, {"denominator"}),
    ],
)
def test_a_verdict_does_not_rest_on_what_the_client_hides(
    rule: Rule, low: float, high: float, known: set[str]
) -> None:
    plain = finding("", low, high)
    expected = judge(rule, plain)
    assert expected != CANNOT_TELL and plain.result
    for side in LIMITS:
        limited = replace(plain, result=replace(plain.result, limited=side))
        assert judge(rule, limited) == (expected if side in known else CANNOT_TELL), side


def claim_of(*, any: bool = False, cause_needs_effect: bool = False) -> Claim:
    rules = {
        "ahead": AHEAD,
        "below": BELOW,
        "within": WITHIN,
        "none": Rule("below", "", high=0.1, strict=True),
    }
    return Claim(
        "X", any=any, cause="It is so.", cause_needs_effect=cause_needs_effect, rules=rules
    )


YES, NO, OPEN = (1.1, 1.2), (0.8, 0.9), (0.9, 1.2)


@pytest.mark.parametrize(
    ("parts", "one_is_enough", "expected"),
    [
        ([YES, YES], False, REPRODUCED),
        ([YES, OPEN], False, CANNOT_TELL),
        ([YES, OPEN, NO], False, NOT_REPRODUCED),
        ([YES, NO], True, REPRODUCED),
        ([OPEN, NO], True, CANNOT_TELL),
        ([NO, NO], True, NOT_REPRODUCED),
    ],
)
def test_parts_of_a_claim(
    parts: list[tuple[float, float]], one_is_enough: bool, expected: str
) -> None:
    findings = [finding("ahead", *part) for part in parts]
    assert judge_claim(claim_of(any=one_is_enough), findings).verdict == expected


def test_all_parts_need_no_wider_intervals_but_one_of_many_does() -> None:
    narrow = finding("ahead", 1.001, 1.2)
    assert judge_claim(claim_of(), [narrow] * 5).verdict == REPRODUCED
    assert judge_claim(claim_of(any=True), [narrow] * 5).verdict == CANNOT_TELL


def test_one_of_many_parts_that_fails_needs_a_wider_interval() -> None:
    barely = finding("ahead", 0.8, 1.009)
    assert judge_claim(claim_of(), [barely]).verdict == NOT_REPRODUCED
    assert judge_claim(claim_of(), [barely] * 5).verdict == CANNOT_TELL
    assert judge_claim(claim_of(any=True), [barely] * 5).verdict == NOT_REPRODUCED


def test_a_part_without_power_is_not_shown_and_cannot_tell() -> None:
    """A claim that needs all parts is not reproduced by the other parts, but they may refute it."""
    wide = finding("ahead", 0.1, 11)
    judged = judge_claim(claim_of(), [finding("ahead", *YES), wide])
    assert (judged.verdict, len(judged.parts)) == (CANNOT_TELL, 1)
    assert judged.note.startswith("1 part is left out")
    assert judge_claim(claim_of(any=True), [finding("ahead", *YES), wide]).verdict == REPRODUCED
    assert judge_claim(claim_of(), [finding("ahead", *NO), wide]).verdict == NOT_REPRODUCED
    alone = judge_claim(claim_of(), [wide])
    assert (alone.verdict, len(alone.parts)) == (CANNOT_TELL, 0)
    clear = judge_claim(claim_of(), [finding("ahead", 2, 22)])
    assert (clear.verdict, len(clear.parts)) == (REPRODUCED, 1)


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ({READING: YES}, CONFIRMED),
        ({READING: NO}, NOT_CONFIRMED),
        ({READING: OPEN}, CANNOT_TELL),
        ({READING: NO, READING_ASIDE: YES}, POSSIBLE),  # with another tool alone
        ({READING_ASIDE: YES}, POSSIBLE),
        ({READING: YES, READING_CONTROL: YES}, CONFIRMED),
        ({READING: YES, READING_CONTROL: NO}, POSSIBLE),  # it happens without it, too
        ({READING: NO, READING_CONTROL: YES}, NOT_CONFIRMED),
    ],
)
def test_causes(readings: dict[str, tuple[float, float]], expected: str) -> None:
    findings = [finding("ahead", *interval, kind) for kind, interval in readings.items()]
    assert judge_claim(claim_of(), findings).cause == expected


@pytest.mark.parametrize(
    ("effect", "expected"), [(YES, CONFIRMED), (NO, NOT_TESTABLE), (OPEN, CANNOT_TELL)]
)
def test_an_effect_that_is_not_there_has_no_cause(
    effect: tuple[float, float], expected: str
) -> None:
    findings = [finding("ahead", *effect), finding("ahead", *YES, READING)]
    assert judge_claim(claim_of(cause_needs_effect=True), findings).cause == expected


@pytest.mark.parametrize(
    ("count", "of", "expected"),
    [(0, 16, CANNOT_TELL), (0, 36, REPRODUCED), (1, 1000, NOT_REPRODUCED)],
)
def test_none_in_so_many_runs(count: int, of: int, expected: str) -> None:
    none = Finding(CLAIM, "none", "none", "share", count=count, of=of)
    assert judge(claim_of().rules["none"], none) == expected


def test_an_untestable_claim_says_why() -> None:
    judged = judge_claim(claim_of(), [finding("ahead", *YES)], unmet="the link has no delay")
    assert (judged.verdict, judged.note) == (NOT_TESTABLE, "the link has no delay")


# --- the texts ---


def test_every_rule_has_a_reason_and_every_test_a_claim() -> None:
    wording = read_wording()
    assert set(TESTS) <= set(wording.claims)
    for name, claim in wording.claims.items():
        assert bool(claim.rules) != bool(claim.answer), name
        assert (name in TESTS) == bool(claim.rules), name
        assert all(rule.reason for rule in claim.rules.values()), name
        assert bool(claim.needs) == bool(claim.needs_reason), name


def test_reports_and_their_claims() -> None:
    wording = read_wording()
    assert [report.name for report in wording.reports] == ["R1", "R2", "R3", "R4"]
    of_reports = [name for name in wording.claims if wording.report_of(name)]
    assert len(of_reports) == 19
    assert wording.report_of("R1.1") == "R1"
    assert wording.report_of("UNP.1") == ""


# --- claims on published runs, after a change ---


def parts(
    study: str, claim: str, folder: Path, put: Callable[[pd.DataFrame], object]
) -> pd.DataFrame:
    """Judges a claim from published runs of a study, after a change."""
    publish(study, folder)
    text = re.sub(r"(?m)^claims = .*\n", "", (folder / "study.toml").read_text())
    (folder / "study.toml").write_text(f'claims = ["{claim}"]\n{text}')
    return changed(folder, put)


def asked(study: str, claim: str, folder: Path, put: Callable[[pd.DataFrame], object]) -> str:
    """Returns the verdict on a claim from published runs of a study, after a change."""
    return verdict(parts(study, claim, folder, put), claim)


def puts(
    column: str, ratio: float, of: dict[str, str], to: dict[str, str], base: float = 40
) -> Callable[..., None]:
    """Makes one side of a comparison so many times the other one, with some noise."""

    def put(runs: pd.DataFrame) -> None:
        for side, value in ((of, base * ratio), (to, base)):
            chosen = np.logical_and.reduce([runs[name] == word for name, word in side.items()])
            assert chosen.any(), side
            noise = 1 + 0.004 * (pd.to_numeric(runs.loc[chosen, "order"]) % 5)
            runs.loc[chosen, column] = (value * noise).map("{:.4f}".format)

    return put


@pytest.mark.parametrize(
    ("study", "claim", "column", "of", "to", "good", "bad"),
    [
        ("offered-load", "OPEN.1", "p99_ms", {"offered": "90"}, {"offered": "30"}, 6.0, 1.5),
        ("anatomy", "ROAD.2", "faults", {"server": "fork"}, {"server": "thread"}, 9.0, 0.05),
        ("working-set", "PAI.2", "rps", {"server": "epoll"}, {"server": "thread"}, 0.5, 1.3),
        ("distance", "DISTANCE.1", "p50_ms", {"server": "fork"}, {"server": "thread"}, 1.0, 1.3),
        ("overload", "OVERLOAD.1", "rps", {"offered": "200"}, {"offered": "100"}, 1.0, 0.7),
        ("mixed", "MIXED.2", "p99_ms", {"readers": "20"}, {"readers": "0"}, 1.2, 4.0),
    ],
)
def test_claims_on_what_one_factor_does(
    tmp_path: Path, study: str, claim: str, column: str, of: dict[str, str], to: dict[str, str],
    good: float, bad: float,
) -> None:  # fmt: skip
    assert asked(study, claim, tmp_path / "good", puts(column, good, of, to)) == REPRODUCED
    assert asked(study, claim, tmp_path / "bad", puts(column, bad, of, to)) == NOT_REPRODUCED


@pytest.mark.parametrize(
    ("answered", "lead", "expected"),
    [(4300, 1.09, REPRODUCED), (4300, 1.02, NOT_REPRODUCED), (4000, 1.25, NOT_REPRODUCED),
     (630, 1.09, NOT_TESTABLE)],
)  # fmt: skip
def test_slow_requests_explain_a_small_lead_if_as_many_are_answered(
    tmp_path: Path, answered: float, lead: float, expected: str
) -> None:
    put = puts("rps", lead, {"server": "thread"}, {"server": "fork"}, answered)
    assert asked("weight", "WEIGHT.1", tmp_path / "weight", put) == expected


@pytest.mark.parametrize(("many", "expected"), [(1.05, REPRODUCED), (1.6, NOT_REPRODUCED)])
def test_the_requests_of_a_connection_share_its_cost(
    tmp_path: Path, many: float, expected: str
) -> None:
    def put(runs: pd.DataFrame) -> None:
        for calls, ratio in (("1", 2.5), ("100", many)):
            sides = ({"server": name, "calls": calls} for name in ("fork", "thread"))
            puts("server_cpu_us", ratio, *sides)(runs)

    assert asked("calls", "CALLS.1", tmp_path / "calls", put) == expected


@pytest.mark.parametrize(
    ("others", "of_pool", "expected"),
    [
        ("900.000", ["900.000", "900.000"], REPRODUCED),
        ("900.000", ["900.000", "never"], CANNOT_TELL),
        ("900.000", ["never", "never"], NOT_REPRODUCED),
        ("9000.000", ["9000.000", "9000.000"], NOT_REPRODUCED),
    ],
)
def test_a_server_that_recovers_late_or_never(
    tmp_path: Path, others: str, of_pool: list[str], expected: str
) -> None:
    def put(runs: pd.DataFrame) -> None:
        runs["again_ms"] = others
        for odd, time in enumerate(of_pool):
            chosen = (runs["server"] == "pool") & (pd.to_numeric(runs["block"]) % 2 == odd)
            runs.loc[chosen, "again_ms"] = time

    assert asked("recovery", "RECOVERY.1", tmp_path / "recovery", put) == expected


def test_a_time_is_judged_by_its_geometric_mean_and_told_in_its_unit(tmp_path: Path) -> None:
    def put(runs: pd.DataFrame) -> None:
        odd = pd.to_numeric(runs["block"]) % 2 == 1
        runs["again_ms"] = odd.map({True: "400.000", False: "900.000"})

    found = parts("recovery", "RECOVERY.1", tmp_path / "recovery", put)["found"]
    assert found.str.contains(r"^600 ms \([0-9.,]+ to [0-9.,]+\)$").any(), list(found)


@pytest.mark.parametrize(
    ("shared", "prefork", "expected"),
    [((0.8, 0.1), 0.02, REPRODUCED), ((0.3, 0.8), 0.02, NOT_REPRODUCED), ((0.8, 0.1), 0.4, NOT_REPRODUCED)],
)  # fmt: skip
def test_the_claim_on_the_busiest_worker_is_of_workers_with_time_to_spare(
    tmp_path: Path, shared: tuple[float, float], prefork: float, expected: str
) -> None:
    def put(runs: pd.DataFrame) -> None:
        even = 1 / pd.to_numeric(runs["workers"])
        noise = 1 + 0.004 * (pd.to_numeric(runs["order"]) % 5)
        for server, low, high in (
            ("prefork", prefork, prefork), ("pool", 0.02, 0.02), ("epoll+accept=shared", *shared)
        ):  # fmt: skip
            for load, spare in (("20", low), ("80", high)):
                chosen = (runs["server"] == server) & (runs["offered"] == load)
                share = (even + (1 - even) * spare) * noise
                runs.loc[chosen, "busiest"] = share[chosen].map("{:.4f}".format)

    assert asked("spread", "CF.1", tmp_path / "spread", put) == expected
