"""Installs what is missing, and builds."""

from __future__ import annotations

import fcntl
import subprocess
from collections.abc import Iterable

from collect.measure.server_commands import Need
from collect.project import COLLECT, PROJECT, fail, is_source_tree, say

PACKAGES = "/usr/lib/python3/dist-packages"
BUILDING = (
    Need("gcc", "gcc"),
    Need("make", "make"),
    Need("/usr/include/stdio.h", "libc6-dev"),
    Need("/usr/include/openssl/ssl.h", "libssl-dev"),
)
ANALYSIS = (
    Need(f"{PACKAGES}/numpy", "python3-numpy"),
    Need(f"{PACKAGES}/scipy", "python3-scipy"),
    Need(f"{PACKAGES}/pandas", "python3-pandas"),
    Need(f"{PACKAGES}/statsmodels", "python3-statsmodels"),
    Need(f"{PACKAGES}/jinja2", "python3-jinja2"),
    Need("gnuplot", "gnuplot-nox"),
    Need("cmark-gfm", "cmark-gfm"),
)


def install(needs: Iterable[Need]) -> None:
    """Installs what is missing; nothing happens where all is there."""
    pairs = [f"{need.program}:{need.package}" for need in needs]
    script = '. "$1"; shift; install_missing "$@"'
    command = ["bash", "-euc", script, "dcollect.sh", str(COLLECT / "install_missing.sh"), *pairs]
    if subprocess.run(command, check=False).returncode:
        raise SystemExit(1)


def build(crash: bool = False) -> None:
    """Builds the servers and the programs of the study, with what that needs; with `crash`, also
    servers with a fault. An installed copy has all of them."""
    if not is_source_tree():
        return
    install(BUILDING)
    with (PROJECT / "Makefile").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # two builds at once would write the same files
        _build(["all", "crash"] if crash else ["all"])


def _build(goals: list[str]) -> None:
    if any(_make("--question", goal).returncode for goal in goals):
        say("Building the servers and the programs that measure: half a minute, once")
    for goal in goals:
        done = _make(goal)
        if done.returncode:
            fail(f"{done.stdout}{done.stderr}\ndcollect: the servers do not build")


def _make(*words: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "-s", "-C", str(PROJECT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)
