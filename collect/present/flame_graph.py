"""Flame graphs: the stacks of a server as SVG, a frame as wide as its share of the samples."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.sax.saxutils import escape

from collect.present.chart import BOLD_CHARACTER, SMALL_CHARACTER
from collect.present.gnuplot import channels, dark_style
from collect.present.server_looks import FRAME_OF_KERNEL, FRAME_OF_USER, GRID, INK, SOFT
from collect.readable_numbers import percent_text

WIDTH, MARGIN, ROW = 1000, 10, 18
HEAD = 62
CHARACTER = 6.7  # pixels of a character of 11-pixel text
# A narrower frame is not seen.
LEAST_SHARE = 0.006
KERNEL = "_[k]"
FONT = "'DejaVu Sans', Verdana, sans-serif"


@dataclass
class _Frame:
    """A frame with all that it calls; `samples` counts these, too."""

    name: str
    samples: int = 0
    calls: dict[str, _Frame] = field(default_factory=dict)

    def add(self, names: list[str], samples: int) -> None:
        self.samples += samples
        if names:
            self.calls.setdefault(names[0], _Frame(names[0])).add(names[1:], samples)


@dataclass(frozen=True)
class _Box:
    """A frame's place: its share of the width from `left` on, and its row from the bottom."""

    frame: _Frame
    left: float
    share: float
    row: int


def _boxes(frame: _Frame, all_samples: int, left: float = 0.0, row: int = 0) -> Iterator[_Box]:
    share = frame.samples / all_samples
    if share < LEAST_SHARE:
        return
    yield _Box(frame, left, share, row)
    for name in sorted(frame.calls):
        called = frame.calls[name]
        yield from _boxes(called, all_samples, left, row + 1)
        left += called.samples / all_samples


def flame_graph(title: str, said: str, stacks: Mapping[str, int], width: int = WIDTH) -> str:
    """Returns the image of stacks `program;outermost;...;innermost` and their samples."""
    root = _Frame("all")
    for stack, samples in stacks.items():
        root.add(stack.split(";"), samples)
    boxes = list(_boxes(root, max(root.samples, 1)))
    head = [(line, INK, 18) for line in textwrap.wrap(title, int(width / BOLD_CHARACTER))]
    head += [(line, SOFT, 13) for line in textwrap.wrap(said, int(width / SMALL_CHARACTER))]
    height = HEAD + 21 * (len(head) - 2) + ROW * (1 + max(box.row for box in boxes)) + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}">',
        dark_style(),
        f'<rect x="0" y="0" width="{width}" height="{height}" fill="#ffffff"/>',
        *(_text(14, 26 + 21 * row, *words) for row, words in enumerate(head)),
        f'<g font-family="{FONT}" font-size="11">',
        *(_drawn(box, width, height) for box in boxes),
        "</g>\n</svg>",
    ]
    return "\n".join(lines) + "\n"


def _text(x: float, y: float, words: str, colour: str, size: int) -> str:
    more = ' font-weight="bold"' if colour == INK else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-family="{FONT}" font-size="{size}"{more} '
        f'fill="rgb({channels(colour)})">{escape(words)}</text>'
    )


def _drawn(box: _Box, width: int, height: int) -> str:
    room = width - 2 * MARGIN
    x, wide = MARGIN + box.left * room, box.share * room
    y = height - MARGIN - ROW * (box.row + 1)
    name = box.frame.name.removesuffix(KERNEL)
    in_kernel = box.frame.name.endswith(KERNEL)
    colour = FRAME_OF_KERNEL if in_kernel else FRAME_OF_USER if box.row else GRID
    fits = int((wide - 6) / CHARACTER)
    shown = name if len(name) <= fits else name[: fits - 1] + "…" if fits > 3 else ""
    text = f'<text x="{x + 3:.1f}" y="{y + 13}">{escape(shown)}</text>' if shown else ""
    return (
        f'<g class="value"><title>{escape(name)}: {percent_text(box.share)}</title>'
        f'<rect x="{x:.1f}" y="{y}" width="{max(wide - 0.6, 0.4):.1f}" height="{ROW - 1}" '
        f'fill="rgb({channels(colour)})"/>{text}</g>'
    )
