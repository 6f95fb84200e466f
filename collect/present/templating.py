"""The templates, and how numbers and lists look in them."""

from __future__ import annotations

import functools
import os
import re
import sys
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape

from collect import readable_numbers
from collect.measure.foreign_load import SHARED
from collect.project import PROJECT

TEMPLATES = Path(__file__).resolve().parent / "templates"


def slug(words: str) -> str:
    """The id of a heading."""
    words = re.sub(r"<[^>]*>", "", words).lower()
    return re.sub(r"[^a-z0-9]+", "-", words).strip("-")


def table_cell(words: object) -> str:
    """A text as it stands in a table of Markdown."""
    return str(words).replace("|", "\\|")


def opened(words: str) -> str:
    """Gives a text a capital letter, unless it opens with a name."""
    return words if words.startswith("*") else words[:1].upper() + words[1:]


def number_word(number: int) -> str:
    words = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    return words[number] if number < len(words) else str(number)


def _marked(words: str, mark: str, tag: str) -> Markup:
    """Turns `code` or **strong** of Markdown into HTML; all else is text."""
    safe = str(escape(Markup(words).unescape()))
    mark = re.escape(mark)
    return Markup(re.sub(rf"{mark}(.+?){mark}", rf"<{tag}>\1</{tag}>", safe))


def code(words: str) -> Markup:
    return _marked(words, "`", "code")


def strong(words: str) -> Markup:
    return _marked(words, "**", "strong")


def bullets(words: str) -> Markup:
    """A list of Markdown as HTML."""
    lines = [line[2:] for line in str(words).splitlines() if line.startswith("- ")]
    return (
        Markup("<ul>\n")
        + Markup("\n").join(Markup("<li>") + strong(line) + Markup("</li>") for line in lines)
        + Markup("\n</ul>")
    )


FILTERS: dict[str, Any] = {
    "human": readable_numbers.human,
    "thousands": readable_numbers.thousands,
    "percent": readable_numbers.percent_text,
    "factor": readable_numbers.factor_text,
    "p": readable_numbers.p_text,
    "listed": readable_numbers.join_text,
    "cell": table_cell,
    "opened": opened,
    "slug": slug,
    "words": number_word,
    "code": code,
    "strong": strong,
    "markdown": bullets,
}
FUNCTIONS: dict[str, Any] = {
    "plural": readable_numbers.plural,
    "estimate": readable_numbers.estimate_text,
    "interval": readable_numbers.interval_text,
    "DASH": readable_numbers.DASH,
}


class _Undefined(jinja2.StrictUndefined):
    """Fails where a template uses an undefined name; an `if` without `else` is empty."""

    def __str__(self) -> str:  # type: ignore[override]
        if "inline if-expression" in str(self._undefined_hint):
            return ""
        return str(self._fail_with_undefined_error())


def _compiled() -> jinja2.BytecodeCache | None:
    """Keeps compiled templates where Python keeps compiled modules and this user may write."""
    if sys.dont_write_bytecode:
        return None
    folder = PROJECT / "build" / "templates"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return jinja2.FileSystemBytecodeCache(str(folder)) if os.access(folder, os.W_OK) else None


@functools.cache  # with the templates, compiled
def _environment(html: bool) -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        bytecode_cache=_compiled(),
        autoescape=html,
        undefined=_Undefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        extensions=["jinja2.ext.do"],
    )
    environment.filters.update(FILTERS)
    environment.globals.update(FUNCTIONS, SHARED=SHARED)
    return environment


def render_markdown(template: str, **values: object) -> str:
    """Fills in a template of Markdown: paragraphs are one blank line apart."""
    filled = _environment(False).get_template(template).render(**values)
    filled = re.sub(r"[ \t]+\n", "\n", filled)
    return re.sub(r"\n{3,}", "\n\n", filled).strip("\n") + "\n"


def render_html(template: str, **values: object) -> str:
    """Fills in a template of HTML: what is filled in is text, unless it is marked as HTML."""
    return _environment(True).get_template(template).render(**values)
