"""Cross-validation of the learners on common folds: each row is predicted by models fitted without its fold.

    error = mean loss of the held-out rows        standard error = its deviation over rows / √n

All choices of a learner (size, C, gamma, λ, means, levels) use its training rows only. Finally each learner is fitted
to all rows; the report shows these models.
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
from kernelrules.report.progress_display import Silent

__all__ = ["Outcome", "Score", "Study", "run_study"]

_ONE_THREAD_MAX_ROWS = 5000  # thousands of small fits gain little from a second thread, and lose on a busy machine


@dataclass(frozen=True)
class Score:
    """Score of held-out predictions: accuracy, or root mean squared error, with standard errors over rows.

    Attributes
    ----------
    value, se : float
        Accuracy, or RMSE.
    other, other_se : float
        Balanced accuracy (mean recall of the classes), or R².
    behind, behind_se : float
        Difference from the best learner, paired by rows.
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
    """Held-out predictions of a learner, their score, its fit to all rows (None for the baseline) and its time."""

    title: str
    predictions: np.ndarray
    score: Score
    fitted: Fitted | None
    seconds: float


@dataclass(frozen=True, eq=False)
class Study:
    """The content of a report.

    Attributes
    ----------
    problem : Problem
        The data.
    folds : ndarray (n,)
        The fold of every row.
    outcomes : dict
        Outcomes by the name of the learner; the first is "baseline".
    seed : int
        Seed of folds and learners.
    n_threads : int
        Number of threads used.
    remarks : tuple of str
        Warnings of the fits.
    seconds : float
        Total time.
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
        """Number of folds."""
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
        Number of folds, stratified by class; or the fold of each row.
    seed : int
        Seed of folds and learners: the same seed gives the same study.
    learners : iterable of str
        Names in `LEARNERS`.
    n_threads : int, optional
        Default: one for up to 5000 rows, for more the cores that the process may use. Results do not depend on it.
    progress : optional
        A display of `progress_display.py`.

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
    if n_threads is None and len(problem.y) <= _ONE_THREAD_MAX_ROWS:
        n_threads = 1
    settings = Settings(seed, n_threads, progress.callback)
    progress.begin(len(learners) * (n_folds + 1))
    for name in learners:
        start = time.perf_counter()
        learner = LEARNERS[name]
        held_out = predictions[name] = np.empty_like(problem.y)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for fold in range(n_folds):
                progress.step(f"{learner.title}, fold {fold + 1} of {n_folds}")
                held = numbers == fold
                model = learner.fit(problem, np.flatnonzero(~held), settings).model
                held_out[held] = predict(model, problem.X[held], n_threads)
            progress.step(f"{learner.title}, all rows")
            fitted[name] = learner.fit(problem, np.arange(len(numbers)), settings)
        seconds[name] = time.perf_counter() - start
        remarks += [f"{learner.title}: {text}" for text in sorted({str(each.message) for each in caught})]
    progress.end()
    scores = _scores(problem, numbers, predictions)
    base = "most frequent class" if problem.classes is not None else "mean"
    titles = {"baseline": base} | {name: LEARNERS[name].title for name in learners}
    outcomes = {
        name: Outcome(titles[name], predictions[name], scores[name], fitted[name], seconds[name]) for name in titles
    }
    threads = parallel.n_threads_or_default(n_threads)
    return Study(problem, numbers, outcomes, seed, threads, tuple(remarks), time.perf_counter() - started)


def _baseline(problem: Problem, numbers: np.ndarray) -> np.ndarray:
    """Return the most frequent class, or the mean, of the other folds."""
    held_out = np.empty_like(problem.y)
    for fold in range(numbers.max() + 1):
        held = numbers == fold
        rest = problem.y[~held]
        if problem.classes is None:
            held_out[held] = rest.mean()
        else:
            labels, counts = np.unique(rest, return_counts=True)
            held_out[held] = labels[counts.argmax()]
    return held_out


# ---- scores -------------------------------------------------------------------------------------------------------


def _scores(problem: Problem, numbers: np.ndarray, predictions: dict[str, np.ndarray]) -> dict[str, Score]:
    """Return the scores by 0/1 or squared loss; learners are compared by the paired differences of their losses."""
    y = problem.y
    if problem.classes is not None:
        losses = {name: (held_out != y).astype(np.float64) for name, held_out in predictions.items()}
    else:
        losses = {name: np.square(held_out - y) for name, held_out in predictions.items()}
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
    """Return the balanced accuracy and its standard error.

    Classes are independent samples of at least two rows (checked by `pose`), so the variances of their means add up.
    """
    found = [_mean(1 - loss[problem.y == label]) for label in problem.classes]
    shares, errors = np.array(found).T
    return float(shares.mean()), float(np.sqrt(np.square(errors).sum()) / len(found))
