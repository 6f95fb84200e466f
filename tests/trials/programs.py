"""Runs the programs of tests/ that have hostile input or faults as their subject, and makes rows of what they say."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator

from trials.trial import PROJECT, Context, Row, skipped

PATIENCE_SECONDS = 3600


def run_program(*command: str) -> tuple[int, str, float]:
    """Runs a program in the folder of the project: its status, what it printed, and the seconds."""
    begin = time.monotonic()
    process = subprocess.Popen(
        command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace", process_group=0,
    )  # fmt: skip
    try:
        text = process.communicate(timeout=PATIENCE_SECONDS)[0]
    except subprocess.TimeoutExpired:
        return 124, f"not done after {PATIENCE_SECONDS} s", time.monotonic() - begin
    return process.returncode, text, time.monotonic() - begin


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:160] if lines else "nothing printed"


def findings(context: Context, server: str, name: str, case: str, *options: str) -> Iterator[Row]:
    """One of the programs; its status says whether something was found."""
    status, text, seconds = run_program(f"tests/{name}", *options)
    context.say(f"   tests/{name}: {seconds:.0f} s")
    if status == 77:
        yield skipped(server, case, last_line(text))
        return
    tried = context.case(server, case)
    yield tried.judge("findings", int(status != 0), 0)
    yield tried.fact("it says", last_line(text))
    if status:
        context.say(text)
