"""Makes the script that completes the command in bash, from the table of its options."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from collect.design.factors import FACTORS
from collect.design.study import study_names
from collect.measure.server_commands import FLOORS, PEERS
from collect.options import (
    CAMPAIGN,
    COMMANDS,
    EVERY_RUN,
    EXPORT,
    FACTOR_OPTIONS,
    FORMATS,
    GENERAL,
    REPLAY,
    RESULTS,
    Option,
)

SCRIPT = Path(__file__).with_name("completion.bash")
PLACE = "# --- tables ---\n"
STUDY = (*GENERAL, *FACTOR_OPTIONS, *EVERY_RUN)
OF_REPLAY = frozenset({"servers", "slow", "requests"})
NOT_OF_CAMPAIGNS = frozenset({"list", "live"})
OPTIONS: dict[str, tuple[Option, ...]] = {
    "study": STUDY,
    "campaign": (*(o for o in STUDY if o.name not in NOT_OF_CAMPAIGNS), *CAMPAIGN),
    "replay": (*REPLAY, *(option for option in FACTOR_OPTIONS if option.name in OF_REPLAY)),
    "results": RESULTS,
    "export": EXPORT,
}


def _values() -> dict[str, str]:
    """Returns what follows each option: words, LIST and words, SERVERS, DIR, FILE, or ANY."""
    every = [option for table in OPTIONS.values() for option in table]
    found = {option.name: "ANY" for option in every if option.value}
    for factor in FACTORS:
        if words := factor.choices or factor.words:
            found[factor.key] = f"LIST {' '.join(words)}"
    return found | {
        "servers": "SERVERS", "baseline": "SERVER", "files": "LIST small.txt big.txt",
        "to": " ".join(FORMATS), "output": "FILE", "resume": "DIR",
    }  # fmt: skip


def _array(name: str, fields: dict[str, str]) -> str:
    lines = [f"    [{key}]='{text}'\n" for key, text in fields.items()]
    return f"declare -gA {name}=(\n{''.join(lines)})\n"


def _words(name: str, words: Iterable[str]) -> str:
    return f"{name}='{' '.join(words)}'\n"


def script() -> str:
    """Returns the script."""
    options = {
        command: " ".join(dict.fromkeys(f"--{option.name}" for option in table))
        for command, table in OPTIONS.items()
    }
    tables = (
        _words("_dcollect_commands", (head.split()[0] for head, _ in COMMANDS)),
        _words("_dcollect_studies", study_names()),
        _words("_dcollect_others", (*FLOORS, *PEERS)),
        _array("_dcollect_options", options),
        _array("_dcollect_values", _values()),
    )
    return SCRIPT.read_text(encoding="utf-8").replace(PLACE, "".join(tables))
