"""The text of a study file, to name the line of a mistake."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

from collect.project import fail


@dataclass(frozen=True)
class Source:
    """The source of a study's keys: a file, which messages name by its path; the options of the
    command line, which override it; and with --quick the keys that its table [quick] replaces."""

    path: str
    text: str = ""
    options: frozenset[str] = frozenset()
    quick: frozenset[str] = frozenset()

    def fail(self, key: str, what: str) -> NoReturn:
        """Ends with the file, the line and the key; or with the option that set it."""
        if key.partition(".")[0] in self.options:
            fail(f"--{key}: {what}", 2)
        line = self.line_of(key, what)
        place = f"{self.path}:{line}" if line else self.path
        fail(f"{place}: {key}: {what}", 2)

    def line_of(self, key: str, what: str) -> int:
        """The line of a key, or that of the word in it which the message names; 0 if there is
        none."""
        names = key.split(".")
        lines = self.text.splitlines()
        begins = 0
        if names[0] in self.quick:
            begins = next((i for i, line in enumerate(lines) if _has_key(line, "quick")), 0)
        keys = (i for i, line in enumerate(lines) if i >= begins and _has_key(line, names[0]))
        first = next(keys, None)
        if first is None:
            return 0
        word = re.search(r"`([^`]+)`", what)
        if word:
            pattern = rf"(?<![\w+=~-]){re.escape(word[1])}(?![\w+=~-])"
            for number, line in enumerate(lines[first:], first + 1):
                if re.search(pattern, line.partition("#")[0]):
                    return number
        within = (i for i, line in enumerate(lines) if i >= first and _has_key(line, names[-1]))
        return next(within, first) + 1


def _has_key(line: str, name: str) -> bool:
    return re.match(rf"\s*(\[*\s*|[\w.-]+\.){re.escape(name)}\b(?!-)", line) is not None
