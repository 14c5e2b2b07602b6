"""One self-contained page of a study: no scripts, no fonts, no pictures from elsewhere, all text escaped."""

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
from kernelrules.core import machine
from kernelrules.report import charts
from kernelrules.report.coding import MOST_DUMMIES, mean_and_deviation
from kernelrules.report.html import Markup, details, figure, paragraph, section, table
from kernelrules.report.models import SVM_ROWS, TUNING_ROWS
from kernelrules.report.reading import Column
from kernelrules.report.sections import describe
from kernelrules.report.study import Score, Study
from kernelrules.report.style import STYLE
from kernelrules.results.rule_text import number_text
from kernelrules.results.show import counted, short

__all__ = ["render"]

_MOST_CLASSES = 12  # of a table of confusions
_MOST_COLUMNS = 25  # of a table that is open from the start
_HEADINGS = {"scores": "Scores", "tree": "Tree", "rules": "Rules", "svm": "SVM", "ridge": "Ridge", "columns": "Columns",
             "how": "How it was done"}  # fmt: skip


def render(study: Study, *, command: str | None = None, now: datetime | None = None) -> str:
    """The page, as text.

    Parameters
    ----------
    study : Study
        What `run_study` returned.
    command : str, optional
        The command that made it, shown for repeating it.
    now : datetime, optional
        When it was made; by default the present.

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
    task = "numbers" if study.problem.classes is None else f"{len(study.problem.classes)} classes"
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
        (value, f"{what} of the best, the {best.title}"),
        (f"{len(problem.y):,}".replace(",", " "), "rows"),
        (f"{len(problem.used)}", f"columns used, of {len(problem.columns)}"),
        (f"{100 * n_missing / n_cells:.2g} %" if n_missing else "none", "of the cells missing"),
    ]
    inside = "".join(f"<li><b>{escape(big)}</b><span>{escape(small)}</span></li>" for big, small in cards)
    return Markup(f'<ul class="cards" aria-label="At a glance">{inside}</ul>')


# ---- scores -------------------------------------------------------------------------------------------------------


def _scores(study: Study) -> Markup:
    is_classes = study.problem.classes is not None
    head = ["", *(["accuracy", "balanced accuracy", "behind the best", "time"] if is_classes
                  else ["RMSE", "R²", "behind the best", "time"])]  # fmt: skip
    rows, names = [], list(study.outcomes)
    for name in names:
        outcome, score = study.outcomes[name], study.outcomes[name].score
        behind = "" if name == study.best else _behind(score, is_classes)
        time = "" if outcome.fitted is None else f"{outcome.seconds:.1f} s"
        rows.append([outcome.title, *_values(score, is_classes), behind, time])
    return section(
        "scores",
        "How well new rows are predicted",
        paragraph(_verdict(study), class_="lead"),
        table(
            f"Predictions of {len(study.problem.y)} held-out rows, ± one standard error over rows",
            head,
            rows,
            marked=names.index(study.best),
        ),
        figure(
            charts.scores(study),
            "Large dots: all held-out rows, with one standard error to each side. Small circles: the folds.",
        ),
        paragraph(
            "Every row was predicted by models that saw neither it nor the rest of its fold; sizes, C, γ, λ and the "
            "coding of columns were chosen anew within the other folds.",
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
    """Both with as many decimals as two digits of the standard error have."""
    decimals = min(max(1 - math.floor(math.log10(se)), 0), 12) if 0 < se < math.inf else 4
    return f"{value:.{decimals}f} ± {se:.{decimals}f}"


def _verdict(study: Study) -> str:
    """The result in two sentences."""
    best, base = study.outcomes[study.best], study.outcomes["baseline"]
    is_classes = study.problem.classes is not None
    if study.best == "baseline":
        return "No learner does better than the " + ("commonest class" if is_classes else "mean") + "."
    value = (
        f"{100 * best.score.value:.1f} % of new rows right"
        if is_classes
        else f"a root mean squared error of {best.score.value:.4g}"
    )
    always = f"{100 * base.score.value:.1f} %" if is_classes else f"{base.score.value:.4g}"
    said = f"The {best.title} does best, with {value}; the {base.title} alone has {always}."
    ties = [
        outcome.title for name, outcome in study.outcomes.items()
        if name not in (study.best, "baseline") and outcome.score.behind <= 2 * outcome.score.behind_se
    ]  # fmt: skip
    if base.score.behind <= 2 * base.score.behind_se:
        said += " That is not clearly better, by two standard errors."
    if ties:
        said += f" Not clearly worse, by two standard errors: the {' and the '.join(ties)}."
    return said


def _confusions(study: Study) -> Markup:
    """What the best learner took for what."""
    classes = study.problem.classes
    if classes is None or len(classes) > _MOST_CLASSES:
        return Markup("")
    told = study.outcomes[study.best].predictions
    rows = []
    for label in classes:
        mine = told[study.problem.y == label]
        rows.append(
            [label, *(int((mine == other).sum()) for other in classes), f"{100 * (mine == label).mean():.1f} %"]
        )
    title = study.outcomes[study.best].title
    return details(
        f"What the {title} takes for what",
        table("Held-out rows: the true class by line, the predicted one by column", ["", *classes, "found"], rows),
    )


# ---- columns and how ----------------------------------------------------------------------------------------------


def _columns(study: Study) -> Markup:
    columns = study.problem.columns
    n_out = sum(not column.used for column in columns)
    lead = "Types are guessed from the cells."
    if n_out:
        lead += f" {n_out} of {len(columns)} {'is' if n_out == 1 else 'are'} left out; the table says why."
    treatment = [
        "Missing values: in the tree every split learns a side for them; a rule may ask whether a value is missing; "
        "the SVM and the ridge model get 0, the mean of the standardised column, and a 0/1 column that marks them.",
        "Categories: the tree splits any subset of levels from the rest, rules ask for single levels; the SVM and the "
        f"ridge model get a 0/1 column for each level, of at most the {MOST_DUMMIES} commonest.",
        "Numbers: as they are for the tree and the rules; for the SVM and the ridge model less the mean, over the "
        "standard deviation, of the training rows.",
    ]
    head = ["column", "type", "values", "remarks", "missing"]
    parts = [table(f"{counted(len(columns), 'column')}, and the target apart", head, map(_column_row, columns), left=4)]
    if len(columns) > _MOST_COLUMNS:
        parts[0] = details(f"All {len(columns)} columns", parts[0])
        special = [column for column in columns if column.note or column.n_missing][:_MOST_COLUMNS]
        if special:
            parts.insert(0, table("Columns with something to say about", head, map(_column_row, special), left=4))
    return section("columns", "The columns", paragraph(lead), *parts, _list(treatment))


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
    """Rows that are like another one before them; missing values are alike."""
    rows = np.ascontiguousarray(X + 0.0)  # -0.0 is 0.0
    rows[np.isnan(rows)] = np.nan
    return len(rows) - len(np.unique(rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))))


def _how(study: Study, command: str | None) -> Markup:
    problem = study.problem
    steps = [
        f"{study.n_folds} folds" + (", each with its share of every class" if problem.classes is not None else "")
        + f"; seed {study.seed}. The same data, seed and version give the same figures.",
        *(note[:1].upper() + note[1:] + "." for note in (*problem.reading, *problem.notes)),
    ]  # fmt: skip
    if len(problem.y) > TUNING_ROWS:
        steps.append(
            f"The SVM is fitted to at most {SVM_ROWS} rows and tuned on at most {TUNING_ROWS}, drawn at random; the "
            "other learners use all rows."
        )
    n_copies = _n_copies(problem.X)
    if n_copies:
        steps.append(
            f"{n_copies} of {len(problem.y)} rows have the same values as an earlier one: where copies fall into "
            "different folds, errors look smaller than they are."
        )
    steps += [f"Warning of the {remark}" for remark in study.remarks]
    versions = [
        ["kernelrules", __version__], ["Python", platform.python_version()], ["NumPy", np.__version__],
        ["SciPy", scipy.__version__], ["threads", study.n_threads], ["SIMD", machine.simd()],
        ["machine", f"{platform.system()} {platform.machine()}"], ["seed", study.seed],
        ["time taken", f"{study.seconds:.1f} s"],
    ]  # fmt: skip
    shown = Markup(f"<pre>{escape(command)}</pre>") if command else Markup("")
    return section(
        "how", "How it was done", _list(steps), shown, table("Versions and time", ["", "value"], versions, left=2)
    )
