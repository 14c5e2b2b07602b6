"""The learners on the same folds: every row is predicted by models that saw neither it nor its fold.

    error = mean loss of the held-out rows        standard error = its deviation over rows / √n

Whatever a learner chooses (size, C, gamma, λ, centres, levels), it chooses within its training rows. After the folds
each learner is fitted to all rows once more: those are the models that the report shows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules import parallel, selection
from kernelrules.report.models import LEARNERS, Fitted, Settings, predict
from kernelrules.report.problem import Problem
from kernelrules.report.waiting import Silent

__all__ = ["Outcome", "Score", "Study", "run_study"]

_FEW_ROWS = 5000  # thousands of fits of so few rows gain little by a second thread, and lose much on a busy machine


@dataclass(frozen=True)
class Score:
    """How well held-out rows were predicted: accuracy, or root mean squared error; with standard errors over rows.

    Attributes
    ----------
    value, se : float
        Accuracy, or RMSE.
    other, other_se : float
        Balanced accuracy (mean over the classes of the share found), or R².
    behind, behind_se : float
        How much worse than the best learner, row by row.
    by_fold : tuple of float
        The value in each fold.
    """

    value: float
    se: float
    other: float
    other_se: float
    behind: float
    behind_se: float
    by_fold: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Outcome:
    """One learner: its held-out predictions, their score, its fit to all rows (None for the baseline), its time."""

    title: str
    predictions: np.ndarray
    score: Score
    fitted: Fitted | None
    seconds: float


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that a report tells.

    Attributes
    ----------
    problem : Problem
        The data.
    folds : ndarray (n,)
        The fold of every row.
    outcomes : dict
        By the name of the learner; the first is "baseline".
    seed : int
        Of folds and learners.
    n_threads : int
        That were used.
    remarks : tuple of str
        Warnings of the fits.
    seconds : float
        In all.
    """

    problem: Problem
    folds: np.ndarray
    outcomes: dict[str, Outcome]
    seed: int
    n_threads: int
    remarks: tuple[str, ...]
    seconds: float

    @property
    def n_folds(self) -> int:
        """Folds."""
        return int(self.folds.max()) + 1

    @property
    def best(self) -> str:
        """The learner with the best score."""
        return min(self.outcomes, key=lambda name: self.outcomes[name].score.behind)


def run_study(
    problem: Problem,
    *,
    folds: Any = 5,
    seed: int = 0,
    learners: Iterable[str] = tuple(LEARNERS),
    n_threads: int | None = None,
    progress: Any = None,
) -> Study:
    """Cross-validate the learners, and fit them to all rows.

    Parameters
    ----------
    problem : Problem
        The data.
    folds : int or array (n,)
        How many, of classes each with its share; or the fold of every row.
    seed : int
        Of folds and learners: the same seed gives the same study.
    learners : iterable of str
        Which of `LEARNERS`.
    n_threads : int, optional
        Default: one for up to 5000 rows, for more the cores that the process may use. Results do not depend on it.
    progress : optional
        Told what is going on, as in `waiting.py`.

    Returns
    -------
    Study
        Held-out predictions, scores, models.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules.report.reading import Sheet
    >>> from kernelrules.report.study import run_study
    >>> from kernelrules.report.problem import pose
    >>> x = np.random.default_rng(0).normal(size=60)
    >>> cells = ([f"{v:.3f}" for v in x], ["up" if v > 0 else "down" for v in x])
    >>> study = run_study(pose(Sheet("signs", ("x", "way"), cells, ()), "way"), learners=["tree"])
    >>> study.best, study.outcomes["tree"].score.value > 0.9
    ('tree', True)
    """
    started = time.perf_counter()
    progress = Silent() if progress is None else progress
    learners = list(learners)
    strata = None if problem.classes is None else np.searchsorted(problem.classes, problem.y)
    numbers = selection.fold_numbers(folds, len(problem.y), strata, seed)
    predictions = {"baseline": _baseline(problem, numbers)}
    fitted: dict[str, Fitted | None] = {"baseline": None}
    seconds = {"baseline": 0.0}
    remarks: list[str] = []
    n_folds = int(numbers.max()) + 1
    if n_threads is None and len(problem.y) <= _FEW_ROWS:
        n_threads = 1
    settings = Settings(seed, n_threads, progress.callback)
    progress.begin(len(learners) * (n_folds + 1))
    for name in learners:
        start = time.perf_counter()
        learner = LEARNERS[name]
        told = predictions[name] = np.empty_like(problem.y)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for fold in range(n_folds):
                progress.step(f"{learner.title}, fold {fold + 1} of {n_folds}")
                held = numbers == fold
                model = learner.fit(problem, np.flatnonzero(~held), settings).model
                told[held] = predict(model, problem.X[held], n_threads)
            progress.step(f"{learner.title}, all rows")
            fitted[name] = learner.fit(problem, np.arange(len(numbers)), settings)
        seconds[name] = time.perf_counter() - start
        remarks += [f"{learner.title}: {text}" for text in sorted({str(each.message) for each in caught})]
    progress.end()
    scores = _scores(problem, numbers, predictions)
    base = "commonest class" if problem.classes is not None else "mean"
    titles = {"baseline": base} | {name: LEARNERS[name].title for name in learners}
    outcomes = {
        name: Outcome(titles[name], predictions[name], scores[name], fitted[name], seconds[name]) for name in titles
    }
    threads = parallel.n_threads_or_default(n_threads)
    return Study(problem, numbers, outcomes, seed, threads, tuple(remarks), time.perf_counter() - started)


def _baseline(problem: Problem, numbers: np.ndarray) -> np.ndarray:
    """What one would say without looking: the commonest class, or the mean, of the other folds."""
    told = np.empty_like(problem.y)
    for fold in range(numbers.max() + 1):
        held = numbers == fold
        rest = problem.y[~held]
        if problem.classes is None:
            told[held] = rest.mean()
        else:
            labels, counts = np.unique(rest, return_counts=True)
            told[held] = labels[counts.argmax()]
    return told


# ---- scores -------------------------------------------------------------------------------------------------------


def _scores(problem: Problem, numbers: np.ndarray, predictions: dict[str, np.ndarray]) -> dict[str, Score]:
    """Losses are 0/1 or squared; differences of two learners are those of their losses, row by row."""
    y = problem.y
    if problem.classes is not None:
        losses = {name: (told != y).astype(np.float64) for name, told in predictions.items()}
    else:
        losses = {name: np.square(told - y) for name, told in predictions.items()}
    best = min(losses, key=lambda name: losses[name].mean())
    return {name: _score(problem, numbers, loss, losses[best]) for name, loss in losses.items()}


def _score(problem: Problem, numbers: np.ndarray, loss: np.ndarray, best: np.ndarray) -> Score:
    risk, se = _mean(loss)
    n_folds = int(numbers.max()) + 1
    risks = [float(loss[numbers == fold].mean()) for fold in range(n_folds)]
    behind, behind_se = _mean(loss - best)
    if problem.classes is not None:
        other, other_se = _balanced(problem, loss)
        by_fold = tuple(1 - each for each in risks)
        return Score(1 - risk, se, other, other_se, behind, behind_se, by_fold)
    root, root_best = np.sqrt(risk), np.sqrt(best.mean())
    spread = float(problem.y.var())
    slope = 1 / (2 * root) if root > 0 else 0.0  # of a root
    return Score(
        value=float(root),
        se=se * slope,
        other=1 - risk / spread,
        other_se=se / spread,
        behind=float(root - root_best),
        behind_se=behind_se * slope,
        by_fold=tuple(float(np.sqrt(each)) for each in risks),
    )


def _mean(numbers: np.ndarray) -> tuple[float, float]:
    return float(numbers.mean()), float(numbers.std(ddof=1) / np.sqrt(len(numbers)))


def _balanced(problem: Problem, loss: np.ndarray) -> tuple[float, float]:
    """Mean over the classes of the share of their rows that was found, and its standard error.

    Classes have at least two rows (`pose` sees to it), each an own sample: the variances of their means add up.
    """
    found = [_mean(1 - loss[problem.y == label]) for label in problem.classes]
    shares, errors = np.array(found).T
    return float(shares.mean()), float(np.sqrt(np.square(errors).sum()) / len(found))
