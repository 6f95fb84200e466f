"""Markdown -> a page of HTML that needs nothing else: figures with values under the mouse."""

from __future__ import annotations

import html
import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

from markupsafe import Markup

from collect.present.gnuplot import dark_style
from collect.present.templating import render_html, slug
from collect.present.verdicts import class_of, words
from collect.project import command_from_here, fail

FIGURE = re.compile(r'<p><img src="([^"]*\.svg)" alt="([^"]*)"[^>]*></p>')
# A figure may shrink to this share of its width before its frame scrolls.
NARROWEST = 0.72


def html_of_markdown(markdown: str) -> str:
    """Markdown with tables, and with HTML where it holds some."""
    command = ["cmark-gfm", "--unsafe", "-e", "table"]
    done = subprocess.run(command, input=markdown, capture_output=True, text=True, check=False)
    if done.returncode:
        fail(f"cmark-gfm failed: {done.stderr.strip()}")
    return done.stdout


def page_of_markdown(title: str, markdown: str, folder: Path) -> str:
    """A page of Markdown with the figures of its folder inside."""
    body = body_of_markdown(markdown, folder)
    return page_of_body(title, body)


def body_of_markdown(markdown: str, folder: Path) -> str:
    number = 0
    lines = []
    for line in html_of_markdown(markdown).split("\n"):
        if match := FIGURE.fullmatch(line):
            number += 1
            lines.append(inline_figure(folder / unquote(match[1]), match[2], f"f{number}-"))
        else:
            lines.append(_body_line(line))
    return "\n".join(lines)


def page_of_body(title: str, body: str) -> str:
    style = dark_style().removeprefix("<style>").removesuffix("</style>")
    figure_style = style if "<svg" in body else ""
    return render_html(
        "page.html.j2", title=title, body=Markup(body), figure_style=Markup(figure_style)
    )


def _body_line(line: str) -> str:
    if line.startswith("<h2>"):
        return f'<h2 id="{slug(line)}">{line[4:]}'
    if line == "<table>":
        return '<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>'
    if line == "</table>":
        return "</table></div>"
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
    box = re.search(r'viewBox="[^"]*"', svg)
    head = (
        f'<svg role="img" aria-label="{text}" {box[0] if box else ""}\n'
        f' style="max-width:{pixels}px;min-width:{pixels * NARROWEST:.0f}px"'
        '\n xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    svg = head + svg[svg.index(">") + 1 :]
    svg = re.sub(r"""( id=['"])""", rf"\g<1>{prefix}", svg)
    svg = svg.replace("href='#", f"href='#{prefix}").replace("url(#", f"url(#{prefix}")
    label = html.escape(f"Figure: {html.unescape(text)} Arrow keys go from value to value.")
    return (
        f'<figure><div class="scroll" tabindex="0" role="group" aria-label="{label}">\n'
        f"{svg.strip()}\n</div></figure>"
    )
