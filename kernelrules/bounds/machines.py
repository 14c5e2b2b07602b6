"""Bounds for kernel machines: functions in a ball ‖f‖ ≤ a of the kernel's space (Bartlett and Mendelson 2002).

R(a) = E sup (1/n) Σ σᵢ f(xᵢ) = E (a/n) √(σᵀKσ) ≤ (a/n) √tr K        σ random signs
E φ(y f(x)) ≤ mean φ + 2ℓ R(a)/γ + 3 √(ln(2/η)/2n)                  φ(u) = L(u/γ) in [0, 1], L with Lipschitz constant ℓ

References
----------
- P. L. Bartlett and S. Mendelson (2002). Rademacher and Gaussian complexities: risk bounds and structural results.
  Journal of Machine Learning Research 3, 463-482.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelrules import check, erm, kernels, losses, parallel, svm
from kernelrules.bounds.arguments import log_share_of_class, probability
from kernelrules.kernels.values import ask, is_callable, plain, require_symmetric, take
from kernelrules.results import Bound, ErmFit, Estimate, SVMModel

__all__ = ["covering", "margin_bound", "of_model", "rademacher", "rademacher_monte_carlo"]

_BLOCK_DRAWS = 64  # vectors of signs multiplied at a time
_TRACE_RTOL = 1e-9  # of the trace: a quadratic form further below 0 is not explained by rounding
_NORM_RTOL = 1e-3  # of ‖f‖²: a matrix with another ‖f‖² is not that of the fit


def rademacher(trace: float, n: int, a: float) -> float:
    """Return a bound of the Rademacher complexity of {f : ‖f‖ ≤ a}, (a/n) √tr K [1]_.

    It is at most ab/√n, because tr K ≤ n b² with b² the largest k(x, x). (A slide prints tr K ≤ bn.)

    Parameters
    ----------
    trace : float
        tr K, the sum of k(xᵢ, xᵢ).
    n : int
        Number of points.
    a : float
        The largest norm.

    Returns
    -------
    float
        An upper bound of E sup (1/n) Σ σᵢ f(xᵢ) over random signs σ.

    References
    ----------
    .. [1] P. L. Bartlett and S. Mendelson (2002). Rademacher and Gaussian complexities: risk bounds and structural
       results. Journal of Machine Learning Research 3, 463-482.

    Examples
    --------
    >>> from kernelrules import bounds
    >>> bounds.rademacher(100.0, 100, 2.0)
    0.2
    """
    n = check.whole(n, "n", 1)
    return check.not_negative(a, "a") * (math.sqrt(check.not_negative(trace, "trace")) / n)


@parallel.reports("rademacher")
def rademacher_monte_carlo(
    K: Any,
    a: float,
    n_draws: int = 1000,
    rng: Any = None,
    *,
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> Estimate:
    """Estimate the Rademacher complexity of {f : ‖f‖ ≤ a} by random signs: the mean of (a/n) √(σᵀKσ).

    E σᵀKσ is tr K, which is known, so q = σᵀKσ corrects the mean of its own root: what is averaged is √q - (q -
    t)/(2√t) with t = tr K. It has the same expectation and a far smaller variance, and as the root lies below its
    tangent, no draw and so no estimate exceeds (a/n) √tr K. A negative estimate, from few draws, is replaced by 0.

    Parameters
    ----------
    K : array (n, n)
        The kernel matrix, symmetric and positive semi-definite.
    a : float
        The largest norm.
    n_draws : int
        Number of vectors of signs, at least 2.
    {rng}
        It draws the random signs.
    {n_threads, callback, progress}

    Returns
    -------
    Estimate
        value, standard_error, n_draws.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import bounds
    >>> bounds.rademacher_monte_carlo(np.ones((2, 2)), 1.0, 4000, rng=0).value.__round__(2)
    0.5
    >>> bounds.rademacher(2.0, 2, 1.0).__round__(2)
    0.71
    """
    a, n_draws = check.not_negative(a, "a"), check.whole(n_draws, "n_draws", 2)
    generator = check.generator(rng)
    threads, tick = parallel.n_threads_or_default(n_threads), parallel.ticker(callback, "rademacher")
    given = check.matrix(K, "K", dtype=np.float64)
    n = len(given)
    if given.shape != (n, n) or n == 0:
        raise ValueError(f"K must be square and not empty, got shape {given.shape}")
    matrix = check.dense(given)
    require_symmetric(matrix, "K")
    with np.errstate(over="ignore"):
        trace, largest = float(np.trace(matrix)), float(np.abs(matrix).sum())
    if not math.isfinite(max(largest, a * math.sqrt(abs(trace)))):
        raise ValueError(f"K or a is too large: their products overflow float64 (the sum of |K| is {largest:.3g})")
    if (np.diagonal(matrix) < 0).any():
        raise ValueError(f"K is not positive semi-definite: its diagonal holds {np.diagonal(matrix).min()}")

    def blocks() -> Iterator[tuple]:
        for start in range(0, n_draws, _BLOCK_DRAWS):
            yield (matrix, generator.integers(0, 2, size=(min(_BLOCK_DRAWS, n_draws - start), n)) * 2.0 - 1.0)

    forms = np.empty(0)
    with parallel.blas_threads(1):
        for part in parallel.in_threads(_quadratic_forms, blocks(), threads if n > 200 else 1):
            forms = np.append(forms, part)
            if tick is not None:
                tick(len(forms), n_draws)
    if forms.min() < -_TRACE_RTOL * trace or (trace == 0 and forms.any()):
        raise ValueError(f"K is not positive semi-definite: it has a quadratic form of {forms.min():.6g}")
    if trace == 0:
        return Estimate(0.0, 0.0, n_draws)
    roots = np.sqrt(np.maximum(forms, 0.0))
    corrected = roots - (roots * roots - trace) / (2 * math.sqrt(trace))
    value = a / n * max(float(corrected.mean()), 0.0)
    value = min(value, rademacher(trace, n, a))  # the mean itself may round up
    return Estimate(value, a / n * float(corrected.std(ddof=1)) / math.sqrt(n_draws), n_draws)


def _quadratic_forms(matrix: np.ndarray, signs: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", signs @ matrix, signs)


def covering(a: float, b: float, epsilon: float, n: int) -> float:
    """Return a bound of ln N∞ of {f : ‖f‖ ≤ a}: 36 (ab/ε)² ln(2⌈4ab/ε + 2⌉ n + 1).

    N∞ is the number of functions sufficient to be within ε of every other one at any n points.

    Parameters
    ----------
    a : float
        The largest norm.
    b : float
        The largest √k(x, x).
    epsilon : float
        The distance, above 0.
    n : int
        Points.

    Returns
    -------
    float
        The natural logarithm; 0 if a or b is 0.

    Examples
    --------
    >>> from kernelrules import bounds
    >>> bounds.covering(1.0, 1.0, 1.0, 1).__round__(3)
    92.338
    """
    a, b, epsilon = check.not_negative(a, "a"), check.not_negative(b, "b"), check.positive(epsilon, "epsilon")
    n = check.whole(n, "n", 1)
    ratio = a * b / epsilon
    if not math.isfinite(ratio * ratio):
        raise ValueError(f"(a b / epsilon)² overflows float64: a b is {a * b:.3g}, epsilon {epsilon:.3g}")
    return 36 * ratio * ratio * math.log(2 * math.ceil(4 * ratio + 2) * n + 1)


def margin_bound(
    margins: Any,
    trace: float,
    *,
    norm: float,
    gamma: float = 1.0,
    eta: float = 0.05,
    norm_fixed: bool = False,
    unit: float = 1.0,
    loss: Any = "ramp",
) -> Bound:
    """Return the margin bound of a kernel machine: mean φ + (2aℓ/(γn)) √tr K + 3 √(ln(2/η)/(2n)).

    φ(u) = L(u/γ), cut off at 0 and 1, for a loss L of Lipschitz constant ℓ, so that φ has ℓ/γ; for the ramp ℓ = 1 and
    nothing is cut off. If the loss is at least 1 for u ≤ 0, as ramp and hinge are, φ is at least the 0/1 loss, and the
    bound also holds for the error rate. It holds for all functions with ‖f‖ ≤ a at once [1]_. If a is not fixed
    beforehand but is the norm of the fit (norm_fixed=False), the classes a_k = unit · 2^(k-1), k = 1, 2, ..., are
    taken together: a becomes the first a_k that is at least `norm`, and η becomes 6η/(π²k²).

    Parameters
    ----------
    margins : array (n,)
        y f(x) of the sample, y = ±1.
    trace : float
        tr K of the sample.
    norm : float
        ‖f‖, or the limit a that was fixed before.
    gamma : float
        The margin, above 0; it must not be chosen from the sample either.
    eta : float
        The probability with which the bound may fail, between 0 and 1.
    norm_fixed : bool
        Whether `norm` was fixed before the sample was seen.
    unit : float
        The smallest norm of the grid, fixed beforehand.
    loss : str or Loss
        One of `kernelrules.losses` with a finite `lipschitz` ("ramp", "hinge", "logistic"), or a `Loss` of your own
        that has one.

    Returns
    -------
    Bound
        Its three parts; `total` is the bound, and `print` shows it in words.

    References
    ----------
    .. [1] P. L. Bartlett and S. Mendelson (2002). Rademacher and Gaussian complexities: risk bounds and structural
       results. Journal of Machine Learning Research 3, 463-482.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelrules import bounds
    >>> print(bounds.margin_bound(np.full(10_000, 1.5), 10_000.0, norm=3.0))
    error rate of functions with norm <= 4 <= 0.1336 (with probability 0.95)
      = 0.0000 on the 10000 points + 0.0800 for the class of functions + 0.0536 for chance
    """
    norm, gamma, eta = check.not_negative(norm, "norm"), check.positive(gamma, "gamma"), probability(eta)
    fixed, unit = check.flag(norm_fixed, "norm_fixed"), check.positive(unit, "unit")
    trace, chosen = check.not_negative(trace, "trace"), _lipschitz(loss)
    u = check.targets(margins, len(margins) if np.ndim(margins) else 0, "margins")
    n = len(u)
    if n == 0:
        raise ValueError("margins is empty")
    a, log_share = norm, math.log(eta)
    if not fixed:
        a, k = unit, 1
        while a < norm:
            a, k = 2 * a, k + 1
        log_share = log_share_of_class(eta, k)
    if not math.isfinite(a):
        raise ValueError(f"norm is {norm:.6g}: the class of the grid that holds it overflows float64")
    with np.errstate(over="ignore"):
        values = np.asarray(chosen(u / gamma))
    if values.shape != u.shape or np.isnan(values).any():
        raise ValueError(f"loss must give a number for each margin, and {chosen.name} does not")
    empirical = float(np.mean(np.clip(values, 0.0, 1.0)))
    deviation = 3 * math.sqrt((math.log(2) - log_share) / (2 * n))
    dominates = chosen.slopes[1] <= 0 and chosen(0.0) >= 1  # so that it is at least 1 below 0, too
    what = "error rate" if dominates else f"{chosen.name} risk, losses cut off at 1,"
    complexity = 2 * chosen.lipschitz * rademacher(trace, n, a) / gamma
    return Bound(empirical, complexity, deviation, eta, n, f"{what} of functions with norm <= {a:g}")


def _lipschitz(loss: Any) -> losses.Loss:
    """Return the loss, which must have a Lipschitz constant."""
    able = [name for name, each in losses.BY_NAME.items() if math.isfinite(each.lipschitz)]
    if isinstance(loss, str):
        if loss not in losses.BY_NAME:
            raise ValueError(f"loss must be one of {', '.join(map(repr, able))} or a Loss, got {loss!r}")
        loss = losses.BY_NAME[loss]
    if not isinstance(loss, losses.Loss):
        raise TypeError(f"loss must be a name or one of kernelrules.losses, got {loss!r}")
    if not math.isfinite(loss.lipschitz):
        raise ValueError(f"loss must have a Lipschitz constant, as {', '.join(able)} do, and {loss.name} has none")
    return loss


@parallel.reports("bound")
def of_model(
    model: Any,
    X: Any,
    y: Any,
    *,
    gamma: float = 1.0,
    eta: float = 0.05,
    unit: float = 1.0,
    loss: Any = "ramp",
    n_threads: int | None = None,
    callback: Any = None,
    progress: bool = False,
) -> Bound:
    """Return the margin bound of a support vector classifier or an `erm.fit` with two classes.

    An intercept b that is not 0 is treated as the weight of one more feature that is 1 everywhere: ‖f‖² + b² and tr K
    + n take the places of ‖f‖² and tr K. The norm comes from the fit, so the union bound over a grid is included.

    Parameters
    ----------
    model : SVMModel or ErmFit
        Of two classes.
    X : array, sparse matrix or data frame, (n, p)
        The sample, as a rule the training data; for `Precomputed` the square matrix of the training points.
    y : array (n,)
        Its labels.
    gamma, eta, unit, loss : optional
        As in `margin_bound`.
    {n_threads, callback, progress}

    Returns
    -------
    Bound
        Bound of the error rate of the model, or of its risk.

    Examples
    --------
    >>> from kernelrules import bounds, datasets, kernels, svm
    >>> X, y, _, _ = datasets.spambase()
    >>> X, y = ((X - X.mean(axis=0)) / X.std(axis=0))[::4], y[::4]
    >>> model = svm.svc(X, y, C=0.01, kernel=kernels.RBF(1 / 57))
    >>> bounds.of_model(model, X, y).vacuous
    False
    """
    norm, intercept = _norm_and_intercept(model)
    x = check.matrix(X)
    n = x.shape[0]
    if n == 0:
        raise ValueError("X has no rows")
    signs = np.where(check.known_codes(y, n, model.classes) == 1, 1.0, -1.0)
    decide = svm.decision if isinstance(model, SVMModel) else erm.decision
    values = decide(model, X, n_threads=n_threads, callback=callback)
    trace = _trace(x, model.kernel)
    if isinstance(model.kernel, kernels.Precomputed):
        _require_same_points(model, x, values - intercept, norm)
    if intercept != 0:
        norm, trace = math.hypot(norm, intercept), trace + n
    return margin_bound(signs * values, trace, norm=norm, gamma=gamma, eta=eta, unit=unit, loss=loss)


def _norm_and_intercept(model: Any) -> tuple[float, float]:
    if not isinstance(model, (SVMModel, ErmFit)):
        raise TypeError(f"model must be one that svm.svc or erm.fit returned, got {type(model).__name__}")
    if model.classes is None or len(model.classes) != 2:
        raise ValueError("margin bounds require a model of two classes")
    if isinstance(model, ErmFit):
        return float(model.norms[0]), float(model.intercept[0])
    width = float(svm.margin(model))
    return (2.0 / width if width > 0 else math.inf), float(model.intercept[0])


def _require_same_points(model: Any, x: Any, values: np.ndarray, norm: float) -> None:
    """Raise for a kernel matrix whose rows or columns are not the training points in their order: ‖f‖² = Σ αᵢ f(xᵢ)."""
    matrix = check.dense(x)
    require_symmetric(matrix, "X")
    if isinstance(model, ErmFit):
        alpha = model.alpha[0]
    else:
        alpha = np.zeros(len(matrix))
        alpha[model.support] = model.dual_coef[0]
    precision = max(_TRACE_RTOL, 10 * float(np.finfo(matrix.dtype).eps))
    spread = float(np.abs(alpha) @ np.sqrt(np.abs(matrix.diagonal())))
    cancelled = precision * spread * spread  # infinite for numbers whose square overflows, which ** would refuse
    if abs(float(alpha @ values) - norm * norm) > _NORM_RTOL * norm * norm + cancelled:
        raise ValueError("X is not the kernel matrix of the training points in their order: ‖f‖² comes out otherwise")


def _trace(x: Any, kernel: Any) -> float:
    """Return Σ k(x, x) of checked data."""
    if not is_callable(kernel):
        return float(kernels.diagonal(plain(x), kernel, dtype=np.float64).sum())
    total = 0.0
    for i in range(x.shape[0]):
        one = take(x, np.array([i]))
        total += float(ask(kernel, one, one)[0, 0])
    return total
