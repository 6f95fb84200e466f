"""The runs of a study as cells (combinations of all factors) by blocks, and the study's parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from collect.design.factors import SPLITTING, choose_axis
from collect.design.study import Study
from collect.histogram import Histogram, add, quantile
from collect.infer.round_floors import ASKED, CONNECTIONS, floor_by_round
from collect.infer.statistics import Values

# Studies of the other kinds compare each server with itself: they ask what happens to other
# clients, or afterwards.
ORDINARY, HELD, FAULT, SURGE = "", "held", "fault", "surge"

NUMBER = re.compile(r"[0-9.]+")
PEER = re.compile(r"(nginx|lighttpd|apache-(prefork|worker|event)|squid|trafficserver)(~[0-9]+)?")
CLIENT_BUSY = 0.90  # of a processor: a busier client limits a cell without a floor
PERCENTILES = {"p50_ms": 0.50, "p95_ms": 0.95, "p99_ms": 0.99}
CEILING = "floor-one"  # a server that does nothing
CEILING_ABOVE = 1.10  # the client limits a cell where the ceiling is not this much faster


def is_number(text: str) -> bool:
    return NUMBER.fullmatch(text) is not None


def is_peer(server: str) -> bool:
    return PEER.fullmatch(server) is not None


def is_floor(server: str) -> bool:
    return server.startswith("floor-")


def cannot_hold(valid: str) -> bool:
    """Returns true if an invalid run shows what its server cannot do."""
    return valid.startswith("cannot hold: ")


def held_at_most(runs: pd.DataFrame) -> Values:
    """Returns how many connections were held by each run with "cannot hold: 8 of 100": 8."""
    held = runs["valid"].str.extract(r"^cannot hold: (\d+) of \d+$", expand=False)
    return np.asarray(held.dropna(), dtype=float)


@dataclass(frozen=True)
class Part:
    """A part of a study: its cells, the values of its factors, its x axis and its baseline."""

    number: int
    cells: tuple[int, ...]
    levels: dict[str, list[str]]
    x_name: str
    baseline: str
    kind: str
    words: tuple[str, ...]  # the factors that tell this part from the others

    @property
    def x_words(self) -> str:
        """The name of the x axis within a sentence."""
        return self.x_name.replace("_", " ")

    @property
    def subjects(self) -> list[str]:
        return subjects_of(self.levels["server"], self.baseline)


def subjects_of(servers: Sequence[str], baseline: str) -> list[str]:
    """Returns the servers that a study is about.

    Beside two others, the server that does nothing is the ceiling of the client, and no subject.
    """
    others = [server for server in servers if server != CEILING]
    alone = len(others) > 1 and not any(is_floor(server) for server in others)
    return others if alone and baseline != CEILING else list(servers)


@dataclass
class Cells:
    """All believed runs of a study. Cells are numbered in the order of the study, from 0."""

    study: Study
    factors: list[str]
    runs: pd.DataFrame  # believed runs, all columns as text, `cell` and `block_number` added
    disbelieved: int
    machine: dict[str, str] = field(default_factory=dict)
    calibration: pd.DataFrame | None = None  # the floors of each round
    capacity: pd.DataFrame | None = None  # the closed loops that found the capacities
    histograms: Mapping[str, Histogram] = field(default_factory=dict)  # by run
    levels: dict[str, list[str]] = field(init=False)
    keys: list[tuple[str, ...]] = field(init=False)
    blocks: int = field(init=False)
    last_block: list[int] = field(init=False)
    round_of_block: list[int] = field(init=False)  # of the first block, the second, ...
    round_numbers: list[int] = field(init=False)  # as the plan numbers them
    baseline: str = field(init=False)
    x_name: str = field(init=False)
    kind: str = field(init=False)

    def __post_init__(self) -> None:
        self.levels = {name: self._sorted_levels(name) for name in self.factors}
        rank = {
            name: {value: i for i, value in enumerate(values)}
            for name, values in self.levels.items()
        }
        key_of_run = list(self.runs[self.factors].itertuples(index=False, name=None))
        self.keys = sorted(
            set(key_of_run),
            key=lambda key: [rank[n][v] for n, v in zip(self.factors, key, strict=True)],
        )
        self._at = {key: i for i, key in enumerate(self.keys)}
        self._place = {name: i for i, name in enumerate(self.factors)}
        self.runs["cell"] = [self._at[key] for key in key_of_run]
        self.runs["block_number"] = self.runs["block"].astype(int)
        self.blocks = int(self.runs["block_number"].max())
        last = self.runs.groupby("cell")["block_number"].max()
        self.last_block = [int(last[c]) for c in range(len(self.keys))]
        self.round_of_block = self._rounds()
        self.x_name = choose_axis(self.levels)
        servers = self.levels["server"]
        self.baseline = self.study.baseline if self.study.baseline in servers else servers[0]
        self.kind = self._kind(self.x_name)

    @cached_property
    def cpu_words(self) -> str:
        """Names server CPU by its unit: a connection of one request costs more than a request."""
        alone = self.levels["keepalive"] == ["off"] and self.levels["calls"] == ["1"]
        is_connection = alone and "udp" not in self.levels["scheme"]
        return f"server CPU per {'connection of one request' if is_connection else 'request'}"

    def _sorted_levels(self, name: str) -> list[str]:
        """Orders the values of a factor: as the study lists them, else as numbers, else by name."""
        listed = self.study.levels[name] if name in ("server", "file") else ()
        rank = {value: i for i, value in enumerate(listed)}
        values = list(dict.fromkeys(self.runs[name]))
        numeric = all(v == "-" or is_number(v) for v in values)

        def key(value: str) -> tuple[int, float, str]:
            if value in rank:
                return 0, rank[value], ""
            if numeric:  # a number that is not set comes before all others
                return 0, 0.0 if value == "-" else float(value), ""
            return 1, 0, value

        return sorted(values, key=key)

    def _kind(self, x_name: str) -> str:
        if self.study.fault:
            return FAULT
        if any(value != "0" for value in self.levels.get("surge", [])):
            return SURGE
        return HELD if x_name in ("idle", "slow") and not self.study.fresh else ORDINARY

    # --- cells ---

    @property
    def count(self) -> int:
        return len(self.keys)

    def value(self, cell: int, factor: str) -> str:
        return self.keys[cell][self._place[factor]]

    def like(self, cell: int, **changes: str) -> int | None:
        """Returns the cell that differs from this one in these factors alone, or None."""
        key = list(self.keys[cell])
        for name, value in changes.items():
            if name in self._place:
                key[self._place[name]] = value
        return self._at.get(tuple(key))

    @cached_property
    def _servers_at(self) -> dict[tuple[str, ...], dict[str, int]]:
        """The cells of each combination of the factors but the server, by server."""
        at: dict[tuple[str, ...], dict[str, int]] = {}
        for cell, key in enumerate(self.keys):
            at.setdefault(key[1:], {})[key[0]] = cell
        return at

    def by_server(self, cells: Iterable[int]) -> list[dict[str, int]]:
        """Returns, for each combination of other factors in these cells, its cells by server."""
        rests = dict.fromkeys(self.keys[cell][1:] for cell in cells)
        return [self._servers_at[rest] for rest in rests]

    def is_other(self, server: str) -> bool:
        """Returns true for a server that is none of this project: a peer, or one with a command."""
        return is_peer(server) or server.partition("~")[0] in self.study.commands

    # --- what was measured ---

    @cached_property
    def valid_runs(self) -> pd.DataFrame:
        return self.runs[self.runs["valid"] == "yes"]

    def column(self, name: str, runs: pd.DataFrame | None = None) -> pd.Series[float]:
        """Returns a column of the runs as numbers; NaN where there is none."""
        runs = self.runs if runs is None else runs
        if name not in runs:
            return pd.Series(np.nan, index=runs.index)
        return pd.to_numeric(runs[name], errors="coerce")

    @cached_property
    def _samples(self) -> tuple[pd.DataFrame, dict[int, list[int]]]:
        """The valid runs as numbers, and the rows of each cell."""
        runs = self.valid_runs
        rows = {int(c): list(at) for c, at in runs.groupby("cell").indices.items()}
        names = [name for name in runs if name not in (*self.factors, "valid")]
        return runs[names].apply(pd.to_numeric, errors="coerce"), rows

    def sample(self, cell: int, name: str) -> Values:
        """Returns the values of the valid runs of a cell, without missing ones."""
        numbers, rows = self._samples
        if name not in numbers:
            return np.empty(0)
        values = numbers[name].to_numpy(dtype=float)[rows.get(cell, [])]
        return np.asarray(values[~np.isnan(values)])

    def unit_sample(self, cell: int, name: str) -> Values:
        """Returns the mean of each round over the valid runs of a cell; of a study in one round
        their values."""
        numbers, rows = self._samples
        mine = numbers.iloc[rows.get(cell, [])]
        if self.rounds == 1 or name not in numbers or mine.empty:
            return self.sample(cell, name)
        rounds = [self.round_of_block[int(block) - 1] for block in mine["block_number"]]
        return np.asarray(mine[name].groupby(rounds).mean().dropna())

    def measured(self, name: str) -> Values:
        """Returns the positive values of valid runs, cells by blocks; NaN where there is none."""
        cache: dict[str, Values] = self.__dict__.setdefault("_measured", {})
        if name not in cache:
            table = np.full((self.count, self.blocks), np.nan)
            numbers = self.column(name, self.valid_runs).to_numpy()
            good = numbers > 0
            table[
                self.valid_runs["cell"].to_numpy()[good],
                self.valid_runs["block_number"].to_numpy()[good] - 1,
            ] = numbers[good]
            cache[name] = table
        return cache[name]

    def logarithms(self, name: str) -> Values:
        cache: dict[str, Values] = self.__dict__.setdefault("_logarithms", {})
        if name not in cache:
            cache[name] = np.log(self.measured(name))
        return cache[name]

    # --- the units of replication: rounds, or blocks where there was one round ---

    def _rounds(self) -> list[int]:
        """Returns the round of each block, counted from 0; sets `round_numbers` to the plan's."""
        self.round_numbers = [1]
        if "round" not in self.runs:
            return [0] * self.blocks
        of_block = self.runs.drop_duplicates("block_number").set_index("block_number")["round"]
        numbers = [int(of_block.get(block, 1)) for block in range(1, self.blocks + 1)]
        self.round_numbers = sorted(set(numbers))
        return [self.round_numbers.index(number) for number in numbers]

    @property
    def rounds(self) -> int:
        return max(self.round_of_block) + 1

    @property
    def unit(self) -> str:
        """Returns the unit of replication: rounds, or the blocks of one sitting."""
        return "round" if self.rounds > 1 else "block"

    @property
    def units(self) -> int:
        return self.rounds if self.rounds > 1 else self.blocks

    def by_unit(self, blocks: Values) -> Values:
        """Returns the means of rounds of a table whose last axis is blocks; NaN for none.

        Of a study in one round the blocks are left as they are.
        """
        if self.rounds == 1:
            return blocks
        known = ~np.isnan(blocks)
        member = np.equal.outer(self.round_of_block, range(self.rounds)).astype(float)
        count = known @ member
        total = np.where(known, blocks, 0) @ member
        return np.where(count > 0, total / np.maximum(count, 1), np.nan)

    def unit_logarithms(self, name: str) -> Values:
        """Returns the logarithms of a measure, cells by units: means of the blocks of a round.

        A percentile of a round is that of all its requests together, where runs have histograms.
        """
        cache: dict[str, Values] = self.__dict__.setdefault("_unit_logarithms", {})
        if name not in cache:
            pooled = self.pools(name)
            blocks = self.logarithms(name)
            cache[name] = (
                np.log(self._pooled(PERCENTILES[name])) if pooled else self.by_unit(blocks)
            )
        return cache[name]

    def pools(self, name: str) -> bool:
        """Returns true if a measure of a round is that of all its requests together."""
        return self.rounds > 1 and name in PERCENTILES and bool(self.histograms)

    def _pooled(self, share: float) -> Values:
        """Returns a percentile of the requests of all valid runs of a cell in a round."""
        table = np.full((self.count, self.rounds), np.nan)
        rounds = self.valid_runs["block_number"].map(lambda block: self.round_of_block[block - 1])
        for (cell, number), runs in self.valid_runs.groupby(["cell", rounds]):
            known = [self.histograms[run] for run in runs["run"] if run in self.histograms]
            table[cell, number] = quantile(add(known), share)
        return table

    def _last_unit(self, cell: int) -> int:
        last = self.last_block[cell]
        return self.round_of_block[last - 1] + 1 if self.rounds > 1 else last

    def has_data(self, cell: int, measure: str) -> bool:
        """Returns true if a cell has valid runs with this measure in two units."""
        cache: dict[str, list[bool]] = self.__dict__.setdefault("_known", {})
        if measure not in cache:
            known = ~np.isnan(self.unit_logarithms(measure))
            cache[measure] = list(np.count_nonzero(known, axis=1) >= 2)
        return cache[measure][cell]

    def in_first_blocks(self, cell: int) -> bool:
        """Returns true if a cell is in the first units alone.

        The last one may be missing in any cell, if the study was interrupted.
        """
        return self._last_unit(cell) < self.units - 1

    def common_units(self, cells: Iterable[int]) -> int:
        """Returns how many units, from the first, count for a contrast of these cells."""
        limited = (self._last_unit(cell) for cell in cells if self.in_first_blocks(cell))
        return min(limited, default=self.units)

    def ceiling(self, cell: int) -> float:
        """Returns the rate of a server that does nothing over that of a cell; NaN if unknown.

        Both are taken in the same blocks, or, where the study has no such server, in the same
        rounds. NaN for an open loop, which does not ask for all that a server can do.
        """
        if self._is_open(cell):
            return float("nan")
        floor = self._ceiling_of(cell)
        if floor is not None:
            logs = self.logarithms("rps")
            above = logs[floor] - logs[cell]
        elif self._is_calibrated(cell):
            above = self._floors - self.unit_logarithms("rps")[cell]
        else:
            return float("nan")
        known = above[~np.isnan(above)]
        return float(np.exp(known.mean())) if len(known) else float("nan")

    def _ceiling_of(self, cell: int) -> int | None:
        """Returns the cell of a server that does nothing and is asked for the same document.

        The client cannot see how the server gets the document (`service`).
        """
        ceilings = (self.like(cell, server=CEILING, service=s) for s in self.levels["service"])
        return next((found for found in ceilings if found is not None), None)

    @cached_property
    def _floors(self) -> Values:
        assert self.calibration is not None
        return floor_by_round(self.calibration, self.round_numbers, "rps")

    def _is_calibrated(self, cell: int) -> bool:
        """Returns true if a cell is asked as the floors are, with as many connections or more."""
        if self.calibration is None or self.calibration.empty or self._is_elsewhere:
            return False
        alike = all(self.value(cell, name) == value for name, value in ASKED.items())
        return alike and int(self.value(cell, "concurrency")) >= CONNECTIONS

    @property
    def _is_elsewhere(self) -> bool:
        """Returns true if the load was not on the loopback of the server's machine."""
        return bool(self.study.link or self.study.load_hosts)

    @cached_property
    def _load_busy(self) -> Values:
        """Returns the share of the time for which each client was busy; NaN if unknown."""
        load = self.measured("load_cpu")
        count = np.count_nonzero(~np.isnan(load), axis=1)
        return np.where(count > 0, np.nansum(load, axis=1) / np.maximum(count, 1), np.nan)

    @cached_property
    def _ceilings(self) -> Values:
        return np.array([self.ceiling(cell) for cell in range(self.count)])

    @property
    def subjects(self) -> list[str]:
        return subjects_of(self.levels["server"], self.study.baseline)

    def is_ceiling(self, cell: int) -> bool:
        """Returns true if a cell is the ceiling of the client, by which others are judged."""
        return self.value(cell, "server") == CEILING

    def client_bound(self, cell: int) -> bool:
        """Returns true if the client limits a cell.

        That is where a server that does nothing is not at least 10% faster in the same block (or
        round). Where none was measured, it is where the client is busy for 90% of the time. An
        open loop says itself that it was too slow; but the closed loop that found the capacity may
        have been the limit.
        """
        return self._client_bound[cell]

    @cached_property
    def _client_bound(self) -> list[bool]:
        return [self._judge_client(cell) for cell in range(self.count)]

    def _judge_client(self, cell: int) -> bool:
        if self.is_ceiling(cell):
            return False
        if self._is_open(cell):
            return self._capacity_is_clients(cell)
        above = self._ceilings[cell]
        return bool(
            self._load_busy[cell] > CLIENT_BUSY if np.isnan(above) else above < CEILING_ABOVE
        )

    def _is_open(self, cell: int) -> bool:
        return self.value(cell, "load") == "open"

    def _capacity_is_clients(self, cell: int) -> bool:
        """Returns true if the client was busy when it measured the capacity of a cell's server."""
        if self.capacity is None:
            return False
        names = [name for name in self.factors if name in self.capacity]
        values = [self.value(cell, name) for name in names]
        mine = self.capacity[(self.capacity[names] == values).all(axis=1)]
        busy = pd.to_numeric(mine["load_cpu"], errors="coerce")
        return bool(busy.median() > CLIENT_BUSY)

    def is_client_judged(self, cell: int) -> bool:
        """Returns true if it is known whether the client limits a cell."""
        known = ~np.isnan([self._ceilings[cell], self._load_busy[cell]])
        return bool(known.any()) and not self.is_ceiling(cell)

    def pick(self, **conditions: str | float) -> list[int]:
        """Returns the cells with these values; NAME_min and NAME_max bound a number."""
        return [
            c
            for c in range(self.count)
            if all(self._meets(c, name, value) for name, value in conditions.items())
        ]

    def _meets(self, cell: int, name: str, wanted: str | float) -> bool:
        factor = name.removesuffix("_min").removesuffix("_max")
        value = self.value(cell, factor)
        if factor == name:
            return value == str(wanted)
        number = float(value) if is_number(value) else 0.0
        return number >= float(wanted) if name.endswith("_min") else number <= float(wanted)

    def lacks_levels(self, server: str, cell: int, part: Part, measure: str = "rps") -> bool:
        """Returns true if a server has data at other values of the x axis than the baseline.

        Its mean over x cannot be compared with that of the baseline.
        """
        if not part.x_name:
            return False
        for value in part.levels[part.x_name]:
            asked = self.like(cell, server=part.baseline, **{part.x_name: value})
            mine = self.like(cell, server=server, **{part.x_name: value})
            if asked is None:
                differs = mine is not None and self.has_data(mine, measure)
            else:
                differs = mine is None or not self.has_data(mine, measure)
            if differs:
                return True
        return False

    # --- parts ---

    @property
    def _parts_given(self) -> bool:
        return self.study.one_part or bool(self.study.parts)

    def root_of(self, server: str) -> str:
        """Returns the server that a server is compared with.

        That is `fork` for fork~2 and fork+option, where the study has it. A server that others are
        compared with in this way stands for itself. The rest have the study's baseline.
        """
        if server == self.baseline:
            return server
        servers = self.levels["server"]
        parent = re.sub(r"~[0-9]+$", "", server)
        if parent == server:
            parent = re.sub(r"\+[^+]*$", "", server)
        if parent != server and parent in servers:
            return self.root_of(parent)
        if any(
            other.startswith((server + "~", server + "+")) for other in servers if other != server
        ):
            return server
        return self.baseline

    @cached_property
    def roots(self) -> list[str]:
        if self.kind == ORDINARY and not self._parts_given and self._all_have_variants():
            return [self.root_of(self.value(c, "server")) for c in range(self.count)]
        return [self.baseline] * self.count

    def _all_have_variants(self) -> bool:
        """Returns true if each server is there with a variant of it, such as fork~2.

        Such a study is about the variants. Where a server has none, all are compared with the
        baseline.
        """
        servers = self.levels["server"]
        found = dict.fromkeys(map(self.root_of, servers), 0)
        for server in servers:
            root = self.root_of(server)
            found[root] += server.startswith((root + "~", root + "+"))
        return all(found.values())

    @cached_property
    def parts(self) -> list[Part]:
        """The parts of the study: each is a full factorial, or cannot be split any more."""
        words = self.study.parts if self._parts_given else ("root", *SPLITTING)
        found: list[Part] = []
        varies: set[str] = set()

        def of(cell: int, word: str) -> str:
            return self.roots[cell] if word == "root" else self.value(cell, word)

        def split(cells: list[int], at: int) -> None:
            if at >= len(words) or (
                at >= 1 and not self._parts_given and self._is_factorial(cells)
            ):
                found.append(
                    self._part(len(found) + 1, cells, tuple(w for w in words[:at] if w in varies))
                )
                return
            groups: dict[str, list[int]] = {}
            for cell in cells:
                groups.setdefault(of(cell, words[at]), []).append(cell)
            if len(groups) > 1:
                varies.add(words[at])
            for group in groups.values():
                split(group, at + 1)

        split(list(range(self.count)), 0)
        return found

    def _is_factorial(self, cells: list[int]) -> bool:
        product = 1
        for i in range(len(self.factors)):
            product *= len({self.keys[c][i] for c in cells})
        return product == len(cells)

    def _part(self, number: int, cells: list[int], words: tuple[str, ...]) -> Part:
        levels = {}
        for i, name in enumerate(self.factors):
            present = {self.keys[c][i] for c in cells}
            levels[name] = [value for value in self.levels[name] if value in present]
        x_name = choose_axis(levels)
        return Part(
            number, tuple(cells), levels, x_name, self.roots[cells[-1]], self._kind(x_name), words
        )
