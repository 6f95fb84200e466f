"""Drifts that are warned of while a study runs: of ratios, and of floors."""

from __future__ import annotations

import random

import pytest

from collect.design.factors import FACTORS
from collect.measure.warn_of_drift import RatioDrift, moved_floors, tell_moved_floors

USUAL = {factor.name: factor.default for factor in FACTORS}


def block(
    drift: RatioDrift, name: str, costs: dict[str, float], cells: int = 4, valid: str = "yes"
) -> None:
    """A block of servers whose CPU per request is known."""
    for server, cost in costs.items():
        for cell in range(cells):
            measured = {"server_cpu_us": f"{cost * (cell + 1):.3f}", "valid": valid}
            drift.run({**USUAL, "server": server, "concurrency": str(cell)}, measured)
    drift.block(name)


def study(costs: list[float], noise: float = 0.02, seed: int = 7) -> RatioDrift:
    """A study whose baseline costs 100 µs, and the other server this in each block."""
    source, drift = random.Random(seed), RatioDrift("fork")
    for number, cost in enumerate(costs, 1):
        block(drift, str(number), {"fork": 100, "thread": cost * source.gauss(1, noise)})
    return drift


def test_a_drift_is_told_once_and_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    drift = study([50.0] * 8 + [65.0] * 8)
    (line,) = capsys.readouterr().err.splitlines()
    assert "warning: up to block 1" in line
    assert "the ratio thread / fork of server CPU changed by a factor of 1." in line
    drift.end()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: in this study the ratio thread / fork of server CPU changed")


def test_what_is_steady_is_no_drift(capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(50):
        study([50.0] * 32, 0.05, seed).end()
    assert capsys.readouterr().err == ""


def test_what_slows_all_servers_down_is_no_drift_of_a_ratio() -> None:
    drift = RatioDrift("fork")
    for number in range(16):
        block(drift, str(number), {"fork": 100 + 10.0 * number, "thread": 50 + 5.0 * number})
    assert drift.changes() == {}


def test_cells_that_not_every_block_has_are_left_out() -> None:
    drift = RatioDrift("fork")
    for number in range(12):
        cells = 4 if number < 2 else 2
        block(drift, str(number), {"fork": 100, "thread": 50 if cells == 2 else 45}, cells)
    assert set(drift.changes()) == set()
    for number in range(12, 20):
        block(drift, str(number), {"fork": 100, "thread": 90}, 2, "server died")
    assert drift.changes() == {}


def test_floors_that_moved(capsys: pytest.CaptureFixture[str]) -> None:
    rates = {
        ("begin", "floor-one"): [1000.0, 1000.0], ("end", "floor-one"): [1300.0, 1300.0],
        ("begin", "floor-fork"): [500.0], ("end", "floor-fork"): [510.0],
    }  # fmt: skip
    assert moved_floors(rates) == {"floor-one": pytest.approx(1.3)}
    tell_moved_floors("2", rates)
    told = capsys.readouterr().err
    assert "changed during round 2: at its end" in told
    assert "answered floor-one 1.30 times the requests/s of its beginning" in told
    tell_moved_floors("3", {("resume", "floor-one"): [1.0], ("end", "floor-one"): [2.0]})
    assert capsys.readouterr().err == ""
