"""The templates, and how numbers and lists look in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jinja2

from collect import text

TEMPLATES = Path(__file__).resolve().parent / "templates"


def slug(words: str) -> str:
    """The id of a heading."""
    words = re.sub(r"<[^>]*>", "", words).lower()
    return re.sub(r"[^a-z0-9]+", "-", words).strip("-")


def table_cell(words: object) -> str:
    """A text as it stands in a table of Markdown."""
    return str(words).replace("|", "\\|")


def opened(words: str) -> str:
    """With a capital letter, unless it opens with a name."""
    return words if words.startswith("*") else words[:1].upper() + words[1:]


def number_word(number: int) -> str:
    words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    return words[number] if number < len(words) else str(number)


FILTERS: dict[str, Any] = {
    "human": text.human,
    "thousands": text.thousands,
    "percent": text.percent_text,
    "factor": text.factor_text,
    "p": text.p_text,
    "listed": text.join_text,
    "cell": table_cell,
    "opened": opened,
    "slug": slug,
    "words": number_word,
}
FUNCTIONS: dict[str, Any] = {
    "plural": text.plural,
    "estimate": text.estimate_text,
    "interval": text.interval_text,
    "DASH": text.DASH,
}


class _Undefined(jinja2.StrictUndefined):
    """Fails where a template names what is not there; an `if` without `else` is nothing."""

    def __str__(self) -> str:
        if "inline if-expression" in str(self._undefined_hint):
            return ""
        return str(super().__str__())


def _environment(html: bool) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=html,
        undefined=_Undefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        extensions=["jinja2.ext.do"],
    )
    environment.filters.update(FILTERS)
    environment.globals.update(FUNCTIONS)
    return environment


def render_markdown(template: str, **values: object) -> str:
    """Fills in a template of Markdown: paragraphs are one blank line apart."""
    filled = _environment(False).get_template(template).render(**values)
    filled = re.sub(r"[ \t]+\n", "\n", filled)
    return re.sub(r"\n{3,}", "\n\n", filled).strip("\n") + "\n"


def render_html(template: str, **values: object) -> str:
    """Fills in a template of HTML: what is filled in is text, unless it is marked as HTML."""
    return _environment(True).get_template(template).render(**values)
