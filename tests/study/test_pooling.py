"""Pooling of several studies of one claim; and the number of rounds for a wanted power."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pandas as pd
import pytest
from synthetic import invent

from collect.infer.analyse_results import analyse
from collect.infer.claim_verdicts import CANNOT_TELL, CONFIRMED, NOT_REPRODUCED, REPRODUCED
from collect.infer.claims_file import read_wording
from collect.infer.judge_claims import judge_study
from collect.infer.pooling import pool, pool_claims
from collect.infer.power import advice, difference_told, power_of, rounds_needed
from collect.infer.read_results import read_cells
from collect.tables import read_table, write_table


def test_studies_that_agree() -> None:
    pooled = pool([0.1, 0.1, 0.1], [0.01, 0.01, 0.01])
    assert pooled.test.estimate == pytest.approx(0.1)
    assert pooled.tau == pytest.approx(0, abs=1e-6)
    assert pooled.heterogeneity == 0
    assert pooled.test.error == pytest.approx(0.01 / math.sqrt(3))


def test_two_studies_have_the_freedom_of_their_errors() -> None:
    normal = pool([0.1, 0.1], [0.01, 0.01]).test
    few = pool([0.1, 0.1], [0.01, 0.01], [3, 3]).test
    assert few.df == pytest.approx(6)
    assert few.low < normal.low < normal.high < few.high
    assert pool([0.1, 0.1], [0.01, 1.0], [3, 50]).test.df == pytest.approx(3, rel=0.01)
    assert pool([0.1] * 3, [0.01] * 3, [9] * 3).test.df == 2, "three tell their own spread"


def test_the_spread_of_two_studies_has_one_degree_of_freedom() -> None:
    # Errors of 0.01 say nothing of the spread: the interval is that of two single values.
    far = pool([0.0, 1.0], [0.01, 0.01], [10, 10])
    assert math.isclose(far.test.df, 1, rel_tol=0.01)
    low, high = far.test.interval()
    assert math.isclose((high - low) / 2, 12.7 * 0.5, rel_tol=0.02)
    # Without a spread it has the freedom of the errors.
    assert math.isclose(pool([0.0, 0.01], [0.1, 0.1], [10, 10]).test.df, 20)


def test_studies_that_differ() -> None:
    pooled = pool([0.0, 0.1, 0.2, 0.3], [0.01] * 4)
    assert pooled.test.estimate == pytest.approx(0.15)
    # Equal errors: the spread is that of the estimates, less the errors: var(0, .1, .2, .3) - 1e-4
    assert pooled.tau**2 == pytest.approx(0.1**2 * 5 / 3 - 1e-4, rel=1e-3)
    assert pooled.q_p < 0.0001
    low, high = pooled.prediction()
    assert low < pooled.test.low < pooled.test.high < high


def test_the_worked_example_of_a_known_analysis() -> None:
    """BCG vaccine against tuberculosis: the 13 trials of Colditz and others (1994).

    The method of Paule and Mandel gives tau^2 = 0.3181, a log-ratio of -0.7150 and its standard
    error 0.1809.
    """
    tables = [
        (4, 119, 11, 128), (6, 300, 29, 274), (3, 228, 11, 209), (62, 13536, 248, 12619),
        (33, 5036, 47, 5761), (180, 1361, 372, 1079), (8, 2537, 10, 619), (505, 87886, 499, 87892),
        (29, 7470, 45, 7232), (17, 1699, 65, 1600), (186, 50448, 141, 27197),
        (5, 2493, 3, 2338), (27, 16886, 29, 17825),
    ]  # fmt: skip
    effects, errors = [], []
    for ill, well, ill_without, well_without in tables:
        n, m = ill + well, ill_without + well_without
        effects.append(math.log(ill / n) - math.log(ill_without / m))
        errors.append(math.sqrt(1 / ill - 1 / n + 1 / ill_without - 1 / m))
    pooled = pool(effects, errors)
    assert pooled.test.estimate == pytest.approx(-0.7150, abs=1e-3)
    assert pooled.test.error == pytest.approx(0.1809, abs=2e-3)
    assert pooled.tau**2 == pytest.approx(0.3181, abs=2e-3)


def tables_of(top: Path, **studies: dict[str, object]) -> dict[str, pd.DataFrame]:
    return {
        name: judge_study(read_cells(invent(top / name, **options)))
        for name, options in studies.items()
    }


def test_a_claim_of_two_studies_is_pooled_and_not_counted(tmp_path: Path) -> None:
    kind = {"kind": "classroom-proxy", "blocks": 4}
    tables = tables_of(tmp_path, one=kind, other=kind | {"seed": 2})
    claim = pool_claims(tables, read_wording())["R2.3"]
    assert claim.studies == ("one", "other")
    assert (claim.judged.verdict, claim.judged.cause) == (REPRODUCED, CONFIRMED)
    assert len(claim.judged.parts) == 4 == len(claim.pooled)
    assert all(pooled.studies == 2 for pooled in claim.pooled.values())
    tested = claim.judged.parts[0].finding.tested
    one, other = (
        float(t[t["tested"].str.startswith(tested)]["estimate"].iloc[0]) for t in tables.values()
    )
    middle = claim.pooled[tested].test.estimate
    assert min(one, other) <= middle <= max(one, other)


def test_two_studies_that_lie_far_apart_and_agree(tmp_path: Path) -> None:
    one = tables_of(tmp_path, one={"kind": "classroom-proxy", "blocks": 4})["one"]
    other = one.copy()
    mine = (one["claim"] == "R2.3") & one["part"].str.isdigit()
    signs = pd.to_numeric(one.loc[mine, "estimate"]).apply(lambda value: math.copysign(1, value))
    other.loc[mine, "estimate"] = [str(v) for v in signs + pd.to_numeric(one.loc[mine, "estimate"])]
    both = pool_claims({"one": one, "other": other}, read_wording())["R2.3"]
    assert (both.judged.verdict, both.each_alone) == (REPRODUCED, True)
    # One of the two does not come to that verdict by itself.
    other.loc[(one["claim"] == "R2.3") & (one["part"] == "all"), "verdict"] = NOT_REPRODUCED
    both = pool_claims({"one": one, "other": other}, read_wording())["R2.3"]
    assert (both.judged.verdict, both.each_alone) == (CANNOT_TELL, False)


def test_counts_are_added(tmp_path: Path) -> None:
    kind = {"kind": "udp", "blocks": 2}
    tables = tables_of(tmp_path, one=kind, other=kind | {"seed": 2})
    claim = pool_claims(tables, read_wording())["U2"]
    assert claim.judged.verdict == NOT_REPRODUCED
    assert [(p.finding.count, p.finding.of) for p in claim.judged.parts] == [(4, 12), (4, 12)]


def test_a_study_that_cannot_test_a_claim_does_not_count(tmp_path: Path) -> None:
    near, far = ({"kind": "classroom-download", "blocks": 4} for _ in range(2))
    tables = tables_of(tmp_path, far=far)
    folder = invent(tmp_path / "near", **near)
    (folder / "machine.tsv").write_text("link\t20mbit, no delay\n")
    tables["near"] = judge_study(read_cells(folder))
    claim = pool_claims(tables, read_wording())["R2.4"]
    assert claim.judged.verdict == REPRODUCED
    assert not claim.pooled


def test_rounds_needed() -> None:
    # By the noncentral t distribution 10.72 rounds; in 200,000 invented samples 10 rounds have a
    # power of 0.77 and 11 of 0.81.
    assert rounds_needed(0.1) == 11
    # The same with a spread of 0.05: 4.41; 4 rounds have 0.72 and 5 have 0.88.
    assert rounds_needed(0.05) == 5
    assert rounds_needed(0) == 3
    assert rounds_needed(5) == 1000
    assert difference_told(0.1, 11) == pytest.approx(1.1, abs=0.003)


def test_an_earlier_study_says_how_many_rounds(tmp_path: Path) -> None:
    folder = invent(tmp_path / "earlier/machine", blocks=4, concurrency=3)
    analyse(folder)
    found = power_of(folder)
    assert [(p.measure, p.server, p.unit) for p in found] == [
        ("rps", "thread", "block"),
        ("server_cpu_us", "thread", "block"),
    ]
    assert all(3 <= p.rounds < 10 for p in found)
    assert "rounds tell a difference of 10% (thread / fork, requests/s: spread" in found[0].text()
    assert advice("earlier", tmp_path).startswith("earlier: at least ")
    assert advice("nosuch", tmp_path) == ""
    table = read_table(folder / "comparisons.tsv")
    for row, t in zip((row for row in table.rows if row["scope"] != "cell"), itertools.cycle("-0")):
        row["t"] = t
    write_table(folder / "comparisons.tsv", table.columns, table.rows)
    assert power_of(folder) == [] and advice("earlier", tmp_path) == ""
