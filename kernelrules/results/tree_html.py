"""A tree as a nested HTML list for notebooks: conditions, predictions, bars of the shares of classes."""

from __future__ import annotations

import html
from typing import Any

from kernelrules.results.show import counted
from kernelrules.results.tree_text import NamedTree

__all__ = ["tree_list"]

_MAX_DEPTH_SHOWN = 6
_COLOURS = ("#1f5fa8", "#c44e52", "#2e8b57", "#e08e2b", "#8a5fa8", "#4fa3a5", "#a8763e", "#d36fa4", "#7f7f7f")


def tree_list(tree: Any) -> str:
    """Return the first splits of a tree, six levels deep, and below these the numbers of leaves."""
    named = NamedTree(tree, None, digits=5)
    if tree.n_nodes == 1:
        return f"<div>ALWAYS: {_answer(named, 0)}</div>"
    return _split(named, 0, 1)


def _split(named: NamedTree, node: int, depth: int) -> str:
    tree, items = named.tree, []
    for left in (True, False):
        child = int(tree.left[node] if left else tree.right[node])
        condition = html.escape(named.split_text(node, left=left))
        if tree.left[child] < 0:
            items.append(f"<li>{condition}: {_answer(named, child)}</li>")
        elif depth == _MAX_DEPTH_SHOWN:
            items.append(f"<li>{condition}: … {counted(_leaves_below(tree, child), 'leaf', 'leaves')}</li>")
        else:
            items.append(f"<li>{condition}{_split(named, child, depth + 1)}</li>")
    return f'<ul style="margin:0;padding-left:1.4em">{"".join(items)}</ul>'


def _leaves_below(tree: Any, node: int) -> int:
    """Count the leaves below a node, which follow it in depth-first order."""
    n_open, leaves = 1, 0
    while n_open:
        is_leaf = tree.left[node] < 0
        leaves, n_open, node = leaves + int(is_leaf), n_open + (-1 if is_leaf else 1), node + 1
    return leaves


def _answer(named: NamedTree, leaf: int) -> str:
    tree, text = (
        named.tree,
        f"<b>{html.escape(named.prediction_text(leaf))}</b> ({html.escape(named.count_text(leaf))})",
    )
    if tree.classes is None:
        return text
    parts = "".join(
        f'<span style="display:inline-block;height:.6em;width:{5 * share:.3f}em;background:{colour}"></span>'
        for share, colour in zip(tree.value[leaf], _COLOURS, strict=False)
        if share > 0
    )
    return f"{text} {parts}"
