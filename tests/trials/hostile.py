"""Hostile input and injected faults: runs the programs of tests/ that have these as their subject."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator

from trials.programs import findings, last_line, run_program
from trials.trial import Context, Row, Trial, skipped

FUZZ_SECONDS = 10


def _escapes(context: Context, name: str) -> Iterator[Row]:
    """What a worker attempts that somebody else has taken over."""
    status, text, seconds = run_program(
        "tests/run", "--pass", "normal", "--server", name, "tests/sandbox_escape.t"
    )
    context.say(f"   tests/sandbox_escape.t: {seconds:.0f} s")
    cases = re.search(r"Tests=(\d+)", text)
    tried = context.case(name, "escapes from the sandbox")
    yield tried.fact("cases", cases[1] if cases else "0")
    yield tried.judge("findings", int(status != 0 or not cases), 0)


def _fuzz(context: Context) -> Iterator[Row]:
    case = f"make fuzz TIME={FUZZ_SECONDS}"
    if context.quick or not shutil.which("clang-14"):
        yield skipped(
            "all", case, "not in the short form" if context.quick else "there is no clang-14"
        )
        return
    status, text, _ = run_program("make", "--no-print-directory", "fuzz", f"TIME={FUZZ_SECONDS}")
    counts = [int(count) for count in re.findall(r"^\w+: (\d+) executions in", text, re.M)]
    failed = status != 0 or not counts
    tried = context.case("all", case)
    yield tried.fact("fuzzers", len(counts))
    yield tried.fact("executions", sum(counts))
    yield tried.judge("findings", int(failed), 0)
    yield tried.fact("it says", last_line(text) if failed else "nothing was found")


def run(context: Context) -> Iterator[Row]:
    for name in context.models:
        options = ["--quick", "--server", name]
        yield from findings(context, name, "inject", "failing system calls", *options)
    for name in context.models:
        yield from _escapes(context, name)
    # All models read requests by the same code.
    name = "epoll" if "epoll" in context.models else context.models[0]
    options = ["--server", name, "--peers", ",".join(context.peers) or "none"]
    if context.quick or not context.peers:
        options.append("--quick")
    yield from findings(context, name, "differential", "mutated requests", *options)
    yield from _fuzz(context)


TRIAL = Trial(
    "hostile",
    "Hostile input and injected faults",
    f"`tests/inject --quick`: each system call on the path of a request fails once. "
    f"`tests/sandbox_escape.t`: a worker that was taken over attempts what the sandbox forbids. "
    f"`tests/differential`: mutated requests to our servers, and to the peers; `tests/differential.tsv` has "
    f"each known difference, and its reason. `make fuzz`: "
    f"{FUZZ_SECONDS} s for each fuzzer.",
    "What the programs find: a crash, a hang, a leak, a wrong response, an action that is not refused, a difference "
    "that is not explained.",
    run,
    needs={
        "strace": "strace",
        "clang-14": "clang-14",
        "/usr/include/cmocka.h": "libcmocka-dev",
        "/usr/lib/llvm-14/lib/clang/*/lib/linux/libclang_rt.fuzzer*": "libclang-rt-14-dev",
    },
)
