"""Makes the plan of a study: its cells, and the order of the runs, shuffled in each block."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from collect.design.factors import FOR_A_TIME, HOLDING, NAMES, WORK_KINDS
from collect.design.study import Study
from collect.project import fail

Cell = dict[str, str]


@dataclass(frozen=True)
class Impossible:
    """Cells that cannot be measured, and why."""

    why: str
    applies: Callable[[Mapping[str, str]], bool]


def _may_ask_a_proxy(cell: Mapping[str, str]) -> bool:
    """wrk does not say how often it asked: a hit or a miss could not be told."""
    loads = ("ab", "wrk") if cell["service"] == "proxy-revalidation" else ("ab",)
    return cell["scheme"] == "http" and cell["load"] in loads


def _is_proxy(cell: Mapping[str, str]) -> bool:
    return cell["service"].startswith("proxy-")


def _has_wrong_parity(cell: Mapping[str, str]) -> bool:
    if not _is_proxy(cell):
        return False
    digits = "02468" if cell["service"] == "proxy-miss" else "13579"
    name = cell["file"]
    return not (name.isdigit() and name[-1] in digits)


IMPOSSIBLE = (
    Impossible(
        "ab cannot have more connections at once than requests",
        lambda c: c["load"] == "ab" and int(c["concurrency"]) > int(c["requests"]),
    ),
    Impossible(
        "ab, the witness and the open loop have no calls per connection; take httperf",
        lambda c: c["load"] in ("ab", "witness", "open") and c["calls"] != "1",
    ),
    Impossible(
        "the witness has a connection for each request",
        lambda c: c["load"] == "witness" and c["keepalive"] == "on",
    ),
    Impossible(
        "a surge comes before the load `open`, and is a share of what the server can answer",
        lambda c: c["surge"] != "0" and (c["load"] != "open" or c["offered"] == "-"),
    ),
    Impossible(
        "only the open loop mixes requests",
        lambda c: c["mixed"] != "0" and c["load"] != "open",
    ),
    Impossible(
        "only the witness and the open loop speak UDP",
        lambda c: c["scheme"] == "udp" and c["load"] not in ("witness", "open"),
    ),
    Impossible(
        "only the witness and the open loop resume sessions",
        lambda c: c["scheme"] == "https"
        and c["sessions"] == "resumed"
        and c["load"] not in ("witness", "open"),
    ),
    Impossible(
        "of idle clients, slow ones and slow readers one kind alone is held at a time",
        lambda c: sum(c[name] != "0" for name in HOLDING) > 1,
    ),
    Impossible(
        "slow readers read a document of the service files",
        lambda c: c["readers"] != "0" and c["service"] != "files",
    ),
    Impossible(
        "a proxy finds odd sizes in its cache and even ones never: proxy-hit and "
        "proxy-revalidation go with the first, proxy-miss with the others",
        _has_wrong_parity,
    ),
    Impossible(
        f"the service work, and no other, has the documents {' '.join(WORK_KINDS)}",
        lambda c: (c["service"] == "work") != (c["file"] in WORK_KINDS),
    ),
    Impossible(
        "a proxy is asked over http: by ab or, with proxy-revalidation, by wrk",
        lambda c: _is_proxy(c) and not _may_ask_a_proxy(c),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Cells:
    """The cells of a study, the number of blocks of each, and what was left out and why."""

    blocks: dict[tuple[str, ...], int]
    left_out: dict[str, int]


def _allowed(study: Study, cell: Cell) -> bool:
    return all(where.only.matches(cell) for where in study.where if where.when.matches(cell))


def _applying(study: Study, cell: Cell) -> tuple[str, ...]:
    """The values of a cell, with `-` for a factor that does not apply to it.

    wrk and the open loop run for a time, and httperf at a concurrency above 1 opens that many
    connections at once and no more: none has a number of requests. Only HTTPS has a certificate and
    sessions, only the service `work` an amount, only the open loop a deadline and, where the study
    has no rate, an offered load, and only a link a round trip.
    """
    values = dict(cell)
    if not study.link:
        values["round_trip"] = "-"
    at_once = cell["load"] == "httperf" and cell["concurrency"] != "1"
    if cell["load"] in FOR_A_TIME or at_once:
        values["requests"] = "-"
    if cell["scheme"] != "https":
        values["certificate"] = values["sessions"] = "-"
    if cell["service"] != "work":
        values["amount"] = "-"
    if cell["load"] != "open" or study.rate:
        values["offered"] = "-"
    if cell["load"] != "open":
        values["deadline"] = "-"
    return tuple(values[name] for name in NAMES)


def _combinations(study: Study) -> Iterator[Cell]:
    for values in itertools.product(*(study.levels[name] for name in NAMES)):
        yield dict(zip(NAMES, values, strict=True))


def cells_of(study: Study, processors: int, memory: float = math.inf) -> Cells:
    """Finds the cells of a study on a machine with these processors, and memory in MiB."""
    too_many = Impossible(
        f"this machine has {processors} processors",
        lambda c: c["processors"] != "all" and int(c["processors"]) > processors,
    )
    too_large = Impossible(
        f"this machine has {memory:,.0f} MiB of memory, of which a ballast may take three quarters",
        lambda c: float(c["ballast"]) > 0.75 * memory,
    )
    impossible = (*IMPOSSIBLE, too_many, too_large)
    cells = Cells({}, {})
    for cell in _combinations(study):
        if not _allowed(study, cell):
            continue
        why = next((rule.why for rule in impossible if rule.applies(cell)), "")
        if why:
            cells.left_out[why] = cells.left_out.get(why, 0) + 1
            continue
        limits = [limit.first for limit in study.limits if limit.when.matches(cell)]
        key = _applying(study, cell)
        blocks = min([study.repetitions, *limits])
        cells.blocks[key] = max(blocks, cells.blocks.get(key, 0))
    if not cells.blocks:
        fail(f"study: {next(iter(cells.left_out), 'no cell exists')}: no cell is left", 2)
    return cells


def check_baseline(study: Study) -> None:
    """Fails where the baseline is none of the servers."""
    if study.baseline and study.baseline not in study.levels["server"]:
        fail(f"study: baseline: {study.baseline} is none of the servers", 2)


def check_commands(study: Study, cells: Cells) -> None:
    """Fails where a server with a command would be asked otherwise than by HTTP: the study can set
    up neither its certificate nor another protocol."""
    for key in cells.blocks:
        cell = dict(zip(NAMES, key, strict=True))
        if cell["server"] in study.commands and cell["scheme"] != "http":
            fail(
                f"study: servers: `{cell['server']}` has a command, and such a server is measured "
                f"over http alone, not over {cell['scheme']}",
                2,
            )


def check_ballast(study: Study, is_ours: Callable[[str], bool]) -> None:
    """Fails where a server would have to hold memory that only ours can hold. The floors are left
    as they are: they are no servers that grow."""
    if study.levels["ballast"] == ("0",):
        return
    for server in study.levels["server"]:
        if server in study.commands or not is_ours(server):
            fail(f"study: servers: `{server}` cannot hold a ballast: only our servers can", 2)


def check_workers(study: Study, has_workers: Callable[[str], bool]) -> None:
    """Fails where a server would be told a number of workers and has none."""
    if study.levels["worker_count"] == ("auto",):
        return
    for server in study.levels["server"]:
        if server in study.commands or not has_workers(server):
            fail(f"study: servers: `{server}` has no number of workers", 2)


def check_servers(study: Study, cells: Cells) -> None:
    """Fails where a server has no cell: the report would answer as if it had not been named."""
    left = {key[NAMES.index("server")] for key in cells.blocks}
    for server in study.levels["server"]:
        if server not in left and server != "all":
            why = "[[where]] leaves none" if study.where else next(iter(cells.left_out), "")
            fail(f"study: servers: `{server}` has no cell: {why}", 2)


def _shuffled(study: Study, block: int, keys: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    order = list(keys)
    random.Random(f"{study.seed} {block}").shuffle(order)
    return order


def plan_sitting(study: Study, cells: Cells) -> list[dict[str, str]]:
    """The runs of one sitting: all blocks of the study, in one round."""
    rows: list[dict[str, str]] = []
    for block in range(1, study.repetitions + 1):
        keys = [key for key, blocks in cells.blocks.items() if block <= blocks]
        rows += _block_rows(study, keys, block, 1, len(rows) + 1)
    return rows


def plan_round(study: Study, cells: Cells, number: int, first_run: int) -> list[dict[str, str]]:
    """The runs of a round of a campaign: some blocks, whose numbers go on from round to round.

    Cells that are limited to the first N blocks of a sitting are in the first block of the first
    N rounds.
    """
    rows: list[dict[str, str]] = []
    for index in range(study.round_blocks):
        block = (number - 1) * study.round_blocks + index + 1
        keys = [
            key
            for key, blocks in cells.blocks.items()
            if blocks >= study.repetitions or (index == 0 and number <= blocks)
        ]
        rows += _block_rows(study, keys, block, number, first_run + len(rows))
    return rows


def _block_rows(
    study: Study, keys: list[tuple[str, ...]], block: int, number: int, first_run: int
) -> list[dict[str, str]]:
    return [
        {
            "run": str(first_run + place),
            "round": str(number),
            "block": str(block),
            "order": str(place + 1),
            **dict(zip(NAMES, key, strict=True)),
        }
        for place, key in enumerate(_shuffled(study, block, keys))
    ]
