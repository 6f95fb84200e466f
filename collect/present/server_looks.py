"""The one table of looks: a server has the same colour and the same mark in every figure.

Colours differ in lightness as well as in hue, and marks differ too, so that readers who confuse
colours can tell the servers apart. Text at a line has a darker shade where the line is too pale.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, replace

# Marks, as gnuplot numbers them when filled; one less is the same shape, hollow.
SQUARE, CIRCLE, TRIANGLE, WEDGE, DIAMOND, PENTAGON = 5, 7, 9, 11, 13, 15

PAPER, DARK_PAPER = "#ffffff", "#15181c"


@dataclass(frozen=True)
class Look:
    """The colour of lines and marks, that of text, both on dark pages, and the mark."""

    colour: str
    mark: int
    text: str = ""
    dark: str = ""

    @property
    def text_colour(self) -> str:
        return self.text or self.colour


SERVERS = {
    "iterative": Look("#56b4e9", DIAMOND, "#1c6ea4", "#7cc8f2"),
    "fork": Look("#0072b2", CIRCLE, "", "#4aa3df"),
    "thread": Look("#d55e00", SQUARE, "#b34f00", "#f58a45"),
    "prefork": Look("#009e73", TRIANGLE, "#00795a", "#2fc496"),
    "pool": Look("#cc79a7", PENTAGON, "#a3497a", "#e09cc2"),
    "epoll": Look("#e69f00", WEDGE, "#8a6000", "#f0b53c"),
    "clone": Look("#6a51a3", TRIANGLE, "", "#ab9ce0"),
    "uring": Look("#8c564b", PENTAGON, "", "#cf9a8e"),
    "nginx": Look("#117733", SQUARE, "", "#55b877"),
    "lighttpd": Look("#882255", CIRCLE, "", "#d877a6"),
    "apache-prefork": Look("#86862b", TRIANGLE, "#6d6d22", "#bcbc55"),
    "apache-worker": Look("#aa4499", WEDGE, "", "#d585c8"),
    "apache-event": Look("#661100", DIAMOND, "", "#d98a78"),
    "squid": Look("#b8860b", TRIANGLE, "#8a6508", "#e0b84a"),
    "trafficserver": Look("#2f6f8f", WEDGE, "", "#74b6d6"),
    "floor-fork": Look("#8a8a8a", CIRCLE, "#6e6e6e", "#9a9a9a"),
    "floor-thread": Look("#6e6e6e", SQUARE, "", "#b4b4b4"),
    "floor-one": Look("#444444", DIAMOND, "", "#d0d0d0"),
}

# A server with an option has the look of the option: its panel names the server.
OPTIONS = {
    "accept=shared": Look("#4477aa", CIRCLE, "", "#7fb0e0"),
    "accept=lock": Look("#332288", SQUARE, "", "#9d8fe6"),
    "accept=mutex": Look("#44aa99", TRIANGLE, "#2a7a6d", "#5cc7b5"),
    "accept=pass": Look("#993355", WEDGE, "", "#dd7f9f"),
    "accept=queue": Look("#aa7722", DIAMOND, "#855c17", "#d9a44f"),
    "accept=reuseport": Look("#cc3311", PENTAGON, "#b82d0f", "#f0806a"),
    "share=files": Look("#807dba", CIRCLE, "#5f5ba3", "#a9a6d8"),
    "share=fs": Look("#9e9ac8", SQUARE, "#66619e", "#bdb9e0"),
    "share=memory": Look("#1b7837", DIAMOND, "", "#5ab874"),
    "share=memory-files": Look("#3a9455", PENTAGON, "#2a7a42", "#72c88a"),
    "share=memory-files-fs": Look("#5aae61", WEDGE, "#37783d", "#8ad690"),
    "share=memory-files-fs-signals": Look("#7fbf7b", CIRCLE, "#447a41", "#a5e0a1"),
    "ballast-pages=huge": Look("#b8860b", DIAMOND, "#8a6508", "#e0b84f"),
    "template": Look("#2f6b8a", TRIANGLE, "", "#74b3d4"),
    "share=all": Look("#c9822b", SQUARE, "#8f5b1b", "#e8ab5e"),
    "no-file-cache": Look("#6e6e6e", SQUARE, "", "#b4b4b4"),
    "protocol=simple": Look("#4477aa", CIRCLE, "", "#7fb0e0"),
    "protocol=persistent": Look("#aa7722", DIAMOND, "#855c17", "#d9a44f"),
    "protocol=pipelined": Look("#993355", WEDGE, "", "#dd7f9f"),
    "workers=1": Look("#332288", SQUARE, "", "#9d8fe6"),
    "joinable": Look("#993355", WEDGE, "", "#dd7f9f"),
    "split-writes": Look("#cc3311", PENTAGON, "#b82d0f", "#f0806a"),
    "work8000": Look("#4477aa", CIRCLE, "", "#7fb0e0"),
    "work8000+backlog5": Look("#cc3311", PENTAGON, "#b82d0f", "#f0806a"),
}

# The same server a second time.
COPY = Look("#6e6e6e", WEDGE, "", "#b4b4b4")

# For servers and options that the tables above do not know: each takes the same one everywhere.
# Those of servers are far from the colours of fork and thread.
SPARE = tuple(OPTIONS.values())[:6]
SPARE_OF_SERVERS = tuple(
    replace(OPTIONS[name], mark=mark)
    for name in ("accept=mutex", "accept=pass", "accept=queue", "accept=lock")
    for mark in (WEDGE, DIAMOND, TRIANGLE, PENTAGON, SQUARE, CIRCLE)
)

# Measurements of a report on its own machine.
REPORT = Look("#222222", SQUARE, "", "#e8e8e8")

# The steps of a factor within a row, such as 0, 100 and 1,000 clients: from light to dark.
LEVELS = (
    Look("#8797a8", CIRCLE, "#5d6d7e", "#7d8fa1"),
    Look("#536878", SQUARE, "", "#a9bccd"),
    Look("#1d2b38", DIAMOND, "", "#e3edf7"),
)

# The purposes of the CPU time of a request, in the order of collect/infer/anatomy_table.py.
PURPOSES = (
    Look("#332288", SQUARE, "", "#9d8fe6"),
    Look("#66a5c9", SQUARE, "#1c6ea4", "#7cc8f2"),
    Look("#ddaa33", SQUARE, "#8a6000", "#f0b53c"),
    Look("#44aa99", SQUARE, "#2a7a6d", "#5cc7b5"),
    Look("#aa4466", SQUARE, "", "#e084a4"),
    Look("#999933", SQUARE, "#6d6d22", "#bcbc55"),
    Look("#8577d6", SQUARE, "#5a4fb5", "#b5acf0"),
    Look("#9a9a9a", SQUARE, "#6e6e6e", "#b4b4b4"),
)

# Frames of flame graphs, which hold text.
FRAME_OF_KERNEL, FRAME_OF_USER = "#f2c288", "#a9cdea"

# The other colours of a figure, and what they become on dark pages.
INK, SOFT, GRID = "#222222", "#555555", "#dddddd"
OTHERS = {PAPER: DARK_PAPER, INK: "#e8e8e8", SOFT: "#b5b5b5", GRID: "#3a3f46", "#000000": "#e8e8e8",
          FRAME_OF_KERNEL: "#7a5220", FRAME_OF_USER: "#235a83"}  # fmt: skip


def plain_name(server: str) -> str:
    """The name of a server without its options and its number."""
    return re.sub(r"[+~].*$", "", server)


def options_of(server: str) -> str:
    """The options of a server: "accept=lock" of prefork+accept=lock."""
    return re.sub(r"~[0-9]+$", "", server).partition("+")[2]


def look_of(server: str) -> Look:
    """Returns the look of a server, the same in every figure."""
    if re.search(r"~[0-9]+$", server):
        return COPY
    options = options_of(server)
    table, spare, key = OPTIONS, SPARE, options
    if not options:
        table, spare, key = SERVERS, SPARE_OF_SERVERS, server
    return table.get(key) or spare[zlib.crc32(key.encode()) % len(spare)]


def level_look(number: int, of: int) -> Look:
    """Returns the look of a step of a factor, 0 being the first."""
    return LEVELS[-1] if of == 1 else LEVELS[round(number * (len(LEVELS) - 1) / (of - 1))]


def all_looks() -> list[Look]:
    return [*SERVERS.values(), *OPTIONS.values(), COPY, REPORT, *LEVELS, *PURPOSES]


def dark_colours() -> dict[str, str]:
    """Returns what each colour of a figure becomes on a dark page."""
    dark = dict(OTHERS)
    for look in all_looks():
        dark[look.colour] = dark[look.text_colour] = look.dark
    return dark


def number_of(colour: str) -> int:
    """#0072b2 -> 0x0072b2."""
    return int(colour[1:], 16)
