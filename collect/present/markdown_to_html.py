"""Markdown -> a page of HTML that needs nothing else: figures with values under the mouse."""

from __future__ import annotations

import html
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from urllib.parse import unquote

from markupsafe import Markup

from collect.present.glossary import Marker, Term
from collect.present.gnuplot import dark_style
from collect.present.templating import render_html, slug
from collect.present.verdicts import class_of, words
from collect.project import command_from_here, fail

FIGURE = re.compile(r'<p><img src="([^"]*\.svg)" alt="([^"]*)"[^>]*></p>')
HEADING = re.compile(r'<h2 id="([^"]*)">(.*?)</h2>')
# A figure whose height is less than this share of its width may be shown smaller.
LOW = 0.65
# The pages that a page links to: address and text.
Links = Sequence[tuple[str, str]]
# A figure may shrink to this share of its width before its frame scrolls.
NARROWEST = 0.72
# A figure for narrow screens may grow to so many times its width.
WIDEST = 1.35
# Figures as SVG, by name.
Figures = Mapping[str, str]
NO_FIGURES: Figures = MappingProxyType({})


def html_of_markdown(markdown: str) -> str:
    """Markdown with tables, and with HTML where it holds some."""
    command = ["cmark-gfm", "--unsafe", "-e", "table"]
    done = subprocess.run(command, input=markdown, capture_output=True, text=True, check=False)
    if done.returncode:
        fail(f"cmark-gfm failed: {done.stderr.strip()}")
    return done.stdout


def page_of_markdown(
    title: str, markdown: str, folder: Path, links: Links = (), narrow: Figures = NO_FIGURES
) -> str:
    """A page of Markdown with the figures of its folder inside, its contents and its glossary;
    on narrow screens those of `narrow` instead."""
    body, terms = body_of_markdown(markdown, folder, narrow)
    return page_of_body(title, body, links, terms)


def figures_in(markdown: str) -> list[str]:
    """The names of the figures of a report."""
    return [Path(unquote(path)).stem for path in re.findall(r"]\((figures/[^)]*\.svg)\)", markdown)]


def body_of_markdown(
    markdown: str, folder: Path, narrow: Figures = NO_FIGURES
) -> tuple[str, list[Term]]:
    """Returns Markdown as HTML, and the terms of the glossary that it uses."""
    number = 0
    lines = []
    marker = Marker()
    for line in html_of_markdown(markdown).split("\n"):
        if match := FIGURE.fullmatch(line):
            number += 1
            path = folder / unquote(match[1])
            lines.append(figure_of(path, match[2], narrow.get(path.stem), f"f{number}-"))
        else:
            lines.append(_body_line(marker.line(line)))
    return "\n".join(lines), marker.glossary()


def page_of_body(title: str, body: str, links: Links = (), terms: Sequence[Term] = ()) -> str:
    """A page of HTML. Its contents are its headings of the second level, before the first one."""
    style = dark_style().removeprefix("<style>").removesuffix("</style>")
    figure_style = style if "<svg" in body else ""
    start, heading, rest = body.partition("<h2")
    return render_html(
        "page.html.j2", title=title, figure_style=Markup(figure_style), links=links, terms=terms,
        start=Markup(start), rest=Markup(heading + rest),
        headings=[(name, Markup(words)) for name, words in HEADING.findall(body)],
    )  # fmt: skip


def _body_line(line: str) -> str:
    if line.startswith("<h2>"):
        return f'<h2 id="{slug(line)}">{line[4:]}'
    if line == "<table>":
        return '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>'
    if line == "</table>":
        return "</table></div>"
    if line.startswith("<pre>"):
        return f'<pre tabindex="0" role="group" aria-label="Command">{line[5:]}'
    if cell := re.match("<td>(<strong>)?", line):
        for verdict in words():
            if line.startswith(verdict, cell.end()):
                return f'<td class="{class_of(verdict)}">{line[len("<td>") :]}'
    # Empty heads of tables are no heads.
    return re.sub(r"<th([^>]*)></th>", r"<td\1></td>", line)


def figure_of(path: Path, text: str, narrow: str | None, prefix: str) -> str:
    """A figure in a page, and its narrow form, of which a screen shows one."""
    if not path.is_file():
        fail(f"{path} is missing: {command_from_here()} report draws it")
    wide = path.read_text(encoding="utf-8")
    forms = [("wide", wide, prefix), ("narrow", narrow, prefix + "n-")] if narrow else [
        ("", wide, prefix)
    ]  # fmt: skip
    label = html.escape(f"Figure: {html.unescape(text)} Arrow keys go from value to value.")
    frames = [
        f'<div class="scroll {form}" tabindex="0" role="group" aria-label="{label}">\n'
        f"{_inline(svg, text, its_prefix, form == 'narrow')}\n</div>"
        for form, svg, its_prefix in forms
    ]
    return f"<figure>{''.join(frames)}</figure>"


def _inline(svg: str, text: str, prefix: str, narrow: bool) -> str:
    """A figure as an element of the page: with ids of its own, without its style and ground."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<style>.*?</style>\n?", "", svg, flags=re.S)
    svg = re.sub(r'<rect x="0" y="0" width=[^>]*fill="#ffffff"/>\n?', "", svg)
    box = re.search(r'viewBox="0 0 ([0-9]+) ([0-9]+)"', svg)
    wide, high = (int(box[1]), int(box[2])) if box else (800, 600)
    low = ' class="low" preserveAspectRatio="xMinYMin"' if high < LOW * wide and not narrow else ""
    least, most = (0, WIDEST * wide) if narrow else (NARROWEST * wide, wide)
    head = (
        f'<svg role="img" aria-label="{text}"{low} viewBox="0 0 {wide} {high}"\n'
        f' style="max-width:{most:.0f}px;min-width:{least:.0f}px"'
        '\n xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    svg = head + svg[svg.index(">") + 1 :]
    svg = re.sub(r"""( id=['"])""", rf"\g<1>{prefix}", svg)
    return svg.replace("href='#", f"href='#{prefix}").replace("url(#", f"url(#{prefix}").strip()
