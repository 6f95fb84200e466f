"""Markdown -> a page of HTML that needs nothing else: figures with values under the mouse."""

from __future__ import annotations

import html
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote

from markupsafe import Markup

from collect.present.glossary import Marker, Term
from collect.present.gnuplot import channels, dark_style
from collect.present.palette import all_looks
from collect.present.templating import render_html, slug
from collect.present.verdicts import class_of, words
from collect.project import command_from_here, fail

FIGURE = re.compile(r'<p><img src="([^"]*\.svg)" alt="([^"]*)"[^>]*></p>')
HEADING = re.compile(r'<h2 id="([^"]*)">(.*?)</h2>')
# A name at the end of a line of a figure: its place, its colour, and the name.
END_LABEL = re.compile(
    r'<g transform="translate\(([\d.]+),[\d.]+\)" stroke="none" fill="(rgb\([\d,]+\))"[^>]*'
    r'text-anchor="start">\n<text>([^<]+)</text>'
)
# Names right of this share of a figure are out of sight on a narrow screen.
RIGHT = 0.7
# A figure whose height is less than this share of its width may be shown smaller.
LOW = 0.65
# The pages that a page links to: address and text.
Links = Sequence[tuple[str, str]]
# A figure may shrink to this share of its width before its frame scrolls.
NARROWEST = 0.72


def html_of_markdown(markdown: str) -> str:
    """Markdown with tables, and with HTML where it holds some."""
    command = ["cmark-gfm", "--unsafe", "-e", "table"]
    done = subprocess.run(command, input=markdown, capture_output=True, text=True, check=False)
    if done.returncode:
        fail(f"cmark-gfm failed: {done.stderr.strip()}")
    return done.stdout


def page_of_markdown(title: str, markdown: str, folder: Path, links: Links = ()) -> str:
    """A page of Markdown with the figures of its folder inside, its contents and its glossary."""
    body, terms = body_of_markdown(markdown, folder)
    return page_of_body(title, body, links, terms)


def body_of_markdown(markdown: str, folder: Path) -> tuple[str, list[Term]]:
    """Returns Markdown as HTML, and the terms of the glossary that it uses."""
    number = 0
    lines = []
    marker = Marker()
    for line in html_of_markdown(markdown).split("\n"):
        if match := FIGURE.fullmatch(line):
            number += 1
            lines.append(inline_figure(folder / unquote(match[1]), match[2], f"f{number}-"))
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
    for verdict in words():
        pattern = rf"^<td>((?:<strong>)?){re.escape(verdict)}"
        line = re.sub(pattern, rf'<td class="{class_of(verdict)}">\1{verdict}', line)
    # Empty heads of tables are no heads.
    return re.sub(r"<th([^>]*)></th>", r"<td\1></td>", line)


def inline_figure(path: Path, text: str, prefix: str) -> str:
    """A figure as an element of the page: with ids of its own, without its style and ground."""
    if not path.is_file():
        fail(f"{path} is missing: {command_from_here()} report draws it")
    svg = path.read_text(encoding="utf-8")
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<style>.*?</style>\n?", "", svg, flags=re.S)
    svg = re.sub(r'<rect x="0" y="0" width=[^>]*fill="#ffffff"/>\n?', "", svg)
    width = re.search(r'width="(\d+)"', svg)
    pixels = int(width[1]) if width else 800
    box = re.search(r'viewBox="0 0 ([0-9]+) ([0-9]+)"', svg)
    is_low = box and int(box[2]) < LOW * int(box[1])
    low = ' class="low" preserveAspectRatio="xMinYMin"' if is_low else ""
    head = (
        f'<svg role="img" aria-label="{text}"{low} {box[0] if box else ""}\n'
        f' style="max-width:{pixels}px;min-width:{pixels * NARROWEST:.0f}px"'
        '\n xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    svg = head + svg[svg.index(">") + 1 :]
    svg = re.sub(r"""( id=['"])""", rf"\g<1>{prefix}", svg)
    svg = svg.replace("href='#", f"href='#{prefix}").replace("url(#", f"url(#{prefix}")
    label = html.escape(f"Figure: {html.unescape(text)} Arrow keys go from value to value.")
    return (
        f"{_legend(svg, pixels, prefix)}<figure>"
        f'<div class="scroll" tabindex="0" role="group" aria-label="{label}">\n'
        f"{svg.strip()}\n</div></figure>"
    )


def _legend(svg: str, width: int, prefix: str) -> str:
    """The names at the right ends of the lines of a figure, for screens that show its left."""
    names: dict[str, str] = {}
    for place, colour, name in END_LABEL.findall(svg):
        if float(place) > RIGHT * width:
            names.setdefault(name, colour)
    items = [f"<li>{_mark(svg, colour, prefix)}{name}</li>" for name, colour in names.items()]
    return f'<ul class="legend">{"".join(items)}</ul>' if items else ""


def _mark(svg: str, text_colour: str, prefix: str) -> str:
    """The mark of the line whose name has this colour; a piece of the line if it has no marks."""
    drawn = f"<path d='M-7,0 H7' stroke-width='2' stroke='{text_colour}'/>"
    for look in all_looks():
        colour = f"rgb({channels(look.colour)})"
        if f"rgb({channels(look.text_colour)})" == text_colour and f"color='{colour}'" in svg:
            shape = f"{prefix}gpPt{look.mark - 1}"
            drawn = f"<use href='#{shape}' transform='scale(5)' color='{colour}'/>"
            break
    return f'<svg aria-hidden="true" width="16" height="12" viewBox="-8 -6 16 12">{drawn}</svg>'
