"""plot.tree: a decision tree as boxes with what is asked, the shares of the classes as bars, and how many rows came.

Sizes are in points at the size of the letters: texts are measured, layout.py places boxes of these sizes, and the
figure gets the room that they need. On given axes that have less, the letters shrink with everything else, so that
nothing ever overlaps; on axes that have more, the boxes move apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules import check
from kernelrules.export.branches import named_tree
from kernelrules.plot import canvas
from kernelrules.plot.layout import depths_of, tidy
from kernelrules.results import PruneCV, Tree
from kernelrules.results.rule_text import number_text
from kernelrules.results.tree_text import NamedTree

__all__ = ["tree"]

_DIRECTIONS = ("auto", "down", "right")
_MOST_DOWN = 8  # leaves that stand side by side well
_MOST_INCHES = 100.0  # of a figure; larger drawings shrink
_MOST_NAMED, _WIDEST_LEGEND = 10, 60  # classes in the legend, and its width in letter sizes; leaves name them too
_BAR = 5.0, 0.62  # width and height of a bar, in letter sizes
_ROW, _PAD, _SPACE = 1.5, 0.45, 0.6


def tree(
    t: Tree | PruneCV,
    ax: Any = None,
    *,
    feature_names: Any = None,
    class_names: Any = None,
    max_depth: int | None = None,
    direction: str = "auto",
    digits: int = 4,
    fontsize: float = 8.0,
) -> Any:
    """Draw a decision tree.

    A split is a box with its question; rows of which it is true go left (or up), others right (or down). A leaf says
    what it predicts. Bars are the shares of the classes, or of a regression the place of the value between the smallest
    and the largest of the tree. Lines are as thick as the share of the rows that take them.

    Parameters
    ----------
    t : Tree or PruneCV
        What to draw.
    ax : matplotlib.axes.Axes, optional
        Where; None makes a figure that is large enough for every letter to be read.
    feature_names : sequence of str, optional
        What to call the columns; default: the names that the data had.
    class_names : sequence of str, optional
        What to call the classes, in the order of t.classes.
    max_depth : int, optional
        Splits that many steps below the root are drawn as leaves with three dots.
    direction : {"auto", "down", "right"}
        Where the tree grows: "auto" is down for up to eight leaves, else to the right, where texts have more room.
    digits : int
        Of thresholds; more where it takes more to tell two of the same column apart.
    fontsize : float
        Of the letters, in points.

    Returns
    -------
    matplotlib.axes.Axes
        What was drawn on.

    Examples
    --------
    >>> from kernelrules import plot, tree
    >>> grown = tree.grow([["yes", 20], ["no", 30], ["no", 50], ["yes", 60]], ["high", "low", "medium", "high"])
    >>> ax = plot.tree(grown, feature_names=["contact", "age"])
    >>> [text.get_text() for text in ax.texts if " " in text.get_text()][:3]
    ['contact = no', 'n = 4', 'age ≤ 40']
    """
    t = t.tree if isinstance(t, PruneCV) else t
    if not isinstance(t, Tree):
        raise TypeError(f"t must be a Tree or a PruneCV, got {type(t).__name__}")
    check.one_of(direction, "direction", *_DIRECTIONS)
    limit = None if max_depth is None else check.whole(max_depth, "max_depth", 0)
    check.whole(digits, "digits", 1)
    size = check.positive(fontsize, "fontsize")
    named = named_tree(t, feature_names, class_names, exact=False, digits=digits)
    shown = _Shown.of(t, limit)
    if direction == "auto":
        direction = "down" if (shown.left < 0).sum() <= _MOST_DOWN else "right"
    drawing = _Drawing(named, shown, direction, size)
    return drawing.draw(ax)


@dataclass(frozen=True)
class _Shown:
    """Return the nodes to draw, renumbered: their indices in the tree, and their children."""

    node: np.ndarray
    left: np.ndarray
    right: np.ndarray
    depth: np.ndarray

    @classmethod
    def of(cls, t: Tree, limit: int | None) -> _Shown:
        depth = depths_of(t.left, t.right)
        node = np.arange(t.n_nodes) if limit is None else np.flatnonzero(depth <= limit)
        place = np.full(t.n_nodes + 1, -1)  # the last for -1
        place[node] = np.arange(len(node))
        return cls(node, place[t.left[node]], place[t.right[node]], depth[node])


@dataclass(frozen=True)
class _Piece:
    """A text, or a bar if `text` is None."""

    text: str | None
    bold: bool = False
    colour: str = canvas.DARK


class _Drawing:
    """Boxes with lines of pieces, and their positions; lengths are in points."""

    def __init__(self, named: NamedTree, shown: _Shown, direction: str, size: float) -> None:
        self.named, self.tree, self.shown, self.down, self.size = named, named.tree, shown, direction == "down", size
        self.width_of = _measure(size)
        classes = self.tree.classes
        self.colours = canvas.class_colours(1 if classes is None else len(classes))
        self.rows = [self._rows_of(place) for place in range(len(shown.node))]
        self.widths = np.array([max(map(self._row_width, rows)) + 2 * _PAD * size for rows in self.rows])
        self.heights = np.array([(len(rows) * _ROW + _PAD) * size for rows in self.rows])
        self._place()

    # ---- what the boxes say -----------------------------------------------------------------------------------------

    def _rows_of(self, place: int) -> list[list[_Piece]]:
        t, node = self.tree, int(self.shown.node[place])
        bar = [] if t.classes is None and np.ndim(t.value[node]) else [_Piece(None)]
        rows = number_text(float(t.n_samples[node]), digits=5)
        if self.shown.left[place] >= 0:
            return [
                [_Piece(canvas.one_line(self.named.split_text(node)))],
                [*bar, _Piece(f"n = {rows}", colour=canvas.GREY)],
            ]
        says = canvas.one_line(self.named.prediction_text(node)) + (" …" if t.left[node] >= 0 else "")
        count = f"n = {rows}" if t.classes is None else f"{t.value[node].max():.0%} of {rows}"
        answer, figures = _Piece(says, bold=True), _Piece(count, colour=canvas.GREY)
        return [[answer], bar, [figures]] if self.down and bar else [[*bar, answer, figures]]

    def _row_width(self, row: list[_Piece]) -> float:
        widths = (_BAR[0] * self.size if p.text is None else self.width_of(p.text, p.bold) for p in row)
        return sum(widths) + _SPACE * self.size * (len(row) - 1)

    # ---- where they stand -------------------------------------------------------------------------------------------

    def _place(self) -> None:
        """Return the centres of the boxes, and the extent of each depth."""
        shown, size = self.shown, self.size
        across, along = (self.widths, self.heights) if self.down else (self.heights, self.widths)
        middles = tidy(shown.left, shown.right, across, gap=(1.0 if self.down else 0.45) * size)
        thick = np.zeros(shown.depth.max() + 1)
        np.maximum.at(thick, shown.depth, along)
        between = 2.6 * size
        starts = np.concatenate([[0.0], np.cumsum(thick + between)[:-1]])
        self.ends = starts + thick
        margin = size
        breadth, length = (middles + across / 2).max() + 2 * margin, self.ends[-1] + 2 * margin
        self._place_legend(breadth if self.down else length)
        if self.down:
            self.x, self.y = middles + margin, starts[shown.depth] + along / 2 + margin + self.top
            self.extent = (breadth, length + self.top)
        else:
            self.x, self.y = starts[shown.depth] + along / 2 + margin, middles + margin + self.top
            self.extent = (length, breadth + self.top)
        self.ends += margin + (self.top if self.down else 0.0)
        beside = max(self.legend_width - self.extent[0], 0.0) / 2
        self.x += beside
        self.ends += 0.0 if self.down else beside
        self.extent = (self.extent[0] + 2 * beside, self.extent[1])

    def _place_legend(self, width: float) -> None:
        """Add a legend of the classes above a tree of this width, if they are few and short."""
        classes = self.tree.classes
        few = classes is not None and len(classes) <= _MOST_NAMED
        names = (self.named.names.class_names or classes) if few else ()
        self.legend = [canvas.one_line(str(name)) for name in names]
        self.legend_width = sum(self.width_of(name, False) + 3.4 * self.size for name in self.legend)
        if self.legend_width > max(width, _WIDEST_LEGEND * self.size):
            self.legend, self.legend_width = [], 0.0
        self.top = 2.2 * self.size if self.legend else 0.0

    # ---- the drawing ------------------------------------------------------------------------------------------------

    def draw(self, ax: Any) -> Any:
        width, height = self.extent
        shrink = min(1.0, 72 * _MOST_INCHES / max(width, height))
        ax = canvas.axes_for(ax, (width * shrink / 72, height * shrink / 72), bare=True)
        room = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
        room_x, room_y = max(room.width, 1e-3) * 72, max(room.height, 1e-3) * 72
        scale = min(1.0, room_x / width, room_y / height)
        self.kx, self.ky = scale * width / room_x, scale * height / room_y  # a point of a box on these axes
        self.letters = self.size * scale
        ax.set(xlim=(0, width), ylim=(height, 0))
        ax.set_axis_off()
        self._draw_lines(ax)
        for place in range(len(self.rows)):
            self._draw_box(ax, place)
        self._draw_legend(ax)
        return ax

    def _draw_box(self, ax: Any, place: int) -> None:
        patches, size = canvas.matplotlib("patches"), self.size
        node, is_leaf = int(self.shown.node[place]), self.shown.left[place] < 0
        width, height = self.widths[place] * self.kx, self.heights[place] * self.ky
        corner = self.x[place] - width / 2, self.y[place] - height / 2
        face = 0.86 + 0.14 * self._main_colour(node) if is_leaf else "white"
        box = patches.Rectangle(corner, width, height, facecolor=face, edgecolor=canvas.GREY, linewidth=0.6, zorder=2)
        box.set_gid(f"node-{node}")
        ax.add_artist(box)
        for k, row in enumerate(self.rows[place]):
            x = self.x[place] - self._row_width(row) / 2 * self.kx
            y = corner[1] + (_PAD / 2 + (k + 0.5) * _ROW) * size * self.ky
            for piece in row:
                if piece.text is None:
                    self._draw_bar(ax, node, x, y)
                    x += (_BAR[0] + _SPACE) * size * self.kx
                    continue
                self._write(ax, x, y, piece)
                x += (self.width_of(piece.text, piece.bold) + _SPACE * size) * self.kx

    def _write(self, ax: Any, x: float, y: float, piece: _Piece, **how: Any) -> None:
        weight = "bold" if piece.bold else "normal"
        style = {"fontsize": self.letters, "color": piece.colour, "fontweight": weight, "va": "center_baseline"} | how
        ax.text(x, y, piece.text, parse_math=False, usetex=False, zorder=4, **style)

    def _main_colour(self, node: int) -> np.ndarray:
        t = self.tree
        return self.colours[0 if t.classes is None else t.value[node].argmax()]

    def _draw_bar(self, ax: Any, node: int, x: float, y: float) -> None:
        rectangle, value = canvas.matplotlib("patches").Rectangle, self.tree.value[node]
        width, height = _BAR[0] * self.size * self.kx, _BAR[1] * self.size * self.ky
        if self.tree.classes is None:
            low, high = np.nanmin(self.tree.value), np.nanmax(self.tree.value)
            shares, colours = [(value - low) / (high - low) if high > low else 0.5], self.colours
            ax.add_artist(rectangle((x, y - height / 2), width, height, facecolor="#dddddd", linewidth=0, zorder=3))
        else:
            shares, colours = value / value.sum(), self.colours
        start = x
        for share, colour in zip(shares, colours, strict=True):
            if share > 0:
                part = rectangle(
                    (start, y - height / 2), share * width, height, facecolor=colour, linewidth=0, zorder=3
                )
                part.set_gid(f"share-{node}")
                ax.add_artist(part)
            start += share * width

    def _draw_lines(self, ax: Any) -> None:
        path, patches = canvas.matplotlib("path").Path, canvas.matplotlib("patches")
        shown, all_rows = self.shown, self.tree.weight[0]
        codes = [path.MOVETO, path.LINETO, path.CURVE4, path.CURVE4, path.CURVE4]
        for parent in np.flatnonzero(shown.left >= 0):
            for child, word in ((shown.left[parent], "yes"), (shown.right[parent], "no")):
                points = self._way(int(parent), int(child))
                share = self.tree.weight[shown.node[child]] / all_rows if all_rows > 0 else 0.0
                line = patches.PathPatch(
                    path(points, codes), facecolor="none", edgecolor="#aaaaaa", linewidth=0.5 + 3.5 * share, zorder=1
                )
                line.set_gid(f"line-{shown.node[child]}")
                ax.add_artist(line)
                if parent == 0:
                    self._draw_word(ax, points, word)

    def _way(self, parent: int, child: int) -> list[tuple[float, float]]:
        """Draw an edge: straight to the end of the parent's depth, clear of boxes, then curved."""
        (x0, y0), (x1, y1) = (self.x[parent], self.y[parent]), (self.x[child], self.y[child])
        end = self.ends[self.shown.depth[parent]]
        if self.down:
            y1 -= self.heights[child] / 2 * self.ky
            middle = (end + y1) / 2
            return [(x0, y0), (x0, end), (x0, middle), (x1, middle), (x1, y1)]
        x1 -= self.widths[child] / 2 * self.kx
        middle = (end + x1) / 2
        return [(x0, y0), (end, y0), (middle, y0), (middle, y1), (x1, y1)]

    def _draw_word(self, ax: Any, points: list[tuple[float, float]], word: str) -> None:
        """Return the position of an edge label: at the outer side of the child, between the depths."""
        (x0, y0), (x, y) = points[1], points[-1]
        piece, x_away, y_away = _Piece(word, colour=canvas.GREY), 0.4 * self.size * self.kx, 0.4 * self.size * self.ky
        if self.down:
            first = x < x0
            place = {"ha": "right" if first else "left", "va": "bottom"}
            self._write(ax, x + (-x_away if first else x_away), y - y_away, piece, **place)
        else:
            first = y < y0
            place = {"ha": "right", "va": "bottom" if first else "top"}
            self._write(ax, x - x_away, y + (-y_away if first else y_away), piece, **place)

    def _draw_legend(self, ax: Any) -> None:
        x, y, size = 0.8 * self.size, 1.4 * self.size, self.size
        for name, colour in zip(self.legend, self.colours, strict=False):
            square = canvas.matplotlib("patches").Rectangle(
                (x, y - 0.4 * size * self.ky), 0.8 * size * self.kx, 0.8 * size * self.ky, facecolor=colour, linewidth=0
            )
            square.set_gid("legend")
            ax.add_artist(square)
            self._write(ax, x + 1.3 * size * self.kx, y, _Piece(name))
            x += self.width_of(name, False) + 3.4 * size


def _measure(size: float) -> Callable[[str, bool], float]:
    """Return a function that measures the width of a text in points."""
    to_path = canvas.matplotlib("textpath").text_to_path
    fonts = {
        bold: canvas.matplotlib("font_manager").FontProperties(size=size, weight="bold" if bold else "normal")
        for bold in (False, True)
    }
    known: dict[tuple[str, bool], float] = {}

    def width(text: str, bold: bool) -> float:
        if (text, bold) not in known:
            known[text, bold] = 1.04 * to_path.get_text_width_height_descent(text, fonts[bold], ismath=False)[0]
        return known[text, bold]

    return width
