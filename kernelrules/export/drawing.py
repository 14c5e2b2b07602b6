"""export.to_text, to_dot, to_mermaid: trees and rule lists as text, indented or as a graph.

Every node is written once, in the tree's order, without recursion, so that trees may have any depth. In graphs, "yes"
leads from a condition to the left child, or to the prediction of a rule, and "no" to the right child, or the next rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kernelrules.export.branches import named_list, named_tree, require_tree_or_rules
from kernelrules.results import RuleList, Tree
from kernelrules.results.rule_text import condition_texts, list_text, prediction_text, rule_text
from kernelrules.results.tree_text import NamedTree

__all__ = ["to_dot", "to_mermaid", "to_text"]


def to_text(
    t: Tree | RuleList, feature_names: Any = None, class_names: Any = None, *, exact: bool = False, figures: bool = True
) -> str:
    """Write a tree as indented text, or a rule list with one rule per line.

    Parameters
    ----------
    t : Tree or RuleList
        The tree or rule list.
    feature_names : sequence of str, optional
        Names of the columns.
    class_names : sequence of str, optional
        Names of the classes, in the order of t.classes.
    exact : bool
        Write thresholds with all digits, and where values absent from training go (missing values in columns without
        any, unseen levels).
    figures : bool
        Write after each leaf or rule, in brackets, its number of rows, and for classes the share of the predicted one.

    Returns
    -------
    str
        Text without a final line break. Surrogate splits are not shown.

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
    if isinstance(require_tree_or_rules(t), Tree):
        return "\n".join(_tree_lines(named_tree(t, feature_names, class_names, exact=exact), figures=figures))
    rs = named_list(t, feature_names, class_names)
    if not figures:
        return list_text(rs, exact=exact)
    lines = []
    for rule in rs.rules:
        confidence = "" if rs.classes is None else f", {rule.confidence:.2f}"
        lines.append(f"{rule_text(rule, rs, exact=exact)} ({rule.n:.10g}{confidence})")
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
        line = "|   " * depth + named.split_text(node, left=left)
        if tree.left[child] < 0:
            yield f"{line}: {_leaf_line(named, child, figures=figures)}"
        else:
            yield line
            waiting += [(child, depth + 1, False), (child, depth + 1, True)]


def _leaf_line(named: NamedTree, leaf: int, *, figures: bool) -> str:
    return f"{named.prediction_text(leaf)} ({named.count_text(leaf)})" if figures else named.prediction_text(leaf)


# ---- graphs -----------------------------------------------------------------------------------------------------


class _Graph:
    """Numbered conditions and predictions, and arrows between them."""

    def __init__(self, t: Any, feature_names: Any, class_names: Any, *, exact: bool) -> None:
        self.labels: list[tuple[int, str, bool]] = []  # number, text, whether it is a condition
        self.arrows: list[tuple[int, int, str]] = []
        if isinstance(require_tree_or_rules(t), Tree):
            self._of_tree(named_tree(t, feature_names, class_names, exact=exact))
        else:
            self._of_rules(named_list(t, feature_names, class_names), exact=exact)

    def _of_tree(self, named: NamedTree) -> None:
        tree = named.tree
        for node in range(tree.n_nodes):
            is_leaf = bool(tree.left[node] < 0)
            text = f"{named.prediction_text(node)}\n({named.count_text(node)})" if is_leaf else named.split_text(node)
            self.labels.append((node, text, not is_leaf))
            if not is_leaf:
                self.arrows += [(node, int(tree.left[node]), "yes"), (node, int(tree.right[node]), "no")]

    def _of_rules(self, rs: RuleList, *, exact: bool) -> None:
        """Condition i is node 2i, its prediction 2i + 1; the last "no" leads to the default."""
        for place, rule in enumerate(rs.rules):
            condition = " & ".join(condition_texts(rule, rs, exact=exact)) or "ALWAYS"
            self.labels.append((2 * place, condition, True))
            self.labels.append((2 * place + 1, prediction_text(rule.prediction, rs, exact=exact), False))
            self.arrows += [(2 * place, 2 * place + 1, "yes"), (2 * place, 2 * place + 2, "no")]
        self.labels.append((2 * len(rs.rules), prediction_text(rs.default, rs, exact=exact), False))


def to_dot(t: Tree | RuleList, feature_names: Any = None, class_names: Any = None, *, exact: bool = False) -> str:
    """Write a tree or rule list as a graph in DOT, the language of Graphviz.

    Parameters
    ----------
    t : Tree or RuleList
        The tree or rule list.
    feature_names : sequence of str, optional
        Names of the columns.
    class_names : sequence of str, optional
        Names of the classes, in the order of t.classes.
    exact : bool
        As in `to_text`.

    Returns
    -------
    str
        Source for `dot -Tsvg`.

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
        f'  {number} [label="{_for_dot(text)}", shape={"box" if is_condition else "ellipse"}];'
        for number, text, is_condition in graph.labels
    ]
    lines += [f'  {here} -> {there} [label="{by}"];' for here, there, by in graph.arrows]
    return "\n".join([*lines, "}"])


def _for_dot(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", " ").replace("\n", "\\n")


def to_mermaid(t: Tree | RuleList, feature_names: Any = None, class_names: Any = None, *, exact: bool = False) -> str:
    """Write a tree or rule list as a Mermaid flowchart, which GitHub and many editors draw.

    Parameters
    ----------
    t : Tree or RuleList
        The tree or rule list.
    feature_names : sequence of str, optional
        Names of the columns.
    class_names : sequence of str, optional
        Names of the classes, in the order of t.classes.
    exact : bool
        As in `to_text`.

    Returns
    -------
    str
        Source for a block marked `mermaid`.

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
    for number, text, is_condition in graph.labels:
        label = f'"{_for_mermaid(text)}"'
        lines.append(f"  n{number}[{label}]" if is_condition else f"  n{number}([{label}])")
    lines += [f"  n{here} -->|{by}| n{there}" for here, there, by in graph.arrows]
    return "\n".join(lines)


def _for_mermaid(text: str) -> str:
    """Replace characters with a meaning in Mermaid or HTML by their codes."""
    coded = "".join(f"#{ord(c)};" if c in '"#&<>`\\;' else c for c in text)
    return coded.replace("\r", " ").replace("\n", "<br>")
