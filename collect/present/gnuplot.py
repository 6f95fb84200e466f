"""Draws figures with gnuplot, and tidies what it writes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from collect.present.chart import Figure, LineFigure, RowFigure, script_of
from collect.present.server_looks import dark_colours
from collect.project import PROJECT, fail
from collect.readable_numbers import human

PROGRAM = PROJECT / "dcollect.p"
GROUND = re.compile(r'<rect x="0" y="0" width=')


def require(program: str, package: str) -> None:
    """Fails where a program is missing, with the command that installs it."""
    if not shutil.which(program):
        fail(f"{program} is missing: apt-get install {package}")


def write_script(figure: Figure, folder: Path, narrow: bool = False) -> None:
    script = script_of(figure, narrow)
    (folder / f"{figure.name}.gp").write_text(script.parameters, encoding="utf-8")
    for name, text in script.files.items():
        (folder / name).write_text(text, encoding="utf-8")


def draw(figure: Figure, folder: Path, kind: str) -> Path:
    """Draws a figure in a folder that holds its script; returns the file."""
    output = f"{figure.name}.{kind}"
    columns = shutil.get_terminal_size((80, 24)).columns
    words = (
        f"parameters='{figure.name}.gp'; output_kind='{kind}'; output_file='{output}'; "
        f"columns_of_terminal={columns}"
    )
    done = subprocess.run(
        ["gnuplot", "-e", words, str(PROGRAM)],
        cwd=folder,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or not (folder / output).exists():
        fail(f"gnuplot cannot draw {figure.name}: {' '.join(done.stderr.split())}")
    return folder / output


# --- SVG ---


def channels(colour: str) -> str:
    return ",".join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))


def dark_style() -> str:
    """Returns the style that changes the colours of a figure where dark pages are preferred."""
    rules = []
    for light, dark in dark_colours().items():
        rules += [f'[{name}="rgb({channels(light)})"] {{ {name}: {dark} }}'
                  for name in ("stroke", "fill")]  # fmt: skip
        rules.append(f'[color="rgb({channels(light)})"] {{ color: {dark} }}')
    rules += [
        '[fill="#ffffff"] { fill: #15181c }',
        '[color="#FFFFFF"] { color: #15181c }',
        '[stroke="black"] { stroke: #e8e8e8 }',
        '[fill="black"] { fill: #e8e8e8 }',
        '[color="black"] { color: #e8e8e8 }',
    ]
    body = "\n".join(rules)
    return f"<style>\n@media (prefers-color-scheme: dark) {{\n{body}\n}}\n</style>"


def _tidy_line(line: str) -> str:
    line = re.sub(r"<title>gnuplot_plot_[0-9a-z]*</title>", "", line)
    line = re.sub(r"<title>[^<]* using [^<]*</title>", "", line)
    line = re.sub(r" +'", "'", line.lstrip("\t"))
    line = re.sub(r"rgb\([0-9, ]*\)", lambda match: match[0].replace(" ", ""), line)
    line = line.replace(' stroke-linecap="butt" stroke-linejoin="miter"', "")
    line = line.replace(
        'font-family="sans-serif:Bold"', 'font-family="sans-serif" font-weight="bold"'
    )
    line = line.replace(
        'font-family="sans-serif"', "font-family=\"'DejaVu Sans', Verdana, sans-serif\""
    )
    if hover := re.search(r"showHypertext\(evt,'([^']*)'\)", line):
        return f'<g class="value"><title>{hover[1]}</title>'
    return line


def tidy_svg(text: str) -> str:
    """Makes a figure readable on dark pages and by hovering, and half as large.

    Colours stay attributes, so that every program can show the file; a style sheet changes them on
    dark pages. The text that gnuplot would show with a script becomes the title of its point.
    """
    text = re.sub(r"<filter .*?</filter>", "", text, flags=re.S)
    lines: list[str] = []
    styled = False
    for raw in text.split("\n"):
        if re.match(r"<(title>Gnuplot|desc>)", raw.strip()):
            continue
        line = _tidy_line(raw)
        if not line.strip():
            continue
        if not styled and GROUND.match(line):
            styled = True
            lines.append(dark_style())
        empty_group = line == "</g>" and lines and re.fullmatch(r'<g fill="none"[^>]*>', lines[-1])
        if empty_group:
            lines.pop()
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


# --- the terminal ---


def terminal_text(figure: Figure, folder: Path) -> str:
    """A figure as text."""
    if isinstance(figure, RowFigure):
        return _rows_text(figure)
    assert isinstance(figure, LineFigure)
    write_script(figure, folder)
    drawn = draw(figure, folder, "txt").read_text(encoding="utf-8").replace("\f", "")
    lines = [line.rstrip() for line in drawn.split("\n")]
    while lines and not lines[0]:
        lines.pop(0)
    return "\n".join(lines).rstrip("\n") + "\n"


def _rows_text(figure: RowFigure) -> str:
    """Rows as bars of #, with their values."""
    width = shutil.get_terminal_size((80, 24)).columns
    rows = [
        (f"{title}  {line.name}".strip(), mark.value)
        for title, lines in figure.groups
        for line in lines
        for mark in line.marks[-1:]
    ]
    longest = max(len(name) for name, _ in rows)
    room = max(10, width - longest - 10)
    most = max(value for _, value in rows) or 1
    lines = [f"{figure.title}, {figure.x_title}", ""]
    for name, value in rows:
        bar = "#" * (int(value / most * room) + 1)
        lines.append(f"{name:>{longest}} {bar} {human(value)}")
    return "\n".join(lines) + "\n"
