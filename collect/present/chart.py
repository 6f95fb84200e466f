"""A figure as data: panels of lines, or rows of dots and bars; laid out, and told to gnuplot."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from collect.present.scales import Scale, spread_out, thinned
from collect.present.server_looks import Look, number_of

CHARACTER = 8.6  # pixels of a character of 14-pixel text
SMALL_CHARACTER = 7.3  # of 13-pixel text
BOLD_CHARACTER = 11.2  # of 18-pixel bold text
PANEL_CHARACTER = 9.2  # of 14-pixel bold text
# The width of a figure for narrow screens: on one of 400 pixels its text has its full size.
NARROW = 360


@dataclass(frozen=True)
class Point:
    """A value with its interval, and the text under the mouse."""

    x: float
    y: float
    low: float
    high: float
    hollow: bool
    text: str


@dataclass(frozen=True)
class Series:
    """The points of one line in a panel, such as those of a server."""

    name: str
    look: Look
    points: tuple[Point, ...]
    dashed: bool = False
    joined: bool = True
    marked: bool = True


@dataclass(frozen=True)
class Panel:
    """A panel of lines over an x axis."""

    title: str
    series: tuple[Series, ...]
    band: tuple[tuple[float, float, float], ...] = ()  # x, low, high
    line_at: float | None = None

    def points(self) -> list[Point]:
        return [point for series in self.series for point in series.points]


@dataclass
class Figure:
    """The parts that all figures have."""

    name: str
    kind: str
    file: str
    title: str
    subtitle: str
    part: int
    part_text: str

    @property
    def description(self) -> str:
        """The figure in words, for those who do not see it."""
        part = f", {self.part_text}" if self.part_text else ""
        return f"{self.title}{part}. {self.subtitle}"


@dataclass
class LineFigure(Figure):
    """A grid of panels that share their x axis."""

    x_title: str = ""
    x: Scale = field(default_factory=lambda: Scale(0, 1, False, ()))
    y_title: str = ""
    panels: list[Panel] = field(default_factory=list)
    scales: list[Scale] = field(default_factory=list)
    columns: int = 1
    line_at: float | None = None


@dataclass(frozen=True)
class Mark:
    """A value in a row: of a step of a factor where `level` names one."""

    level: int
    value: float
    low: float
    high: float
    hollow: bool
    text: str
    look: Look
    said: str  # the number beside it


@dataclass(frozen=True)
class Line:
    """A row: what it is about, its marks, and words instead of or beside them."""

    name: str
    marks: tuple[Mark, ...] = ()
    notes: tuple[tuple[int, float | None, str], ...] = ()  # level, place, words


@dataclass
class DrawnFigure(Figure):
    """An image that needs no gnuplot. It is drawn when it is asked for."""

    svg: Callable[..., str] = str  # takes a width, in pixels


@dataclass
class RowFigure(Figure):
    """Rows under headings, over one axis of values."""

    x_title: str = ""
    x: Scale = field(default_factory=lambda: Scale(0, 1, False, ()))
    groups: list[tuple[str, list[Line]]] = field(default_factory=list)
    levels: list[tuple[str, Look]] = field(default_factory=list)
    bars: bool = False
    stacked: bool = False  # a mark reaches from its low to its value, and all are in one row
    line_at: float | None = None

    def lines(self) -> list[Line]:
        return [line for _, lines in self.groups for line in lines]


def quoted(text: str) -> str:
    """A string of gnuplot."""
    safe = text.replace("\\", "").replace('"', "”")
    return '"' + safe.replace("\n", "\\n") + '"'


def data_text(text: str) -> str:
    return '"' + text.replace('"', "”").replace("'", "’") + '"'


def _array(name: str, values: Sequence[object]) -> str:
    lines = [f"array {name}[{max(1, len(values))}]"]
    lines += [f"{name}[{i}] = {value}" for i, value in enumerate(values, 1)]
    return "\n".join(lines)


def _scalars(**values: object) -> str:
    return "\n".join(
        f"{name} = {quoted(value) if isinstance(value, str) else value}"
        for name, value in values.items()
    )


def _known(value: float | None) -> str:
    return "NaN" if value is None else f"{value:.10g}"


def _tics(tics: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"'{text}' {value:.10g}" for text, value in tics)


def _wrapped(text: str, pixels: float, character: float) -> str:
    return "\n".join(textwrap.wrap(text, max(12, int(pixels / character)))) if text else ""


def _lines(text: str) -> int:
    return text.count("\n") + 1 if text else 0


def _fitting(title: str, pixels: float) -> str:
    """The title of an axis, without its explanation where that has no room."""
    if len(title) * CHARACTER > pixels:
        return re.sub(r" \((?!logarithmic)[^)]*\)", "", title)
    return title


@dataclass(frozen=True)
class _Head:
    """Title, part and subtitle, broken into lines; heights in pixels."""

    title: str
    part: str
    subtitle: str

    @property
    def part_top(self) -> int:
        return 14 + 24 * _lines(self.title)

    @property
    def subtitle_top(self) -> int:
        return self.part_top + 19 * _lines(self.part)

    @property
    def height(self) -> int:
        return self.subtitle_top + 19 * _lines(self.subtitle) + 10

    @staticmethod
    def of(figure: Figure, width: float) -> _Head:
        room = width - 28
        return _Head(
            _wrapped(figure.title, room, BOLD_CHARACTER),
            _wrapped(figure.part_text, room, SMALL_CHARACTER),
            _wrapped(figure.subtitle, room, SMALL_CHARACTER),
        )

    def script(self) -> str:
        return _scalars(
            title_text=self.title,
            part_text=self.part,
            subtitle_text=self.subtitle,
            part_top=self.part_top,
            subtitle_top=self.subtitle_top,
        )


@dataclass
class Script:
    """The input of gnuplot: parameters and data, by the names of their files."""

    parameters: str
    files: dict[str, str]


# --- legends ---

KEY_ROW = 22
KEY_GAP = 22  # above the legend of a narrow figure


@dataclass(frozen=True)
class _Key:
    """An entry of a legend, with its place in pixels from the left and the top."""

    text: str
    look: Look
    x: float
    y: float
    line: bool = False  # a piece of a line, under the mark if there is one
    marked: bool = True
    dashed: bool = False


def _key_places(texts: Sequence[str], width: float) -> list[tuple[float, int]]:
    """Returns where the entries of a legend are: the pixels from the left, and the row."""
    places: list[tuple[float, int]] = []
    x, row = 20.0, 0
    for text in texts:
        need = CHARACTER * len(text) + 40
        if x > 20 and x + need > width:
            x, row = 20.0, row + 1
        places.append((x, row))
        x += need
    return places


def _key_height(texts: Sequence[str], width: float) -> int:
    return KEY_ROW * (_key_places(texts, width)[-1][1] + 1) if texts else 0


def _level_keys(levels: Sequence[tuple[str, Look]], width: float, top: float) -> list[_Key]:
    places = _key_places([text for text, _ in levels], width)
    return [
        _Key(text, look, x, top + KEY_ROW * row + 4)
        for (text, look), (x, row) in zip(levels, places, strict=True)
    ]


def _series_keys(series: Sequence[Series], top: float) -> list[_Key]:
    """The legend below a panel for a narrow screen, where lines have no names at their ends."""
    return [
        _Key(s.name, s.look, x, top + KEY_ROW * row, s.joined, s.marked, s.dashed)
        for s, (x, row) in zip(series, _key_places([s.name for s in series], NARROW), strict=True)
    ]


def _key_arrays(keys: Sequence[_Key]) -> str:
    return "\n".join(
        [
            f"keys = {len(keys)}",
            _array("key_text", [quoted(key.text) for key in keys]),
            _array("key_x", [f"{key.x:.1f}" for key in keys]),
            _array("key_y", [f"{key.y:.1f}" for key in keys]),
            _array("key_colour", [number_of(key.look.colour) for key in keys]),
            _array("key_ink", [number_of(key.look.text_colour) for key in keys]),
            _array("key_mark", [key.look.mark if key.marked else 0 for key in keys]),
            _array("key_line", [int(key.line) for key in keys]),
            _array("key_dashed", [int(key.dashed) for key in keys]),
        ]
    )


# --- lines ---

MARGIN_FIRST, MARGIN_LEFT, PANEL_GAP = 92, 62, 16
Y_TITLE_LEFT = 72  # from the panel to the title of the y axis
TIC_LENGTH = 6  # the longest number of the y axis that the margins have room for
FOOT = 56
TEXT_ROW = 21


@dataclass(frozen=True)
class _Grid:
    """The places of panels in pixels. On a narrow screen the title of the y axis is above each
    panel, and the legend is below it."""

    columns: int
    margin_left: float  # of a panel in its cell
    shift: float  # of the first cell
    panel_width: float
    panel_height: float
    cell_width: float
    y_title_row: int = 0

    @property
    def width(self) -> float:
        return self.columns * self.cell_width + self.shift

    @staticmethod
    def wide(figure: LineFigure, margin_left: float) -> _Grid:
        columns = min(figure.columns, len(figure.panels))
        rows = math.ceil(len(figure.panels) / columns)
        panel_width = {1: 660, 2: 330}.get(figure.columns, 210)
        label_width = max(len(s.name) for panel in figure.panels for s in panel.series)
        cell_width = margin_left + panel_width + 26 + CHARACTER * label_width
        shift = MARGIN_FIRST - MARGIN_LEFT
        height = 330 if rows == 1 else 230
        return _Grid(columns, margin_left, shift, panel_width, height, cell_width)

    @staticmethod
    def narrow(figure: LineFigure, margin_left: float) -> _Grid:
        panel_width = NARROW - margin_left - 24
        row = TEXT_ROW if figure.y_title else 0
        return _Grid(1, margin_left, 0, panel_width, 220, NARROW, row)


def _unnamed(panel: Panel) -> Panel:
    return replace(panel, series=tuple(replace(series, name="") for series in panel.series))


@dataclass(frozen=True)
class _Around:
    """The texts above and below each panel: its title, the title of the x axis, its legend."""

    titles: list[str]
    title_row: int
    x_title: str
    named: list[list[Series]]

    @staticmethod
    def of(figure: LineFigure, grid: _Grid, narrow: bool) -> _Around:
        room = grid.cell_width
        titles = [_wrapped(panel.title, room - 20, PANEL_CHARACTER) for panel in figure.panels]
        x_title = _fitting(figure.x_title, room)
        if not narrow:
            return _Around(titles, 18, x_title, [[] for _ in figure.panels])
        named = [[s for s in panel.series if s.name] for panel in figure.panels]
        return _Around(titles, TEXT_ROW, _wrapped(x_title, grid.panel_width, CHARACTER), named)

    @property
    def head(self) -> int:
        return PANEL_GAP + self.title_row * max(map(_lines, self.titles))

    def arrays(self, up: int) -> str:
        """The titles, and how many pixels above its panel each begins, if it has one line `up`."""
        ups = [up + self.title_row * max(_lines(title) - 1, 0) for title in self.titles]
        titles = [quoted(title) for title in self.titles]
        return "\n".join([_array("panel_title", titles), _array("panel_title_up", ups)])

    def keys(self, tops: Sequence[float], below: float) -> list[_Key]:
        """The legends, which begin so far below the top of each panel."""
        legends = zip(self.named, tops, strict=True)
        return [key for series, top in legends for key in _series_keys(series, top + below)]

    @property
    def foot(self) -> int:
        return FOOT + TEXT_ROW * max(_lines(self.x_title) - 1, 0)

    @property
    def legend(self) -> int:
        height = max(_key_height([s.name for s in series], NARROW) for series in self.named)
        return height + KEY_GAP if height else 0


def line_script(figure: LineFigure, narrow: bool = False) -> Script:
    """Lays out a figure of lines."""
    panels = figure.panels
    longest = max(len(text) for scale in figure.scales for text, _ in scale.tics)
    margin_left = MARGIN_LEFT + CHARACTER * max(longest - TIC_LENGTH, 0)
    grid = _Grid.narrow(figure, margin_left) if narrow else _Grid.wide(figure, margin_left)
    columns, width, panel_height = grid.columns, grid.width, grid.panel_height
    head, around = _Head.of(figure, width), _Around.of(figure, grid, narrow)
    panel_head = around.head + grid.y_title_row
    cell_height = panel_head + panel_height + around.foot + around.legend
    height = head.height + math.ceil(len(panels) / columns) * cell_height
    left = [(grid.shift + p % columns * grid.cell_width + margin_left) / width
            for p in range(len(panels))]  # fmt: skip
    tops = [head.height + p // columns * cell_height + panel_head for p in range(len(panels))]
    keys = around.keys(tops, panel_height + around.foot + KEY_GAP)
    x = thinned(figure.x, grid.panel_width) if narrow else figure.x
    if narrow:
        panels = [_unnamed(panel) for panel in panels]
    scalars = _scalars(
        x_title=around.x_title,
        y_title=figure.y_title,
        y_title_left=Y_TITLE_LEFT + margin_left - MARGIN_LEFT,
        y_title_above=grid.y_title_row,
        data=f"{figure.name}.dat",
        labels=f"{figure.name}.labels",
        bands=f"{figure.name}.bands",
        panels=len(panels),
        columns=columns,
        width=round(width),
        height=round(height),
        x_low=figure.x.low,
        x_high=figure.x.high,
        x_log=int(figure.x.log),
        panel_wide=grid.panel_width / width,
        panel_high=panel_height / height,
    )
    parameters = [
        "form = 'lines'",
        head.script(),
        scalars,
        f"ratio_line = {_known(figure.line_at)}",
        f'x_tics = "{_tics(x.tics)}"',
        _array("panel_left", [f"{v:.6f}" for v in left]),
        _array("panel_top", [f"{1 - top / height:.6f}" for top in tops]),
        around.arrays(14 + grid.y_title_row),
        _panel_arrays(panels, figure.scales),
        _key_arrays(keys),
    ]
    return Script("\n".join(parameters) + "\n", _line_files(figure, panels, panel_height))


def _line_files(figure: LineFigure, panels: Sequence[Panel], pixels: float) -> dict[str, str]:
    """The data of the lines; `pixels` is the height of a panel."""
    every = [series for panel in panels for series in panel.series]
    return {
        f"{figure.name}.dat": _blocks([_points(series, figure) for series in every]),
        f"{figure.name}.labels": _blocks(
            [_end_labels(panel, scale, figure.x, pixels)
             for panel, scale in zip(panels, figure.scales, strict=True)]
        ),
        f"{figure.name}.bands": _blocks(
            ["".join(f"{x:.10g} {low:.10g} {high:.10g}\n" for x, low, high in panel.band)
             or "NaN NaN NaN\n" for panel in panels]
        ),
    }  # fmt: skip


def _panel_arrays(panels: Sequence[Panel], scales: Sequence[Scale]) -> str:
    ends = [0]
    for panel in panels:
        ends.append(ends[-1] + len(panel.series))
    return "\n".join(
        [
            _array("series_from", [n + 1 for n in ends[:-1]]),
            _array("series_to", ends[1:]),
            _array("y_low", [f"{scale.low:.10g}" for scale in scales]),
            _array("y_high", [f"{scale.high:.10g}" for scale in scales]),
            _array("y_log", [int(scale.log) for scale in scales]),
            _array("y_tics", [f'"{_tics(scale.tics)}"' for scale in scales]),
            _array("line_at", [_known(panel.line_at) for panel in panels]),
            _series_arrays([series for panel in panels for series in panel.series]),
        ]
    )


def _series_arrays(every: Sequence[Series]) -> str:
    looks = [series.look for series in every]
    return "\n".join(
        [
            _array("series_name", [quoted(series.name) for series in every]),
            _array("colour", [number_of(look.colour) for look in looks]),
            _array("mark", [look.mark for look in looks]),
            _array("dashed", [int(series.dashed) for series in every]),
            _array("joined", [int(series.joined) for series in every]),
            _array("marked", [int(series.marked) for series in every]),
        ]
    )


def _blocks(blocks: Sequence[str]) -> str:
    return "\n\n".join(blocks)


def _points(series: Series, figure: LineFigure) -> str:
    floor = min(scale.low for scale in figure.scales)
    return (
        "".join(
            f"{p.x:.7g} {p.y:.7g} {max(p.low, floor):.7g} {p.high:.7g} {int(p.hollow)} "
            f"{data_text(p.text)}\n"
            for p in series.points
        )
        or 'NaN NaN NaN NaN 0 ""\n'
    )


def _end_labels(panel: Panel, y: Scale, x: Scale, pixels: float) -> str:
    """The names at the ends of the lines, and the ends: x, y, colour, name, x and y of the end."""
    named = [s for s in panel.series if s.points and s.name]
    if not named:
        # gnuplot crashes on a block of labels without a place.
        return f'{x.low:.10g} {y.low:.10g} 0 "" {x.low:.10g} {y.low:.10g}\n'
    ends = [max(s.points, key=lambda point: point.x) for s in named]
    wanted = [min(max(y.share(end.y), 0.0), 1.0) for end in ends]
    places = spread_out(wanted, 19 / pixels, 0.03, 0.97)
    place = x.value(0.9995)  # gnuplot leaves out what lies beyond the axis
    return "".join(
        f"{place:.10g} {y.value(where):.10g} {number_of(s.look.text_colour)} {data_text(s.name)} "
        f"{end.x:.10g} {min(max(end.y, y.low), y.high):.10g}\n"
        for s, end, where in zip(named, ends, places, strict=True)
    )


# --- rows ---

ROW, LEVEL_ROW, GROUP_HEAD, ROWS_WIDE = 24, 17, 34, 560
NAME_ROW = 22  # of a name that is above its row


@dataclass(frozen=True)
class _Columns:
    """The columns of rows in pixels: names, axis, and the numbers right of it."""

    left: float
    axis: float
    right: float

    @property
    def width(self) -> float:
        return self.left + self.axis + self.right

    @staticmethod
    def wide(figure: RowFigure) -> _Columns:
        lines = figure.lines()
        notes = [words for line in lines for _, _, words in line.notes]
        right = _said_width(lines)
        if notes:
            right = max(right, SMALL_CHARACTER * max(map(len, notes)) - ROWS_WIDE * 0.5)
        return _Columns(28 + CHARACTER * max(len(line.name) for line in lines), ROWS_WIDE, right)

    @staticmethod
    def narrow(figure: RowFigure) -> _Columns:
        left, right = 20, _said_width(figure.lines())
        return _Columns(left, NARROW - left - right, right)


def _said_width(lines: Sequence[Line]) -> float:
    said = [mark.said for line in lines for mark in line.marks]
    return 24 + max((CHARACTER * len(text) for text in said), default=0)


def _above(line: Line, figure: RowFigure) -> str:
    """The words above a row on a narrow screen: its name, and its notes, those at a mark with
    the level of the mark."""
    notes = []
    for level, place, words in line.notes:
        has_level = place is not None and level < len(figure.levels)
        of = f"{figure.levels[level][0]}: " if has_level else ""
        notes.append(_wrapped(f"{of}{words}", NARROW - 28, CHARACTER))
    return "\n".join([line.name, *notes])


Placed = list[tuple[float, str]]


def _row_places(
    figure: RowFigure, row_pixels: int, width: float, narrow: bool
) -> tuple[float, list[tuple[float, Line]], Placed, Placed]:
    """Returns the height of all rows, and where rows, names and headings are; in rows."""
    y = 0.0
    places: list[tuple[float, Line]] = []
    names: Placed = []
    headings: Placed = []
    for title, lines in figure.groups:
        if title:
            words = _wrapped(title, width - 28, PANEL_CHARACTER)
            more = TEXT_ROW * (_lines(words) - 1)
            y += (GROUP_HEAD + more) / row_pixels
            headings.append((y - (8 + more) / row_pixels, words))
        for line in lines:
            if narrow:
                name = _above(line, figure)
                names.append((y + 12 / row_pixels, name))
                y += (NAME_ROW + TEXT_ROW * (_lines(name) - 1)) / row_pixels
                places.append((y + 0.5, replace(line, notes=())))
            else:
                names.append((y + 0.5, line.name))
                places.append((y + 0.5, line))
            y += 1
    return y, places, names, headings


def _placed_arrays(words: str, places: str, placed: Placed) -> str:
    ats = [f"{at:.4f}" for at, _ in placed]
    return "\n".join([_array(words, [quoted(text) for _, text in placed]), _array(places, ats)])


def row_script(figure: RowFigure, narrow: bool = False) -> Script:
    """Lays out a figure of rows. On a narrow screen names are above their rows."""
    levels = 1 if figure.stacked else max(1, len(figure.levels))
    row_pixels = max(ROW, LEVEL_ROW * levels)
    columns = _Columns.narrow(figure) if narrow else _Columns.wide(figure)
    width = columns.width
    head = _Head.of(figure, width)
    x = thinned(figure.x, columns.axis) if narrow else figure.x
    named_levels = [(text, look) for text, look in figure.levels if text]
    key_height = _key_height([text for text, _ in named_levels], width)
    top = head.height + (0 if narrow else key_height)
    y, places, names, headings = _row_places(figure, row_pixels, width, narrow)
    x_title = _wrapped(figure.x_title, NARROW - 28, CHARACTER) if narrow else figure.x_title
    foot = FOOT + TEXT_ROW * max(_lines(x_title) - 1, 0)
    bottom = foot + (key_height + KEY_GAP if narrow and key_height else 0)
    height = top + y * row_pixels + bottom
    below = height - bottom + foot + KEY_GAP
    keys = _level_keys(named_levels, width, below if narrow else head.height)
    parameters = [
        "form = 'rows'",
        head.script(),
        _scalars(
            x_title=x_title,
            data=f"{figure.name}.dat",
            labels=f"{figure.name}.labels",
            width=round(width),
            height=round(height),
            x_low=x.low,
            x_high=x.high,
            x_log=int(x.log),
            rows_high=y,
            rows_left=columns.left / width,
            rows_right=(columns.left + columns.axis) / width,
            rows_top=1 - top / height,
            rows_bottom=bottom / height,
            bars=int(figure.bars),
            stacked=int(figure.stacked),
            names_above=int(narrow),
            headings=len(headings),
        ),
        f"line_at = {_known(figure.line_at)}",
        f'x_tics = "{_tics(x.tics)}"',
        f"rows = {len(places)}",
        _placed_arrays("row_name", "row_at", names),
        _placed_arrays("heading", "heading_at", headings),
        _key_arrays(keys),
    ]
    return Script("\n".join(parameters) + "\n", _row_files(figure, places, levels, x))


def _row_files(
    figure: RowFigure, places: Sequence[tuple[float, Line]], levels: int, x: Scale
) -> dict[str, str]:
    labels = "".join(_notes(at, line, levels, x) for at, line in places)
    return {
        f"{figure.name}.dat": "".join(_marks(at, line, levels, figure) for at, line in places),
        f"{figure.name}.labels": labels or f'{x.low:.10g} 0 ""\n',
    }


def _level_place(at: float, level: int, levels: int) -> float:
    return at + (level - (levels - 1) / 2) * 0.76 / levels


def _marks(at: float, line: Line, levels: int, figure: RowFigure) -> str:
    x = figure.x
    last = x.value(0.999)  # gnuplot leaves out words that rounding puts behind the axis
    return "".join(
        f"{mark.value:.7g} {at if figure.stacked else _level_place(at, mark.level, levels):.4f} "
        f"{max(mark.low, x.low):.7g} {min(mark.high, x.high):.7g} {int(mark.hollow)} "
        f"{data_text(mark.text)} {number_of(mark.look.colour)} {mark.look.mark} "
        f"{data_text(mark.said)} {min(max(mark.high, mark.value), last):.7g}\n"
        for mark in line.marks
    )


def _notes(at: float, line: Line, levels: int, x: Scale) -> str:
    first = x.value(0.001)  # gnuplot leaves out words that rounding puts before the axis
    return "".join(
        f"{first if place is None else place:.7g} {_level_place(at, level, levels):.4f} "
        f"{data_text(words)}\n"
        for level, place, words in line.notes
    )


def script_of(figure: Figure, narrow: bool = False) -> Script:
    if isinstance(figure, LineFigure):
        return line_script(figure, narrow)
    assert isinstance(figure, RowFigure)
    return row_script(figure, narrow)
