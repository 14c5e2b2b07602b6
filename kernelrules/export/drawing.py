"""export.to_text, to_dot, to_mermaid: trees and rule lists in words, indented or as a graph.

Every node is written once, in the tree's order, without recursion: a tree may be as deep as it likes. Graphs go from a
question by "yes" to the left child, or to what a rule predicts, and by "no" to the right one, or to the next rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kernelrules.export.branches import named_list, named_tree, one_of_both
from kernelrules.results import RuleList, Tree
from kernelrules.results.rule_text import condition_texts, list_text, prediction_text, rule_text
from kernelrules.results.tree_text import NamedTree

__all__ = ["to_dot", "to_mermaid", "to_text"]


def to_text(
    t: Tree | RuleList, feature_names: Any = None, class_names: Any = None, *, exact: bool = False, figures: bool = True
) -> str:
    """A tree, indented, or a rule list, one rule a line.

    Parameters
    ----------
    t : Tree or RuleList
        What to write.
    feature_names : sequence of str, optional
        What to call the columns.
    class_names : sequence of str, optional
        What to call the classes, in the order of t.classes.
    exact : bool
        Thresholds with all their digits, and what becomes of values that training never showed (missing ones where
        there were none, unseen levels).
    figures : bool
        After each leaf or rule, in brackets: its rows, and for classes the share that has the one predicted.

    Returns
    -------
    str
        Without a line end. Surrogate splits are not shown.

    Examples
    --------
    >>> from kernelrules import export, tree
    >>> t = tree.grow([["yes", 20], ["no", 30], ["no", 50], ["yes", 60]], ["high", "low", "medium", "high"])
    >>> print(export.to_text(t, ["contact", "age"]))
    contact = no
    |   age ≤ 40: low (1, 1.00)
    |   age > 40: medium (1, 1.00)
    contact = yes: high (2, 1.00)
    """
    if isinstance(one_of_both(t), Tree):
        return "\n".join(_tree_lines(named_tree(t, feature_names, class_names, exact=exact), figures=figures))
    rs = named_list(t, feature_names, class_names)
    if not figures:
        return list_text(rs, exact=exact)
    lines = []
    for rule in rs.rules:
        sure = "" if rs.classes is None else f", {rule.confidence:.2f}"
        lines.append(f"{rule_text(rule, rs, exact=exact)} ({rule.n:.10g}{sure})")
    return "\n".join(lines + ([] if rs.complete else [f"OTHERWISE → {prediction_text(rs.default, rs, exact=exact)}"]))


def _tree_lines(named: NamedTree, *, figures: bool) -> Iterator[str]:
    tree = named.tree
    if tree.n_nodes == 1:
        yield f"ALWAYS: {_leaf_line(named, 0, figures=figures)}"
        return
    waiting = [(0, 0, False), (0, 0, True)]  # a node, its depth, and the side to write
    while waiting:
        node, depth, left = waiting.pop()
        child = int(tree.left[node] if left else tree.right[node])
        line = "|   " * depth + named.asks(node, left=left)
        if tree.left[child] < 0:
            yield f"{line}: {_leaf_line(named, child, figures=figures)}"
        else:
            yield line
            waiting += [(child, depth + 1, False), (child, depth + 1, True)]


def _leaf_line(named: NamedTree, leaf: int, *, figures: bool) -> str:
    return f"{named.says(leaf)} ({named.figures(leaf)})" if figures else named.says(leaf)


# ---- graphs -----------------------------------------------------------------------------------------------------


class _Graph:
    """Numbered questions and answers, and arrows between them."""

    def __init__(self, t: Any, feature_names: Any, class_names: Any, *, exact: bool) -> None:
        self.labels: list[tuple[int, str, bool]] = []  # number, text, whether it is a question
        self.arrows: list[tuple[int, int, str]] = []
        if isinstance(one_of_both(t), Tree):
            self._of_tree(named_tree(t, feature_names, class_names, exact=exact))
        else:
            self._of_rules(named_list(t, feature_names, class_names), exact=exact)

    def _of_tree(self, named: NamedTree) -> None:
        tree = named.tree
        for node in range(tree.n_nodes):
            is_leaf = bool(tree.left[node] < 0)
            text = f"{named.says(node)}\n({named.figures(node)})" if is_leaf else named.asks(node)
            self.labels.append((node, text, not is_leaf))
            if not is_leaf:
                self.arrows += [(node, int(tree.left[node]), "yes"), (node, int(tree.right[node]), "no")]

    def _of_rules(self, rs: RuleList, *, exact: bool) -> None:
        """Question i is node 2i, its answer 2i + 1; what the last "no" leads to is the default."""
        for place, rule in enumerate(rs.rules):
            question = " & ".join(condition_texts(rule, rs, exact=exact)) or "ALWAYS"
            self.labels.append((2 * place, question, True))
            self.labels.append((2 * place + 1, prediction_text(rule.prediction, rs, exact=exact), False))
            self.arrows += [(2 * place, 2 * place + 1, "yes"), (2 * place, 2 * place + 2, "no")]
        self.labels.append((2 * len(rs.rules), prediction_text(rs.default, rs, exact=exact), False))


def to_dot(t: Tree | RuleList, feature_names: Any = None, class_names: Any = None, *, exact: bool = False) -> str:
    """A tree or a rule list as a graph in DOT, the language of Graphviz.

    Parameters
    ----------
    t : Tree or RuleList
        What to draw.
    feature_names : sequence of str, optional
        What to call the columns.
    class_names : sequence of str, optional
        What to call the classes, in the order of t.classes.
    exact : bool
        As in `to_text`.

    Returns
    -------
    str
        For a file, which `dot -Tsvg` draws.

    Examples
    --------
    >>> from kernelrules import export, tree
    >>> print(export.to_dot(tree.grow([[0.0], [1.0]], ["a", "b"]), ["A"]))
    digraph {
      node [fontname="sans-serif"];
      0 [label="A ≤ 0.5", shape=box];
      1 [label="a\\n(1, 1.00)", shape=ellipse];
      2 [label="b\\n(1, 1.00)", shape=ellipse];
      0 -> 1 [label="yes"];
      0 -> 2 [label="no"];
    }
    """
    graph = _Graph(t, feature_names, class_names, exact=exact)
    lines = ["digraph {", '  node [fontname="sans-serif"];']
    lines += [
        f'  {number} [label="{_for_dot(text)}", shape={"box" if is_question else "ellipse"}];'
        for number, text, is_question in graph.labels
    ]
    lines += [f'  {here} -> {there} [label="{by}"];' for here, there, by in graph.arrows]
    return "\n".join([*lines, "}"])


def _for_dot(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", " ").replace("\n", "\\n")


def to_mermaid(t: Tree | RuleList, feature_names: Any = None, class_names: Any = None, *, exact: bool = False) -> str:
    """A tree or a rule list as a Mermaid flowchart, which GitHub and many editors draw.

    Parameters
    ----------
    t : Tree or RuleList
        What to draw.
    feature_names : sequence of str, optional
        What to call the columns.
    class_names : sequence of str, optional
        What to call the classes, in the order of t.classes.
    exact : bool
        As in `to_text`.

    Returns
    -------
    str
        For a block marked `mermaid`.

    Examples
    --------
    >>> from kernelrules import export, tree
    >>> print(export.to_mermaid(tree.grow([[0.0], [1.0]], ["a", "b"]), ["A"]))
    flowchart TD
      n0["A ≤ 0.5"]
      n1(["a<br>(1, 1.00)"])
      n2(["b<br>(1, 1.00)"])
      n0 -->|yes| n1
      n0 -->|no| n2
    """
    graph = _Graph(t, feature_names, class_names, exact=exact)
    lines = ["flowchart TD"]
    for number, text, is_question in graph.labels:
        label = f'"{_for_mermaid(text)}"'
        lines.append(f"  n{number}[{label}]" if is_question else f"  n{number}([{label}])")
    lines += [f"  n{here} -->|{by}| n{there}" for here, there, by in graph.arrows]
    return "\n".join(lines)


def _for_mermaid(text: str) -> str:
    """Characters that mean something to Mermaid or HTML by their numbers."""
    coded = "".join(f"#{ord(c)};" if c in '"#&<>`\\;' else c for c in text)
    return coded.replace("\r", " ").replace("\n", "<br>")
