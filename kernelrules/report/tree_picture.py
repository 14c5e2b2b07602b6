"""The picture of a tree: the root at the left, questions in boxes, branches as wide as the share of rows that takes
them, leaves with what they predict and a bar of their classes. What does not fit is one box that says how much it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelrules.export.branches import NamedTree
from kernelrules.report.svg import PALETTE, Drawing
from kernelrules.results import Tree
from kernelrules.results.rule_text import number_text
from kernelrules.results.show import short

__all__ = ["draw_tree"]

_MAX_LEAVES, _MAX_DEPTH = 14, 4  # of the drawing
_WIDTH, _HEIGHT = 150.0, 52.0  # of a box
_ACROSS, _DOWN, _EDGE = 198.0, 64.0, 10.0
_LETTERS = 17
_WIDEST_BRANCH = 24.0


@dataclass(eq=False)
class _Node:
    """A drawn node: its number, its children (none if it is drawn as a leaf), and its position."""

    number: int
    depth: int
    children: list[_Node]
    y: float = 0.0

    @property
    def x(self) -> float:
        """Left edge of its box."""
        return _EDGE + self.depth * _ACROSS


def draw_tree(tree: Tree, title: str) -> tuple[str, bool]:
    """Return an SVG of the tree with named categories, and whether all of the tree is drawn."""
    words = NamedTree(tree, None, None, exact=False)
    root, n_drawn = _chosen(tree)
    leaves = _leaves(root)
    for place, leaf in enumerate(leaves):
        leaf.y = _EDGE + place * _DOWN + _HEIGHT / 2
    _centre(root)
    width = max(leaf.x for leaf in leaves) + _WIDTH + _EDGE
    height = (len(leaves) - 1) * _DOWN + _HEIGHT + 2 * _EDGE
    first = words.split_text(0) if tree.n_leaves > 1 else words.prediction_text(0)
    description = f"{tree.n_leaves} leaves, depth {tree.depth}; the root says: {first}"
    drawing = Drawing(width, height, title, description, least=0.9 * width, class_="tree")
    _branches(drawing, root, tree)
    _boxes(drawing, root, words)
    return str(drawing), n_drawn == tree.n_nodes


def _chosen(tree: Tree) -> tuple[_Node, int]:
    """Return the nodes to draw: splits with the most rows first, up to the largest number of leaves."""
    root = _Node(0, 0, [])
    waiting, n_leaves, n_drawn = [root], 1, 1
    while waiting and n_leaves < _MAX_LEAVES:
        waiting.sort(key=lambda node: (float(tree.n_samples[node.number]), -node.number))
        node = waiting.pop()
        if tree.left[node.number] < 0 or node.depth == _MAX_DEPTH:
            continue
        node.children = [_Node(int(child[node.number]), node.depth + 1, []) for child in (tree.left, tree.right)]
        waiting += node.children
        n_leaves, n_drawn = n_leaves + 1, n_drawn + 2
    return root, n_drawn


def _leaves(node: _Node) -> list[_Node]:
    return [leaf for child in node.children for leaf in _leaves(child)] if node.children else [node]


def _centre(node: _Node) -> float:
    if node.children:
        node.y = float(np.mean([_centre(child) for child in node.children]))
    return node.y


def _branches(drawing: Drawing, node: _Node, tree: Tree) -> None:
    for child, answer in zip(node.children, ("yes", "no"), strict=False):
        share = float(tree.n_samples[child.number] / tree.n_samples[0])
        start, end = node.x + _WIDTH, child.x
        middle = (start + end) / 2
        curve = (
            f"M{start:.1f} {node.y:.1f}C{middle:.1f} {node.y:.1f} {middle:.1f} {child.y:.1f} {end:.1f} {child.y:.1f}"
        )
        width = 1.5 + share * _WIDEST_BRANCH
        drawing.add("path", d=curve, fill="none", stroke="#d5dde6", stroke_width=width)
        side = -1 if answer == "yes" else 1
        drawing.text(end - 5, child.y + side * (width / 2 + 9), answer, anchor="end", class_="dim")
        _branches(drawing, child, tree)


def _boxes(drawing: Drawing, node: _Node, words: NamedTree) -> None:
    tree, number = words.tree, node.number
    is_split = bool(tree.left[number] >= 0)
    n = float(tree.n_samples[number])
    rows = f"{number_text(n, digits=5)} {'row' if n == 1 else 'rows'}"
    centre = node.x + _WIDTH / 2
    if node.children:
        asked = words.split_text(number)
        _box(drawing, node, "#ffffff", "#7f96ad", f"{asked}? ({rows})")
        lines = _two_lines(asked)
        for place, line in enumerate(lines):
            drawing.text(centre, node.y + (place - (len(lines) - 1) / 2) * 18, line, anchor="middle")
        for child in node.children:
            _boxes(drawing, child, words)
        return
    says = words.prediction_text(number)
    more = _n_leaves(tree, number)
    _box(drawing, node, "#fff8e8" if is_split else "#f5f7fa", "#c4cfda",
         f"{says}: {rows}" + (f", with {more} leaves" if is_split else ""))  # fmt: skip
    drawing.text(centre, node.y - 14, short(says, 16), anchor="middle", class_="strong")
    drawing.text(centre, node.y + 3, f"{rows}, {more} leaves" if is_split else rows, anchor="middle", class_="dim")
    _shares(drawing, node.x + 9, node.y + 17, _WIDTH - 18, tree, number)


def _box(drawing: Drawing, node: _Node, fill: str, stroke: str, tip: str) -> None:
    drawing.add(
        "rect", tip=tip, x=node.x, y=node.y - _HEIGHT / 2, width=_WIDTH, height=_HEIGHT, rx=8, fill=fill, stroke=stroke
    )  # fmt: skip


def _two_lines(asked: str) -> list[str]:
    """Return the text of a split in one or two lines, broken at a space near the middle."""
    if len(asked) <= _LETTERS - 1:
        return [asked]
    spaces = [place for place, letter in enumerate(asked) if letter == " "]
    if not spaces:
        return [short(asked, _LETTERS)]
    cut = min(spaces, key=lambda place: abs(place - min(len(asked) / 2, _LETTERS)))
    return [short(asked[:cut], _LETTERS), short(asked[cut + 1 :], _LETTERS)]


def _shares(drawing: Drawing, x: float, y: float, width: float, tree: Tree, node: int) -> None:
    """Draw a bar of class proportions; for numbers, the prediction between the smallest and the largest one."""
    if tree.classes is None:
        low, high = float(tree.value.min()), float(tree.value.max())
        share = (float(tree.value[node]) - low) / (high - low) if high > low else 1.0
        drawing.add("rect", x=x, y=y - 3, width=width, height=6, rx=3, fill="#dde4ec")
        drawing.add("rect", x=x, y=y - 3, width=max(width * share, 4.0), height=6, rx=3, fill=PALETTE[0])
        return
    start = x
    for code, share in enumerate(tree.value[node].tolist()):
        if share > 0:
            drawing.add("rect", x=start, y=y - 3, width=width * share, height=6, fill=PALETTE[min(code, 7)])
            start += width * share


def _n_leaves(tree: Tree, node: int) -> int:
    """Return the number of leaves of a subtree."""
    count, waiting = 0, [node]
    while waiting:
        here = waiting.pop()
        if tree.left[here] < 0:
            count += 1
        else:
            waiting += [int(tree.left[here]), int(tree.right[here])]
    return count
