"""The glossary of a page: each term that the page uses, under its first occurrence in a section."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from collect.present.templating import slug
from collect.tables import read_table

TERMS_FILE = Path(__file__).with_name("glossary.tsv")
# Where a term is not marked: in headings and links, and where text is code.
ASIDE = frozenset({"a", "code", "h1", "h2", "h3", "h4", "pre", "summary", "svg", "th"})
TAG = re.compile(r"(<[^>]*>)")


@dataclass(frozen=True)
class Term:
    """A term, the forms in which texts use it, and its meaning."""

    name: str
    forms: tuple[str, ...]
    meaning: str

    @property
    def id(self) -> str:
        return f"term-{slug(self.name)}"


def read_terms() -> list[Term]:
    """Returns all terms. One without a form is a common word, too, and is marked nowhere."""
    return [
        Term(row["term"], tuple(filter(None, row["forms"].split(", "))), row["meaning"])
        for row in read_table(TERMS_FILE).rows
    ]


def _pattern(terms: Sequence[Term]) -> re.Pattern[str]:
    forms = sorted((form for term in terms for form in term.forms), key=len, reverse=True)
    return re.compile(rf"(?<![\w+-])(?:{'|'.join(map(re.escape, forms))})(?![\w+-])")


class Marker:
    """Turns terms in lines of HTML into links to the glossary, each once in a section."""

    def __init__(self) -> None:
        self.terms = read_terms()
        self.by_form = {form: term for term in self.terms for form in term.forms}
        self.pattern = _pattern(self.terms)
        self.aside = 0
        self.in_section: set[str] = set()
        self.used: set[str] = set()

    def line(self, line: str) -> str:
        """Marks the terms of a line."""
        parts = []
        for part in TAG.split(line):
            if part.startswith("<"):
                self._tag(part)
                parts.append(part)
            else:
                parts.append(part if self.aside else self.pattern.sub(self._link, part))
        return "".join(parts)

    def _tag(self, tag: str) -> None:
        found = re.match(r"<(/?)([a-z0-9]+)", tag)
        if not found:
            return
        closes, name = found.groups()
        if name == "h2" and not closes:
            self.in_section.clear()
        if name in ASIDE and not tag.endswith("/>"):
            self.aside += -1 if closes else 1

    def _link(self, match: re.Match[str]) -> str:
        term = self.by_form[match[0]]
        if term.name in self.in_section:
            return match[0]
        self.in_section.add(term.name)
        self.used.add(term.name)
        return f'<a class="term" href="#{term.id}">{match[0]}</a>'

    def glossary(self) -> list[Term]:
        """Returns the terms that were marked."""
        return [term for term in self.terms if term.name in self.used]
