"""The report page of a study: self-contained HTML without scripts, fonts or external images; all text is escaped."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable
from datetime import datetime
from html import escape
from typing import Any

import numpy as np
import scipy

from kernelrules import __version__
from kernelrules.core.simd import cpu
from kernelrules.report import charts
from kernelrules.report.encoding import MAX_DUMMIES, mean_and_deviation
from kernelrules.report.html import Markup, details, figure, paragraph, section, table
from kernelrules.report.models import SVM_ROWS, TUNING_ROWS
from kernelrules.report.reading import Column
from kernelrules.report.sections import describe
from kernelrules.report.study import Score, Study
from kernelrules.report.style import STYLE
from kernelrules.results.rule_text import number_text
from kernelrules.results.show import counted, short

__all__ = ["render"]

_MAX_CONFUSION_CLASSES = 12  # no confusion matrix for more classes
_MAX_OPEN_COLUMNS = 25  # longer tables of columns start collapsed
_HEADINGS = {"scores": "Scores", "tree": "Tree", "rules": "Rules", "svm": "SVM", "ridge": "Ridge", "columns": "Columns",
             "how": "Methods"}  # fmt: skip


def render(study: Study, *, command: str | None = None, now: datetime | None = None) -> str:
    """Return the report page as HTML.

    Parameters
    ----------
    study : Study
        The result of `run_study`.
    command : str, optional
        The command line that made the report, shown on the page.
    now : datetime, optional
        The date on the page. Default: the current time.

    Returns
    -------
    str
        HTML.
    """
    problem = study.problem
    learners = [name for name in study.outcomes if name != "baseline"]
    names = ["scores", *learners, "columns", "how"]
    links = "".join(f'<a href="#{name}">{_HEADINGS[name]}</a>' for name in names)
    title = f"{short(problem.target, 80)} from {short(problem.source, 80)}"
    now = datetime.now().astimezone() if now is None else now
    parts = [_scores(study), *(describe(study, name) for name in learners), _columns(study), _how(study, command)]
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}: kernelrules report</title>"
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
        'img-src data:"><link rel="icon" href="data:,">'
        f'<meta name="generator" content="kernelrules {__version__}"><style>{STYLE}</style></head><body>'
        f'<header><div class="in"><h1>Predicting “{escape(short(problem.target, 80))}”</h1>'
        f"<p>{escape(_subtitle(study))}</p></div></header>"
        f'<nav aria-label="Sections"><div class="in">{links}</div></nav><main>{_cards(study)}{"".join(parts)}</main>'
        f'<footer><div class="in">Made by kernelrules {__version__} on {now:%d %B %Y at %H:%M}.</div></footer>'
        "</body></html>\n"
    )


def _subtitle(study: Study) -> str:
    n = len(study.problem.y)
    task = "numeric target" if study.problem.classes is None else f"{len(study.problem.classes)} classes"
    return (
        f"{study.problem.source}: {n} rows, {task}. A pruned tree, a rule list, a support vector machine and a ridge "
        f"model, compared on the same {study.n_folds} folds."
    )


def _cards(study: Study) -> Markup:
    problem, best = study.problem, study.outcomes[study.best]
    n_cells = problem.X.size
    n_missing = int(np.isnan(problem.X).sum())
    score = best.score
    value = f"{100 * score.value:.1f} %" if problem.classes is not None else f"{score.value:.4g}"
    what = "accuracy" if problem.classes is not None else "RMSE"
    cards = [
        (value, f"{what} of the best model, the {best.title}"),
        (f"{len(problem.y):,}".replace(",", " "), "rows"),
        (f"{len(problem.used)}", f"columns used, of {len(problem.columns)}"),
        (f"{100 * n_missing / n_cells:.2g} %" if n_missing else "none", "of the cells are missing"),
    ]
    inside = "".join(f"<li><b>{escape(big)}</b><span>{escape(small)}</span></li>" for big, small in cards)
    return Markup(f'<ul class="cards" aria-label="At a glance">{inside}</ul>')


# ---- scores -------------------------------------------------------------------------------------------------------


def _scores(study: Study) -> Markup:
    is_classes = study.problem.classes is not None
    head = ["", *(["accuracy", "balanced accuracy", "difference from the best", "time"] if is_classes
                  else ["RMSE", "R²", "difference from the best", "time"])]  # fmt: skip
    rows, names = [], list(study.outcomes)
    for name in names:
        outcome, score = study.outcomes[name], study.outcomes[name].score
        behind = "" if name == study.best else _behind(score, is_classes)
        time = "" if outcome.fitted is None else f"{outcome.seconds:.1f} s"
        rows.append([outcome.title, *_values(score, is_classes), behind, time])
    return section(
        "scores",
        "Accuracy on held-out rows" if is_classes else "Error on held-out rows",
        paragraph(_verdict(study), class_="lead"),
        table(
            f"Predictions of {len(study.problem.y)} held-out rows, ± one standard error over rows",
            head,
            rows,
            marked=names.index(study.best),
        ),
        figure(
            charts.scores(study),
            "Large dots: all held-out rows, ± one standard error. Small circles: single folds.",
        ),
        paragraph(
            "Each row is predicted by models that were fitted without its fold. Tree size, C, γ, λ and the encoding of "
            "columns are chosen within the other folds.",
            class_="note",
        ),
        _confusions(study),
    )


def _values(score: Score, is_classes: bool) -> list[str]:
    if is_classes:
        return [f"{100 * value:.1f} ± {100 * se:.1f} %"
                for value, se in ((score.value, score.se), (score.other, score.other_se))]  # fmt: skip
    return [_plus_minus(score.value, score.se), _plus_minus(score.other, score.other_se)]


def _behind(score: Score, is_classes: bool) -> str:
    if is_classes:
        return f"{100 * score.behind:.1f} ± {100 * score.behind_se:.1f} points"
    return _plus_minus(score.behind, score.behind_se)


def _plus_minus(value: float, se: float) -> str:
    """Format both with as many decimals as show two digits of the standard error."""
    decimals = min(max(1 - math.floor(math.log10(se)), 0), 12) if 0 < se < math.inf else 4
    return f"{value:.{decimals}f} ± {se:.{decimals}f}"


def _verdict(study: Study) -> str:
    """Return the result in two sentences."""
    best, base = study.outcomes[study.best], study.outcomes["baseline"]
    is_classes = study.problem.classes is not None
    if study.best == "baseline":
        return "No model is better than the " + ("most frequent class" if is_classes else "mean") + "."
    value = (
        f"{100 * best.score.value:.1f} % of held-out rows predicted correctly"
        if is_classes
        else f"a root mean squared error of {best.score.value:.4g}"
    )
    always = f"{100 * base.score.value:.1f} %" if is_classes else f"{base.score.value:.4g}"
    text = f"The {best.title} is best, with {value}; the baseline, the {base.title}, has {always}."
    ties = [
        outcome.title for name, outcome in study.outcomes.items()
        if name not in (study.best, "baseline") and outcome.score.behind <= 2 * outcome.score.behind_se
    ]  # fmt: skip
    if base.score.behind <= 2 * base.score.behind_se:
        text += " The difference from the baseline is below two standard errors."
    if ties:
        text += f" Within two standard errors of the best: the {' and the '.join(ties)}."
    return text


def _confusions(study: Study) -> Markup:
    """Return the confusion matrix of the best model."""
    classes = study.problem.classes
    if classes is None or len(classes) > _MAX_CONFUSION_CLASSES:
        return Markup("")
    predictions = study.outcomes[study.best].predictions
    rows = []
    for label in classes:
        mine = predictions[study.problem.y == label]
        rows.append(
            [label, *(int((mine == other).sum()) for other in classes), f"{100 * (mine == label).mean():.1f} %"]
        )
    title = study.outcomes[study.best].title
    return details(
        f"Confusion matrix of the {title}",
        table("Held-out rows: true classes in rows, predicted classes in columns", ["", *classes, "recall"], rows),
    )


# ---- columns and methods ------------------------------------------------------------------------------------------


def _columns(study: Study) -> Markup:
    columns = study.problem.columns
    n_out = sum(not column.used for column in columns)
    lead = "Types are inferred from the cells."
    if n_out:
        lead += f" {n_out} of {len(columns)} {'is' if n_out == 1 else 'are'} not used; the table gives the reason."
    treatment = [
        "Missing values: each split of the tree learns a side for them, and rules may test whether a value is missing. "
        "For the SVM and the ridge model they become 0, the mean of the standardised column, with a 0/1 indicator.",
        "Categories: the tree splits on subsets of levels, and rules test single levels. For the SVM and the ridge "
        f"model they are one-hot encoded, with a 0/1 column for each of the {MAX_DUMMIES} most frequent levels.",
        "Numbers: unchanged for the tree and the rules; standardised by the mean and standard deviation of the "
        "training rows for the SVM and the ridge model.",
    ]
    head = ["column", "type", "values", "remarks", "missing"]
    parts = [table(f"{counted(len(columns), 'column')}, without the target", head, map(_column_row, columns), left=4)]
    if len(columns) > _MAX_OPEN_COLUMNS:
        parts[0] = details(f"All {len(columns)} columns", parts[0])
        special = [column for column in columns if column.note or column.n_missing][:_MAX_OPEN_COLUMNS]
        if special:
            parts.insert(0, table("Columns with remarks or missing values", head, map(_column_row, special), left=4))
    return section("columns", "Columns", paragraph(lead), *parts, _list(treatment))


def _column_row(column: Column) -> list[Any]:
    kind = column.kind if column.used else "left out"
    tag = Markup(f'<span class="tag{"" if column.used else " out"}">{kind}</span>')
    known = column.values[~np.isnan(column.values)]
    share = f"{column.n_missing} ({100 * column.n_missing / len(column.values):.1f} %)" if column.n_missing else "0"
    if column.levels is None:
        values = (
            f"{known.min():.6g} to {known.max():.6g}, mean {number_text(mean_and_deviation(known)[0], digits=4)}"
            if len(known)
            else ""
        )
    else:
        shown = ", ".join(short(level, 24) for level in column.levels[:4])
        more = ", …" if len(column.levels) > 4 else ""
        values = f"{len(column.levels)}: {shown}{more}" if column.levels else ""
    return [short(column.name, 60), tag, values, column.note, share]


def _list(items: Iterable[str]) -> Markup:
    return Markup(f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>")


def _n_copies(X: np.ndarray) -> int:
    """Return the number of rows that equal an earlier one; missing values are equal."""
    rows = np.ascontiguousarray(X + 0.0)  # -0.0 is 0.0
    rows[np.isnan(rows)] = np.nan
    return len(rows) - len(np.unique(rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))))


def _how(study: Study, command: str | None) -> Markup:
    problem = study.problem
    steps = [
        f"{study.n_folds} folds" + (", stratified by class" if problem.classes is not None else "")
        + f"; seed {study.seed}. The same data, seed and version give the same numbers.",
        *(note[:1].upper() + note[1:] + "." for note in (*problem.reading, *problem.notes)),
    ]  # fmt: skip
    if len(problem.y) > TUNING_ROWS:
        steps.append(
            f"The SVM is fitted to at most {SVM_ROWS} random rows and tuned on at most {TUNING_ROWS}; the other models "
            "use all rows."
        )
    n_copies = _n_copies(problem.X)
    if n_copies:
        steps.append(
            f"{n_copies} of {len(problem.y)} rows duplicate the values of an earlier row. Duplicates in different "
            "folds make errors look smaller than they are."
        )
    steps += [f"Warning from the {remark}" for remark in study.remarks]
    versions = [
        ["kernelrules", __version__], ["Python", platform.python_version()], ["NumPy", np.__version__],
        ["SciPy", scipy.__version__], ["threads", study.n_threads], ["SIMD", cpu.simd()],
        ["machine", f"{platform.system()} {platform.machine()}"], ["seed", study.seed],
        ["time taken", f"{study.seconds:.1f} s"],
    ]  # fmt: skip
    shown = Markup(f"<pre>{escape(command)}</pre>") if command else Markup("")
    return section("how", "Methods", _list(steps), shown, table("Versions and time", ["", "value"], versions, left=2))
