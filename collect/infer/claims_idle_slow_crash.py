"""Tests of the claims about other clients: beside idle and slow ones, and after crashes."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from collect.infer.cells import Cells
from collect.infer.claim_building_blocks import by_block, found, highest, lowest, said, varies
from collect.infer.claim_verdicts import CLAIM, Finding
from collect.infer.contrast import Result, blocks_test, contrast_test, means_against
from collect.infer.statistics import Values, dispersion_of


def r1_6(data: Cells) -> list[Finding]:
    """Tests the servers of that report; the study itself tells who starves with the others."""
    if not varies(data, "slow"):
        return []
    findings = []
    for server in ("fork", "thread"):
        tested = f"{server}: longest wait of another client"
        findings += found(CLAIM, "wait", tested, _longest_wait(data, server), "ms")
    return findings


def _longest_wait(data: Cells, server: str) -> Result | None:
    """Tests the longest wait in a block, over all runs with slow clients, in milliseconds."""
    waits = data.measured("max_ms")[data.pick(server=server, slow_min=1)]

    def longest(block: int) -> float:
        known = waits[:, block][~np.isnan(waits[:, block])]
        return float(known.max()) if len(known) else np.nan

    return by_block(data, longest)


def i1(data: Cells) -> list[Finding]:
    if not varies(data, "idle"):
        return []
    findings = []
    top = highest(data, "idle")
    for server in data.subjects:
        result = _held_against_none(data, server, "rps")
        tested = f"{server}: requests/s with {said(data, 'idle', top)} / with none"
        findings += found(CLAIM, "no-slower", tested, result)
    return findings


def _held_against_none(data: Cells, server: str, measure: str) -> Result | None:
    top = data.pick(server=server, idle=highest(data, "idle"))[:1]
    base = [data.like(cell, idle=lowest(data, "idle")) for cell in top]
    cells = [*top, *(cell for cell in base if cell is not None)]
    if len(cells) != 2 or not all(data.has_data(cell, measure) for cell in cells):
        return None
    return contrast_test(data, means_against(cells[:1], cells[1:]), measure)


def i2(data: Cells) -> list[Finding]:
    if not varies(data, "idle"):
        return []
    findings = []
    for more, less in (("thread", "epoll"), ("fork", "thread")):
        difference = _memory_each(data, more) - _memory_each(data, less)
        tested = f"{more} - {less}, memory for each connection"
        findings += found(CLAIM, "more", tested, blocks_test(data, difference), "KiB")
    return findings


def _memory_each(data: Cells, server: str) -> Values:
    """Returns the memory of each connection that a server holds, in KiB, by block."""
    cells = data.pick(server=server, idle=highest(data, "idle"))
    if not cells:
        return np.full(data.blocks, np.nan)
    return np.asarray(data.measured("each_kib")[cells[0]])


def _crashes(data: Cells, servers: str, least: int) -> list[tuple[str, pd.DataFrame]]:
    """Returns the valid runs of each server of these names, from this concurrency on."""
    valid = data.valid_runs[data.column("concurrency", data.valid_runs) >= least]
    names = [server for server in data.subjects if re.match(servers, server)]
    runs_of = [(name, valid[valid["server"] == name]) for name in names]
    return [(name, runs) for name, runs in runs_of if len(runs)]


def c1(data: Cells) -> list[Finding]:
    findings = []
    for server, runs in _crashes(data, "fork|prefork", 2):
        count = int((data.column("lost", runs) > 0).sum())
        tested = f"{server}: runs in which another client lost a request, concurrency above 1"
        findings.append(Finding(CLAIM, tested, "none", "share", count=count, of=len(runs)))
    return findings


def c2(data: Cells) -> list[Finding]:
    findings = []
    for server, runs in _crashes(data, "thread|pool|iterative", 1):
        count = int((runs["again_ms"] == "never").sum())
        tested = f"{server}: runs in which nobody was served again"
        findings.append(Finding(CLAIM, tested, "all", "share", count=count, of=len(runs)))
    return findings


def c3(data: Cells) -> list[Finding]:
    """Counts the requests that others lost with an event loop: one crash takes many together."""
    top = highest(data, "concurrency")
    findings = []
    for server in data.subjects:
        if not server.startswith("epoll"):
            continue
        valid = data.valid_runs
        runs = valid[(valid["server"] == server) & (valid["concurrency"] == top)]
        lost = data.column("lost", runs).dropna()
        if len(lost) >= 2:
            tested = f"{server}: requests lost with one crash, concurrency {top}"
            count, of, clumped = int(lost.sum()), len(lost), dispersion_of(lost)
            findings.append(Finding(CLAIM, tested, "many", "requests", None, count, of, clumped))
    return findings


TESTS = {"R1.6": r1_6, "I1": i1, "I2": i2, "C1": c1, "C2": c2, "C3": c3}
