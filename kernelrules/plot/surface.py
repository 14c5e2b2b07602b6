"""What a model answers at many points: the class of each, decision values where there is one machine, or numbers.

The one place that knows how each kind of model is asked. A new kind is one entry in _ASK.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrules import erm, kernels, ridge, rules, svm, tree
from kernelrules.results import (
    AdditiveRules,
    CalibratedSVM,
    ErmFit,
    FeatureRidge,
    PruneCV,
    RidgeFit,
    RuleList,
    SVMModel,
    Tree,
    TuneResult,
)

__all__ = ["Answers", "answers", "model_of"]

_NUMBERS_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Answers:
    """Of n points.

    Attributes
    ----------
    codes : ndarray (n,) or None
        Places in the classes; None for regression.
    values : ndarray (n,) or None
        Numbers of a regression; of two classes decision values or probabilities, positive or large for the second.
    levels : tuple of float
        Values to draw lines at, the boundary in the middle.
    """

    codes: np.ndarray | None
    values: np.ndarray | None
    levels: tuple[float, ...] = ()


def model_of(fitted: Any) -> tuple[Any, np.ndarray | None]:
    """Return the model that can predict, and its classes."""
    model = fitted.tree if isinstance(fitted, PruneCV) else fitted.model if isinstance(fitted, TuneResult) else fitted
    if not isinstance(model, tuple(_ASK)):
        known = ", ".join(kind.__name__ for kind in (*_ASK, PruneCV, TuneResult))
        raise TypeError(f"model must be one of {known}, got {type(model).__name__}")
    inner = model.model if isinstance(model, CalibratedSVM) else model
    if isinstance(getattr(inner, "kernel", None), kernels.Precomputed):
        raise ValueError("a model of a precomputed kernel cannot be asked at points of the plane")
    if isinstance(inner, SVMModel) and inner.kind == "one_class":
        return model, np.array([-1, 1])
    return model, getattr(inner, "classes", None)


def answers(model: Any, points: np.ndarray) -> Answers:
    """Return predictions, computed in parts so that wide data fit into memory."""
    ask = next(ask for kind, ask in _ASK.items() if isinstance(model, kind))
    step = max(1, _NUMBERS_AT_ONCE // max(points.shape[1], 1))
    parts = [ask(model, points[start : start + step]) for start in range(0, len(points), step)]
    joined = [None if part[0] is None else np.concatenate(part) for part in zip(*[p[:2] for p in parts], strict=True)]
    return Answers(*joined, parts[0][2])


def _codes(predicted: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the indices of predicted labels in the classes."""
    place = {label: k for k, label in enumerate(classes.tolist())}
    return np.array([place[label] for label in predicted.tolist()], dtype=np.int64)


def _ask_svm(model: SVMModel, points: np.ndarray) -> tuple[Any, Any, tuple[float, ...]]:
    if model.classes is None:
        values = svm.decision(model, points)
        return ((values > 0).astype(np.int64), values, (0.0,)) if model.kind == "one_class" else (None, values, ())
    codes = _codes(svm.predict(model, points), model.classes)
    if len(model.classes) > 2:
        return codes, None, ()
    return codes, svm.decision(model, points), (-1.0, 0.0, 1.0)


def _ask_calibrated(model: CalibratedSVM, points: np.ndarray) -> tuple[Any, Any, tuple[float, ...]]:
    shares = svm.predict_proba(model, points)
    return shares.argmax(axis=1), *((shares[:, 1], (0.1, 0.5, 0.9)) if shares.shape[1] == 2 else (None, ()))


def _ask_erm(fit: ErmFit, points: np.ndarray) -> tuple[Any, Any, tuple[float, ...]]:
    codes = _codes(erm.predict(fit, points), fit.classes)
    return codes, *((erm.decision(fit, points), (0.0,)) if len(fit.classes) == 2 else (None, ()))


def _ask_ridge(fit: RidgeFit | FeatureRidge, points: np.ndarray) -> tuple[Any, Any, tuple[float, ...]]:
    return None, _one_number(ridge.predict(fit, points)), ()


def _ask_tree(t: Tree, points: np.ndarray) -> tuple[Any, Any, tuple[float, ...]]:
    predicted = tree.predict(t, points)
    return (None, _one_number(predicted), ()) if t.classes is None else (_codes(predicted, t.classes), None, ())


def _ask_rules(rs: RuleList, points: np.ndarray) -> tuple[Any, Any, tuple[float, ...]]:
    predicted = rules.predict(rs, points)
    return (None, _one_number(predicted), ()) if rs.classes is None else (_codes(predicted, rs.classes), None, ())


def _ask_additive(model: AdditiveRules, points: np.ndarray) -> tuple[Any, Any, tuple[float, ...]]:
    scores = rules.decision(model, points)
    if model.classes is None:
        return None, scores, ()
    codes = _codes(rules.predict(model, points), model.classes)
    return codes, *((scores, (0.0,)) if len(model.classes) == 2 else (None, ()))


def _one_number(values: np.ndarray) -> np.ndarray:
    if values.ndim > 1 and values.shape[1] > 1:
        raise ValueError(f"model predicts {values.shape[1]} numbers, and a picture shows one")
    return values.reshape(len(values))


_ASK = {
    SVMModel: _ask_svm,
    CalibratedSVM: _ask_calibrated,
    ErmFit: _ask_erm,
    RidgeFit: _ask_ridge,
    FeatureRidge: _ask_ridge,
    Tree: _ask_tree,
    RuleList: _ask_rules,
    AdditiveRules: _ask_additive,
}
