"""The sections of the page on the tree, the rules, the support vector machine and the ridge model."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from kernelrules import bounds, export, svm
from kernelrules import tree as trees
from kernelrules.report import charts
from kernelrules.report.encoding import design, design_names
from kernelrules.report.html import Markup, details, figure, paragraph, section, table
from kernelrules.report.models import TUNING_ROWS, Fitted, named
from kernelrules.report.problem import Problem
from kernelrules.report.study import Study
from kernelrules.report.svg import PALETTE
from kernelrules.report.tree_picture import draw_tree
from kernelrules.results import Bound, RuleList
from kernelrules.results.rule_text import condition_texts, prediction_text
from kernelrules.results.show import counted

__all__ = ["describe"]

_MAX_BARS = 10
_MAX_MACHINES = 15
_MAX_RULES = 60
_SMALL_COSTS = (0.001, 0.01, 0.1)  # further values of C: their machines have smaller norms, so tighter bounds
_MAX_TEXT = 40_000  # characters of a tree as text


def describe(study: Study, name: str) -> Markup:
    """Return the section of one learner."""
    fitted = study.outcomes[name].fitted
    return _SECTIONS[name](study, fitted)


# ---- tree ---------------------------------------------------------------------------------------------------------


def _tree(study: Study, fitted: Fitted) -> Markup:
    problem = study.problem
    tree, found = named(fitted.model), fitted.choice
    drawn, whole = draw_tree(tree, f"Decision tree for {problem.target}")
    size = f"{tree.n_leaves} leaves" if tree.n_leaves > 1 else "a single leaf"
    lead = (
        f"Grown on all {tree.n_train} rows to {found.grown.n_leaves} leaves, then pruned to {size}: the smallest tree "
        "whose cross-validated error is within one standard error of the best."
    )
    if tree.n_leaves == 1:
        lead += " No split lowers the cross-validated error."
    more = "" if whole else " Yellow boxes stand for subtrees, which the text lists."
    words = "The width of a branch shows its share of rows."
    if problem.classes is not None:
        words += " Bars in the leaves show class proportions."
    text = export.to_text(tree)
    shown = text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT].rsplit("\n", 1)[0] + "\n…"
    return section(
        "tree",
        "The tree",
        paragraph(lead),
        _legend(problem),
        figure(drawn, words + more),
        details(f"Tree as text, {size}", Markup(f"<pre>{escape(shown)}</pre>")),
        figure(
            charts.pruning_curve(found),
            "Ten-fold cross-validated error of the nested trees (blue, with a band of one standard error), training "
            "error (dotted), and the smallest error plus one standard error (dashed).",
        ),
        _importance(problem, fitted),
    )


def _legend(problem: Problem) -> Markup:
    if problem.classes is None:
        return Markup("")
    shown = problem.classes[:7] if len(problem.classes) > 8 else problem.classes
    parts = [_entry(code, str(label)) for code, label in enumerate(shown)]
    if len(problem.classes) > len(shown):
        parts.append(_entry(7, f"{len(problem.classes) - len(shown)} others"))
    return Markup(f'<p class="legend">{" ".join(parts)}</p>')


def _entry(code: int, label: str) -> str:
    return f'<span><i class="dot" style="background:{PALETTE[code]}"></i>{escape(label)}</span>'


def _importance(problem: Problem, fitted: Fitted) -> Markup:
    share = trees.importance(fitted.model.model)
    order = [place for place in np.argsort(-share, kind="stable")[:_MAX_BARS] if share[place] > 0]
    if not order:
        return Markup("")
    drawn = charts.bars([problem.names[place] for place in order], share[order], "Importance of columns in the tree")
    return figure(drawn, "Decrease of the loss by the splits on each column, as a share of the total decrease.")


# ---- rules --------------------------------------------------------------------------------------------------------


def _rules(study: Study, fitted: Fitted) -> Markup:
    problem = study.problem
    found = named(fitted.model)
    is_classes = problem.classes is not None
    how = (
        "Learned by RIPPER: a rule is grown on one part of the rows, pruned on the other, and kept if it shortens the "
        "description length of the data."
        if is_classes
        else "Extracted from a pruned tree of two thirds of the rows, and simplified on the other third, to which the "
        "numbers refer."
    )
    head = ["", "If", "then", "rows", "support", *(["confidence"] if is_classes else [])]
    rows = [_rule_row(found, place, is_classes) for place in range(min(len(found), _MAX_RULES))]
    rest = [] if found.complete else [_default_row(found, is_classes)]
    more = f" The first {_MAX_RULES} of {len(found)} are shown." if len(found) > _MAX_RULES else ""
    count = "One rule" if len(found) == 1 else f"{len(found) or 'No'} rules"
    return section(
        "rules",
        "The rules",
        paragraph(f"{how} The first rule that matches a row predicts it.{more}"),
        table(
            f"{count} with {counted(found.n_conditions, 'condition')}. Support: share of the rows that reach "
            "and match the rule. " + ("Confidence: share of these with the predicted class." if is_classes else ""),
            head,
            rows + rest,
            left=3,
        ),
    )


def _rule_row(found: RuleList, place: int, is_classes: bool) -> list[Any]:
    rule = found.rules[place]
    conditions = Markup(" <b>and</b> ".join(escape(text) for text in condition_texts(rule, found)) or "always")
    row = [place + 1, Markup(f'<div class="wide">{conditions}</div>'), prediction_text(rule.prediction, found)]
    row += [f"{rule.n:.10g}", f"{100 * rule.support:.1f} %"]
    return [*row, f"{100 * rule.confidence:.1f} %"] if is_classes else row


def _default_row(found: RuleList, is_classes: bool) -> list[Any]:
    support = max(1.0 - sum(rule.support for rule in found.rules), 0.0)
    total = sum(rule.n for rule in found.rules)
    n = f"{round(total / (1 - support) - total)}" if 0 < support < 1 and total else ("0" if support < 1 else "all")
    row = ["", Markup("<i>otherwise</i>"), prediction_text(found.default, found), n, f"{100 * support:.1f} %"]
    if not is_classes:
        return row
    share = found.default_shares[np.flatnonzero(found.classes == found.default)[0]]
    return [*row, f"{100 * share:.1f} %"]


# ---- support vector machine ---------------------------------------------------------------------------------------


def _svm(study: Study, fitted: Fitted) -> Markup:
    problem = study.problem
    model, choice = fitted.model.model, fitted.choice
    certificate = model.certificate
    relative = certificate.gap / abs(certificate.primal) if certificate.primal else 0.0
    several = f" of the worst of {len(model.certificates)} machines" if len(model.certificates) > 1 else ""
    done = "was reached" if certificate.converged else "was <b>not</b> reached"
    thinned = (
        f" It was fitted to {len(fitted.rows)} random rows of {len(problem.y)}, to limit the time."
        if len(fitted.rows) < len(problem.y)
        else ""
    )
    lead = (
        f"Gaussian kernel exp(-γ‖x - z‖²) with γ = {choice.best['gamma']:.3g} and C = {choice.best['C']:g}, chosen by "
        f"cross-validation; {len(model.support)} of {model.n_train} rows are support vectors.{thinned}"
    )
    rows = [
        ["primal objective", f"{certificate.primal:.6g}", "the minimised function at the solution"],
        ["dual objective", f"{certificate.dual:.6g}", "a lower bound of the smallest primal objective"],
        ["gap", f"{certificate.gap:.2g}", f"the solution is within {100 * relative:.2g} % of the optimum"],
        ["iterations", f"{certificate.iterations}", Markup(f"the tolerance {done}")],
    ]
    return section(
        "svm",
        "The support vector machine",
        paragraph(lead),
        table(f"Certificate{several}", ["", "value", "meaning"], rows, left=3),
        *_bounds(problem, fitted, study.n_threads),
        _grid(problem, choice),
    )


def _bounds(problem: Problem, fitted: Fitted, n_threads: int) -> list[Markup]:
    if problem.classes is None:
        return [paragraph("There is no margin bound for regression: it bounds the error rate of a classifier.")]
    model = fitted.model.model
    Z, y = design(problem.X[fitted.rows], fitted.model), problem.y[fitted.rows]
    heading = Markup("<h3>Margin bound</h3>")
    words = paragraph(
        "With probability 95 % over samples, the error rate on new rows is at most the sum of three terms: the mean "
        "margin loss on the training rows, the complexity of functions of this norm, and a deviation term. The bound "
        "holds for a kernel fixed in advance; γ was chosen on these rows, so the numbers are indicative. A bound above "
        "1 is vacuous. A smaller C lowers the norm and the complexity, and raises the margin loss.",
        class_="note",
    )
    if len(model.classes) == 2:
        costs = [cost for cost in _SMALL_COSTS if cost < model.C and len(y) <= TUNING_ROWS]
        softer = {f"C = {cost:g}": svm.svc(Z, y, C=cost, kernel=model.kernel, n_threads=n_threads) for cost in costs}
        found = {name: bounds.of_model(one, Z, y, n_threads=n_threads) for name, one in softer.items()}
        found[f"C = {model.C:g}, the choice"] = bounds.of_model(model, Z, y, n_threads=n_threads)
    else:
        found = _machine_bounds(model, Z, y, n_threads)
    shown = list(found.items())[:_MAX_MACHINES]
    rows = [
        [
            name, bound.n, f"{bound.empirical:.3f}", f"{bound.complexity:.3f}", f"{bound.deviation:.3f}",
            f"{bound.total:.3f}", "vacuous" if bound.vacuous else f"error ≤ {100 * bound.total:.1f} %",
        ]
        for name, bound in shown
    ]  # fmt: skip
    more = f" (the first {_MAX_MACHINES} of {len(found)} machines)" if len(found) > _MAX_MACHINES else ""
    head = ["", "rows", "margin loss", "+ complexity", "+ deviation", "= bound", ""]
    each = "" if len(model.classes) == 2 else " of each machine, each with probability 95 %"
    return [heading, words, table(f"Margin bound{each}{more}", head, rows)]


def _machine_bounds(model: Any, Z: np.ndarray, y: np.ndarray, n_threads: int | None = None) -> dict[str, Bound]:
    """Return a bound for each machine of a multi-class model, on the rows of its classes.

    The intercept is the weight of a constant feature 1: with k(x, x) = 1 the trace is 2 per row.
    """
    values, widths = svm.decision(model, Z, n_threads=n_threads), np.atleast_1d(svm.margin(model))
    k = len(model.classes)
    if model.multiclass == "ovr":
        sides = [(f"{label} or not", [label], None) for label in model.classes]
    else:
        pairs = [(model.classes[i], model.classes[j]) for i in range(k) for j in range(i + 1, k)]
        sides = [(f"{first} or {second}", [first], [second]) for first, second in pairs]
    found = {}
    for machine, (name, first, second) in enumerate(sides):
        positive = np.isin(y, first)
        mine = np.ones(len(y), dtype=bool) if second is None else positive | np.isin(y, second)
        margins = np.where(positive, 1.0, -1.0)[mine] * values[mine, machine]
        norm = float(np.hypot(2.0 / widths[machine], model.intercept[machine]))
        found[name] = bounds.margin_bound(margins, 2.0 * mine.sum(), norm=norm)
    return found


def _grid(problem: Problem, choice: Any) -> Markup:
    is_classes = problem.classes is not None
    low, high = float(choice.mean.min()), float(choice.mean.max())
    rows = []
    for gamma, line in zip(choice.gammas, choice.mean, strict=True):
        cells: list[Any] = [f"γ = {gamma:.2g}"]
        for cost, error in zip(choice.Cs, line, strict=True):
            shade = (high - float(error)) / (high - low) if high > low else 1.0
            value = f"{100 * error:.2f} %" if is_classes else f"{error:.4g}"
            mark = "font-weight:700;" if choice.best == {"C": cost, "gamma": gamma} else ""
            cells.append(Markup(f'<span style="{mark}background:rgba(0,114,178,{0.38 * shade:.2f});padding:4px 10px;'
                                f'border-radius:6px">{value}</span>'))  # fmt: skip
        rows.append(cells)
    what = "error rate" if is_classes else "root mean squared error"
    return table(
        f"Cross-validated {what} by C and γ; the selected pair in bold", ["", *(f"C = {c:g}" for c in choice.Cs)], rows
    )


# ---- ridge --------------------------------------------------------------------------------------------------------


def _ridge(study: Study, fitted: Fitted) -> Markup:
    problem = study.problem
    model, path = fitted.model.model, fitted.choice
    classes = fitted.model.classes
    if classes is None:
        what = "numbers"
    elif len(classes) == 2:
        what = f"+1 for “{classes[1]}” and -1 for “{classes[0]}”"
    else:
        what = "+1 for a class and -1 for the others, one model per class"
    lead = (
        f"Linear least squares of {what}, on standardised columns, with the penalty λ‖w‖²; λ = {model.lam:.2g} has the "
        f"smallest leave-one-out error, and {path.dof[path.best]:.1f} effective degrees of freedom."
    )
    edge = path.best in (0, len(path.lams) - 1)
    remark = paragraph("The selected λ is at the edge of the grid.", class_="note") if edge else Markup("")
    parts = [paragraph(lead), remark, figure(charts.ridge_curve(path), "Leave-one-out squared error by λ.")]
    if model.weights is not None:
        names = design_names(problem.used, fitted.model)
        weights = model.weights if model.weights.ndim == 1 else np.sqrt(np.square(model.weights).sum(axis=1))
        order = np.argsort(-np.abs(weights), kind="stable")[:_MAX_BARS]
        drawn = charts.bars(
            [names[place] for place in order], weights[order], "Largest coefficients of the ridge model"
        )
        words = "Largest coefficients: change of the prediction per standard deviation of a column, or per category."
        if model.weights.ndim == 2:
            words = "Largest norms of the coefficients of a column over all classes."
        parts.append(figure(drawn, words))
    return section("ridge", "The ridge model", *parts)


_SECTIONS = {"tree": _tree, "rules": _rules, "svm": _svm, "ridge": _ridge}
