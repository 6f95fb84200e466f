#!/usr/bin/python3
"""Makes a results folder of invented runs, to test the analysis with data whose truth is known.

usage:    tests/study/synthetic.py [--kind KIND] [--seed N] [--blocks N] [--concurrency N]
              [--slow F] [--invalid N] [--first N] DIR
example:  tests/study/synthetic.py --kind same-server --slow 0.97 /tmp/folder

A kind has the factors of the study of that name; classroom-proxy and classroom-download have the
results of a report in its own setting. --slow F multiplies the requests/s of the last server by F;
--invalid N spoils N runs; --first N puts runs of 100,000 requests into the first N blocks alone.
Times, CPU and memory follow from simple models with log-normal noise; the same seed makes the same
folder.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

Cell = dict[str, str]

EARLY = [
    "server", "file", "concurrency", "requests", "calls", "keepalive", "scheme", "protocol",
    "service", "processors", "load",
]  # fmt: skip
LATE = ["idle", "slow", "certificate", "sessions"]
MEASURED = [
    "started", "seconds", "complete", "failed", "non2xx", "length", "rps", "mean_ms", "sd_ms",
    "min_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms", "max_ms", "kbytes_s", "load_cpu",
    "server_cpu_us", "voluntary", "involuntary", "peak_kib",
]  # fmt: skip
DEFAULTS = {
    "server": ["fork", "thread"], "file": ["small.txt", "big.txt"], "requests": ["1000"],
    "calls": ["1"], "keepalive": ["off"], "scheme": ["http"], "protocol": ["pipelined"],
    "service": ["files"], "processors": ["all"], "load": ["ab"], "idle": ["0"], "slow": ["0"],
    "certificate": ["-"], "sessions": ["-"],
}  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A study: its claims, the factors that are not the usual ones, and which cells there are."""

    title: str
    claims: str
    levels: dict[str, list[str]] = field(default_factory=dict)
    where: Callable[[Cell], bool] = lambda cell: True
    baseline: str = ""
    parts: list[str] = field(default_factory=list)
    figure: str = ""
    late: bool = False  # has the factors that came late
    theirs: str = ""
    machine: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Options:
    kind: str = "fork-vs-thread"
    seed: int = 1
    blocks: int = 32
    concurrency: int = 30
    slow: float = 1.0
    invalid: int = 0
    first: int = 0


def words(text: str) -> list[str]:
    return text.split()


def _persistent(cell: Cell) -> bool:
    return cell["protocol"] != "simple" or cell["calls"] == "1"


def _mistakes(cell: Cell) -> bool:
    server, load = cell["server"], cell["load"]
    by_ab = load == "ab" and cell["calls"] == "1"
    if server.startswith("floor-one"):
        return cell["calls"] == "1"
    if "joinable" in server:
        return by_ab
    if "split" in server:
        return load == "httperf" and cell["concurrency"] == "1"
    return by_ab if load == "ab" else cell["concurrency"] == "1"


def _protocols(cell: Cell) -> bool:
    many = re.search("iterative|thread.*pipe|prefork", cell["server"])
    simple = "simple" in cell["server"]
    return (not simple or cell["calls"] == "1") and (cell["requests"] == "10000" or bool(many))


def _https(cell: Cell) -> bool:
    plain = cell["scheme"] == "http"
    if (cell["certificate"] == "-") != plain or (cell["sessions"] == "-") != plain:
        return False
    if cell["load"] == "witness":
        return cell["concurrency"] == "10" and cell["requests"] == "2000"
    if cell["server"] not in ("fork", "thread") or cell["sessions"] == "resumed":
        return False
    if cell["concurrency"] != "1" or cell["requests"] == "2000":
        return False
    of_thread = (cell["server"], cell["certificate"]) == ("thread", "p256")
    return cell["requests"] == "10000" or plain or of_thread


def _proxy(cell: Cell) -> bool:
    return (cell["file"] == "150") == (cell["service"] == "proxy-miss")


SMALL = {"file": ["small.txt"]}
PROXY = Kind(
    "The caching proxy", "R2.1 R2.3",
    {
        "concurrency": words("1 5 6 7 10 100 500"), "requests": ["500"], "file": words("125 150"),
        "service": words("sized proxy-hit proxy-revalidation proxy-miss"),
    },
    _proxy, parts=["one"],
    theirs="""
[[theirs]]
measures = "rps"
by = "concurrency"
when = { service = "proxy-hit" }
values = { 1 = 264.03, 5 = 159.97, 7 = 11.66 }

[[theirs]]
measures = "rps"
by = "concurrency"
when = { service = "sized", file = "150" }
values = { 1 = 124.68 }
""",
)  # fmt: skip
DOWNLOAD = Kind(
    "Downloads", "R2.4 R2.5",
    {
        "server": ["thread"], "file": ["5242880.bin"], "concurrency": words("1 5 10"),
        "requests": ["10"], "keepalive": words("off on"),
    },
    machine={"link": "20mbit, delay 75 ms"},
)  # fmt: skip
CREWS = [f"prefork{way}" for way in words("+accept=lock +accept=mutex +accept=pass")]
DESIGNS = [
    *words("iterative fork thread epoll epoll+accept=shared epoll+accept=reuseport pool"),
    *words("pool+accept=mutex pool+accept=queue pool+accept=reuseport prefork"), *CREWS,
    *words("prefork+accept=reuseport floor-fork floor-thread floor-one nginx lighttpd"),
    *words("apache-prefork apache-worker apache-event"),
]  # fmt: skip

KINDS = {
    "fork-vs-thread": Kind("Fork against thread", "R1.2 R1.3 R1.5"),
    "table1": Kind(
        "The table of the report", "R1.1", {"concurrency": ["10"], "requests": ["10000"]},
        theirs="""
[[theirs]]
measures = ["time_ms", "max_ms"]
by = "server"
when = { file = "small.txt" }
values = { thread = [2.146, 7], fork = [2.341, 21] }
""",
    ),
    "processors": Kind(
        "One processor or two", "R1.4",
        {"concurrency": words("1 2 5 10 20 30"), "processors": words("1 2"), **SMALL},
    ),
    "same-server": Kind("A server against itself", "A/A", {"server": ["fork", "fork~2"]}),
    "requests": Kind(
        "The number of requests", "R2.2",
        {
            "concurrency": ["1"], "requests": words("1 2 3 4 5 6 7 8 9 10 50 100 200 300 400 500"),
            **SMALL,
        },
    ),
    "persistent": Kind(
        "Calls per connection", "R3.1 R3.3 R3.4",
        {
            "server": words("apache-prefork fork thread"), "concurrency": ["1"],
            "requests": words("1000 10000"), "calls": words("1 2 5"), "load": ["httperf"],
            "protocol": words("simple persistent"), **SMALL,
        },
        _persistent, baseline="apache-prefork",
    ),
    "mistakes": Kind(
        "The classical mistakes", "R1.5 R2.1 R3.4",
        {
            "server": words("floor-thread floor-thread+joinable floor-thread+split-writes "
                            "floor-one+work8000 floor-one+work8000+backlog5"),
            "concurrency": words("1 3 5 6 7 8 10 20 30"), "calls": words("1 2 5"),
            "load": words("ab httperf"), **SMALL,
        },
        _mistakes,
    ),
    "protocols": Kind(
        "Protocols", "R3.1 R3.2 R3.3 R3.4 R3.5",
        {
            "server": [
                *(f"{model}+protocol={protocol}" for model in words("iterative thread fork")
                  for protocol in words("simple persistent pipelined")),
                "apache-prefork", "apache-event",
            ],
            "concurrency": ["1"], "requests": words("10000 100000"), "calls": words("1 2 5"),
            "load": ["httperf"], **SMALL,
        },
        _protocols, baseline="apache-prefork", parts=["requests"],
    ),
    "https": Kind(
        "TLS", "R4.1 R4.2 TLS.1 TLS.2 TLS.3",
        {
            "server": words("fork thread epoll nginx"), "concurrency": words("1 10"),
            "requests": words("2000 10000 100000"), "load": words("httperf witness"),
            "scheme": words("http https"), "certificate": words("- p256 rsa2048"),
            "sessions": words("- new resumed"), **SMALL,
        },
        _https, parts=["load", "requests"], figure="ways", late=True,
    ),
    "udp": Kind(
        "UDP", "U1 U2",
        {
            "concurrency": words("1 10 30"), "load": ["witness"], "scheme": words("http udp"),
            **SMALL,
        },
        parts=["one"], figure="cpu", late=True,
    ),
    "designs": Kind(
        "Every design", "UNP.1 UNP.2 E07.1 CF.1", {"server": DESIGNS, **SMALL},
        parts=["one"], baseline="fork",
    ),
    "work": Kind(
        "Work", "PAI.1",
        {
            "server": words("fork epoll"), "service": ["work"], "file": words("cpu block"),
            "concurrency": ["20"], "ballast": ["0"], "amount": words("1 10000"),
        },
        parts=["one"], figure="requests", late=True,
    ),
    "rings": Kind(
        "Rings", "ARENA.1",
        {
            "server": words("epoll uring nginx lighttpd"), "concurrency": words("1 10 32"),
            "keepalive": words("off on"), **SMALL,
        },
        parts=["keepalive"], baseline="epoll",
    ),
    "proxy": PROXY,
    "classroom-proxy": PROXY,
    "download": DOWNLOAD,
    "classroom-download": DOWNLOAD,
}  # fmt: skip

# Server CPU per request, the maximum of requests/s, the number of workers and the busiest one's share.
MODELS: list[tuple[str, float, float, int, float]] = [
    ("^iterative", 12, 30000, 0, 0), ("^fork", 110, 13000, 0, 0), ("^floor-fork", 100, 14000, 0, 0),
    ("^thread", 25, 25000, 0, 0), ("^floor-thread", 22, 26000, 0, 0),
    ("^floor-one", 9, 31000, 0, 0), ("pass|queue", 20, 24000, 8, 0.3),
    ("^epoll.+reuse", 13, 29000, 2, 0.51), ("^epoll", 12.5, 29500, 2, 0.9),
    ("^uring", 12.4, 29500, 2, 0.9), ("^(pool|prefork)", 14, 28000, 8, 0.14), ("^nginx", 20, 27000, 0, 0),
    ("^lighttpd", 17, 28000, 0, 0), ("^apache", 50, 20000, 0, 0),
]  # fmt: skip
SERVICES = {"sized": 1.0, "proxy-hit": 0.8, "proxy-revalidation": 0.1, "proxy-miss": 0.15}
DOWNLOADS = {
    ("off", "1"): 0.273, ("off", "5"): 0.509, ("off", "10"): 0.510,
    ("on", "1"): 0.219, ("on", "5"): 0.400, ("on", "10"): 0.502,
}  # fmt: skip
SPOKEN = {"iterative": 9000, "thread": 8000, "fork": 3000, "apache": 6000}


# Requests/s of those that compute or block for 10 ms.
BLOCKED = {"cpu": {"fork": 190.0, "epoll": 195.0}, "block": {"fork": 1900.0, "epoll": 190.0}}


def model_of(server: str) -> tuple[str, float, float, int, float]:
    return next(model for model in MODELS if re.search(model[0], server))


def rate(kind: str, cell: Cell) -> float:
    """Returns the requests/s of a cell, before noise."""
    server, x = cell["server"], float(cell["concurrency"])
    limit = 13000.0 if "fork" in server else 120.0 if "work8000" in server else 30000.0
    if kind == "designs":
        limit = model_of(server)[2]
    limit *= 0.5 if cell["processors"] == "1" else 1
    limit *= 0.93 if cell["file"] == "big.txt" else 1
    rps = limit * x / (x + 0.8)
    calls = float(cell["calls"])
    if "backlog5" in server and x > 6:
        rps /= 11
    if "split-writes" in server:
        rps = x * calls / (0.0001 + 0.041 * (calls - 1))
    slow = cell["protocol"] == "persistent" and calls == 5 and "apache" not in server
    if kind == "persistent" and slow:
        rps *= 0.02
    rps *= SERVICES.get(cell["service"], 1.0)
    if kind == "classroom-proxy":
        rps *= (3 if cell["service"] == "proxy-hit" else 1) / (11 if x > 6 else 1)
    if kind == "download":
        rps = 0.46 * (0.95 if x > 1 else 1) * (1.05 if cell["keepalive"] == "on" else 1)
    if kind == "classroom-download":
        rps = DOWNLOADS[cell["keepalive"], cell["concurrency"]]
    if kind == "work" and cell["amount"] == "10000":
        rps = BLOCKED[cell["file"]][server]
    if kind == "protocols":
        rps = SPOKEN[re.split(r"\W", server)[0]] * (0.5 + 0.5 * calls)
        rps *= 0.95 if "=p" in server else 1
    return rps / tls(cell) * (1.2 if cell["scheme"] == "udp" else 1)


def tls(cell: Cell) -> float:
    """Returns how much longer a connection takes for its handshake."""
    if cell["scheme"] != "https":
        return 1.0
    key = 12 if cell["certificate"] == "p256" else 15
    return (
        key * (1 if cell["sessions"] == "new" else 0.7) * (1.1 if cell["server"] == "nginx" else 1)
    )


def cpu(kind: str, cell: Cell) -> float:
    server = cell["server"]
    if kind == "designs":
        return model_of(server)[1]
    used = (100 if "fork" in server else 24) * (1.06 if cell["file"] == "big.txt" else 1)
    used *= tls(cell) * (0.8 if cell["scheme"] == "udp" else 1)
    return used * (0.85 if kind == "https" and server in ("epoll", "nginx") else 1)


class Noise:
    """Returns log-normal noise of a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def __call__(self, spread: float) -> float:
        return math.exp(self.random.gauss(0, spread))


def factors_of(kind: Kind) -> list[str]:
    usual = EARLY + (LATE if kind.late else [])
    return usual + [name for name in kind.levels if name not in usual]


def cells_of(kind: Kind, options: Options) -> list[Cell]:
    names = factors_of(kind)
    levels = DEFAULTS | {"concurrency": [str(i + 1) for i in range(options.concurrency)]}
    levels |= kind.levels
    product = itertools.product(*(levels[name] for name in names))
    cells = [dict(zip(names, values, strict=True)) for values in product]
    return [cell for cell in cells if kind.where(cell)]


def runs_of(options: Options) -> Iterator[dict[str, str]]:
    """Yields the runs of a study, block by block, shuffled within."""
    kind, noise = KINDS[options.kind], Noise(options.seed)
    cells = cells_of(kind, options)
    last = cells[-1]["server"]
    every = int(len(cells) * options.blocks / options.invalid) if options.invalid else 0
    run, clock = 0, 0.0
    for block in range(1, options.blocks + 1):
        weather = noise(0.02)
        order = [c for c in cells if _in_block(c, block, options.first)]
        noise.random.shuffle(order)
        for place, cell in enumerate(order, 1):
            run += 1
            rps = rate(options.kind, cell) * weather * noise(0.03)
            if options.kind == "requests":
                rps *= float(cell["requests"]) / (float(cell["requests"]) + 5) * noise(0.05)
            if "joinable" in cell["server"]:
                rps *= 1 - 0.2 * place / len(order)
            rps *= options.slow if cell["server"] == last else 1
            seconds = float(cell["requests"]) / rps
            clock += seconds + 0.04
            row = {"run": str(run), "round": "1", "block": str(block), "order": str(place)} | cell
            row |= measured(options.kind, cell, rps, place, clock, noise)
            if every and run % every == 0:
                row |= {"valid": "3 failed requests", "failed": "3"}
            yield row


def _in_block(cell: Cell, block: int, first: int) -> bool:
    return not first or block <= first or int(cell["requests"]) < 100000


def measured(
    kind: str, cell: Cell, rps: float, place: int, clock: float, noise: Noise
) -> dict[str, str]:
    """Returns what a run with this rate would have measured."""
    server, x = cell["server"], float(cell["concurrency"])
    length = 10000 if cell["file"] == "big.txt" else 1000
    mean = 1000 * x / rps
    times = [mean * share for share in (1, 0.2, 0.3, 0.97, 1.2, 1.4, 1.9, 3.1)]
    peak = 3000 + 150 * x if "fork" in server else 2200 + 20 * x
    peak = 2000 + 90 * place if "joinable" in server else peak
    load = min(rps / (40000 if kind in ("designs", "udp") else 31000) * noise(0.01), 1)
    row = {
        "started": f"{clock:.3f}", "seconds": f"{float(cell['requests']) / rps:.6f}",
        "complete": cell["requests"], "failed": "0", "non2xx": "0", "length": str(length),
        "rps": f"{rps:.2f}",
        **dict(zip(MEASURED[7:15], (f"{time:.3f}" for time in times), strict=True)),
        "kbytes_s": f"{rps * length / 1000:.2f}", "load_cpu": f"{load:.3f}",
        "server_cpu_us": f"{cpu(kind, cell) * noise(0.02):.2f}",
        "voluntary": f"{1.5 * noise(0.05):.3f}", "involuntary": f"{0.2 * noise(0.2):.3f}",
        "peak_kib": str(int(peak * noise(0.01))),
    }  # fmt: skip
    if kind == "designs":
        workers, share = model_of(server)[3:]
        busiest = f"{share * noise(0.01):.4f}" if workers else "-"
        row |= {"workers": str(workers or "-"), "busiest": busiest}
    if kind == "udp":
        row["lost"] = str(int(x / 30))
    return row | {"valid": "yes"}


def columns_of(kind: str) -> list[str]:
    extra = {"designs": ["workers", "busiest"], "udp": ["lost"]}.get(kind, [])
    return [*planned_columns(kind), *MEASURED, *extra, "valid"]


def planned_columns(kind: str) -> list[str]:
    return ["run", "round", "block", "order", *factors_of(KINDS[kind])]


def study_text(options: Options) -> str:
    kind = KINDS[options.kind]
    cells = cells_of(kind, options)

    def listed(name: str) -> list[str]:
        return list(dict.fromkeys(cell[name] for cell in cells))

    servers = [re.sub(r"~\d+$", "", server) for server in listed("server")]
    lines = {
        "name": options.kind, "title": kind.title, "question": "Which is faster?",
        "source": "invented data", "servers": servers, "files": listed("file"),
        "concurrency": [int(value) for value in listed("concurrency")],
        "requests": [int(value) for value in listed("requests")],
        "repetitions": options.blocks, "baseline": kind.baseline or servers[0],
        "claims": kind.claims.split(),
        **({"parts": kind.parts} if kind.parts else {}),
        **({"figure": kind.figure} if kind.figure else {}),
    }  # fmt: skip
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in lines.items())
    if options.first:
        text += f"\n[[blocks]]\nwhen = {{ requests = 100000 }}\nfirst = {options.first}\n"
    return text + kind.theirs


def invent(folder: Path, options: Options | None = None, **changes: object) -> Path:
    """Makes a results folder. The options are the fields of Options."""
    options = options or Options(**changes)  # type: ignore[arg-type]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "study.toml").write_text(study_text(options))
    machine = {
        "kernel": "Linux invented", "processors": "2", "processor_model": "invented | processor",
        "seed": str(options.seed), "command": f"./dcollect.sh {options.kind}",
        "started": "2026-01-01 12:00:00", **KINDS[options.kind].machine,
    }  # fmt: skip
    (folder / "machine.tsv").write_text("".join(f"{k}\t{v}\n" for k, v in machine.items()))
    runs = list(runs_of(options))
    write(folder / "plan.tsv", planned_columns(options.kind), runs)
    write(folder / "runs.tsv", columns_of(options.kind), runs)
    return folder


def write(path: Path, columns: list[str], rows: list[dict[str, str]]) -> None:
    lines = ["\t".join(columns), *("\t".join(row[column] for column in columns) for row in rows)]
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kind", choices=KINDS, default="fork-vs-thread")
    for name in ("seed", "blocks", "concurrency", "invalid", "first"):
        parser.add_argument(f"--{name}", type=int, default=getattr(Options, name))
    parser.add_argument("--slow", type=float, default=1.0)
    parser.add_argument("folder", type=Path)
    options = vars(parser.parse_args())
    invent(options.pop("folder"), Options(**options))


if __name__ == "__main__":
    main()
