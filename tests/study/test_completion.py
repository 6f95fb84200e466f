"""Completion in bash: commands, studies, options and their values, of dcollect and of servers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from study_runs import TOP

from collect.completion import OPTIONS, script
from collect.design.study import study_names
from collect.options import NAMES

TRY = """
. "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
read -r _ _ _ name _ < <(complete -p "${1##*/}" | sed 's/ -F / -F - /')
$name "$1" "${COMP_WORDS[COMP_CWORD]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""

pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")


@pytest.fixture(scope="module")
def completion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "dcollect"
    path.write_text(script())
    return path


def completed(completion: Path, *words: str) -> list[str]:
    """Returns what the tabulator offers for the last of these words."""
    done = subprocess.run(
        ["bash", "-uc", TRY, "bash", completion, *words],
        capture_output=True, text=True, check=False, cwd=TOP,
    )  # fmt: skip
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--qu"], ["--quick"]),
        (["campaign", "--hou"], ["--hours"]),
        (["replay", "--c"], ["--clients", "--crash"]),
        (["export", "x", "--to", ""], ["csv", "json", "benchstat"]),
        (["--servers", "floor-one,floor-t"], ["floor-one,floor-thread"]),
        (["--scheme", "=", "http,u"], ["http,udp"]),
        (["campaign", "fork"], ["fork-vs-thread"]),
        (["results", ""], ["list", "open", "clean"]),
        (["report", "rep"], ["report"]),
        (["--seed", ""], []),
    ],
)
def test_a_command_line(completion: Path, words: list[str], expected: list[str]) -> None:
    assert completed(completion, "./dcollect.sh", *words) == expected


def test_a_first_word_is_a_command_or_a_study(completion: Path) -> None:
    found = completed(completion, "dcollect", "")
    assert set(study_names()) < set(found)
    assert {"campaign", "results", "export", "overview"} < set(found)


def test_servers_of_the_tree_and_others_are_offered(completion: Path) -> None:
    if not (TOP / "fork_server").exists():
        pytest.skip("the servers are not built")
    found = completed(completion, "./dcollect.sh", "--servers", "")
    assert {"fork", "thread", "epoll", "floor-one", "nginx", "all"} <= set(found)


def test_a_server_says_its_own_options(completion: Path) -> None:
    if not (TOP / "prefork_server").exists():
        pytest.skip("the servers are not built")
    assert completed(completion, "./prefork_server", "--acc") == ["--accept"]
    assert "mutex" in completed(completion, "./prefork_server", "--accept", "")
    assert "all" in completed(completion, "./clone_server", "--share", "")
    assert completed(completion, "./prefork_server", "--service", "s") == ["sized"]


def test_each_option_is_completed_somewhere() -> None:
    assert {option.name for table in OPTIONS.values() for option in table} == NAMES
