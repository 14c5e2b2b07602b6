"""The hard margin: the nearest points of the two classes' convex hulls.

    minimise  ½ |Σ₊ a φ(x) - Σ₋ a φ(x)|²   over  a ≥ 0,  sum 1 in each class

is a dual problem of two groups on a bounded set, so it is solved for any data, separable or not. With δ the distance
found, w = (2/δ²)·(difference of the two points) is the hard margin's; δ = 0 is the certificate that there is none. The
hard margin's dual itself has no maximum then: a solver would run for ever.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kernelrules.results import Certificate
from kernelrules.svm import dual
from kernelrules.svm.settings import NotSeparable, Settings
from kernelrules.svm.values import KernelValues

__all__ = ["hard_margin"]

_NOISE = 1e-13  # squared distance, relative to the squared size of the points, that rounding cannot tell from zero
_ROUNDS = 40  # each asks for a tolerance ten times smaller, or for the last one


def hard_margin(
    values: KernelValues, spans: list[tuple[int, int]], n_positive: int, settings: Settings
) -> dict[str, Any]:
    """Coefficients, intercept, certificate and decision values; `spans` has the positive points first."""
    n = sum(last - first for first, last in spans)
    signs = np.where(np.arange(n) < n_positive, 1.0, -1.0)
    problem = dual.nu_svc(spans, n_positive, np.full(n, 2.0), 1.0 / n)  # a sum of 1 leaves every a below its limit
    size = float(np.abs(values.diagonal(np.float64)).max()) if not values.given else float(np.abs(values.x).max())
    tol, steps = 1e-2 * size, 0
    for _ in range(_ROUNDS):
        left = None if settings.max_iter is None else max(settings.max_iter - steps, 1)
        solution = dual.solve(values, [problem], max(tol, 1e-300), left, settings.tick)[0]
        steps += solution.certificate.iterations
        squared = float((solution.a * solution.gradient).sum())  # not by BLAS, whose sums depend on its threads
        if squared <= _NOISE * size:
            raise NotSeparable(
                "no hyperplane separates the classes: their convex hulls come as near as "
                f"{max(squared, 0.0) ** 0.5:.3g} after {steps} iterations; use a finite C"
            )
        scale = 2.0 / squared
        if solution.certificate.kkt * scale <= settings.tol:
            break
        if not solution.certificate.converged and (settings.max_iter is None or steps >= settings.max_iter):
            if solution.certificate.primal >= 0:  # the distance may be zero: nothing is proved
                raise NotSeparable(f"the classes could not be separated in {steps} iterations; use a finite C")
            break
        tol = min(tol / 10, 0.9 * settings.tol / scale)
        problem = replace(problem, start=solution.a)
    intercept = solution.intercept * scale
    decision = scale * solution.gradient + intercept
    nearest = float((signs * decision).min())
    dual_value = scale  # Σα - ½‖w‖² = 2·scale - scale
    primal = dual_value / nearest**2 if nearest > 0 else np.inf
    kkt = solution.certificate.kkt * scale
    certificate = Certificate(primal, dual_value, primal - dual_value, kkt, steps, kkt <= settings.tol)
    return {"beta": solution.beta * scale, "intercept": intercept, "certificate": certificate, "decision": decision}
