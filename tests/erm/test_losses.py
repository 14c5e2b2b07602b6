"""Losses: values against plain formulas, derivatives against differences, conjugates against a search, extremes."""

import copy
import dataclasses
import math
import pickle
import warnings

import erm_oracle as oracle
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelrules import losses

ALL = {name: getattr(losses, name) for name in oracle.LOSSES}
CONVEX = {name: loss for name, loss in ALL.items() if loss.convex}
each_loss = pytest.mark.parametrize("name", ALL)
each_convex = pytest.mark.parametrize("name", CONVEX)
margins = st.floats(-30, 30)


def test_all_are_here():
    assert set(losses.BY_NAME) == set(ALL)
    assert all(losses.BY_NAME[name] is loss and loss.name == name for name, loss in ALL.items())
    assert {name for name in ALL if ALL[name].smooth} == {"squared", "logistic", "squared_hinge", "exponential"}
    assert set(ALL) - set(CONVEX) == {"zero_one", "ramp"}


@each_loss
@given(u=margins)
def test_values(name, u):
    np.testing.assert_allclose(ALL[name](u), oracle.LOSSES[name](u), rtol=1e-14, atol=1e-300)


KINKS = {"hinge": [1.0], "squared_hinge": [1.0], "ramp": [0.0, 1.0], "zero_one": [0.0]}


@each_loss
@given(u=st.floats(-20, 20))
def test_derivatives_are_limits(name, u):
    """Central differences, away from kinks."""
    step = 1e-5
    if any(abs(u - kink) < 2 * step for kink in KINKS.get(name, [])):
        u += 4 * step
    loss = ALL[name]
    size = max(1.0, abs(loss(u)))
    np.testing.assert_allclose(loss.derivative(u), (loss(u + step) - loss(u - step)) / (2 * step), atol=2e-8 * size)
    slope = (loss.derivative(u + step) - loss.derivative(u - step)) / (2 * step)
    np.testing.assert_allclose(loss.second(u), slope, atol=2e-8 * size)


def test_derivatives_at_kinks_are_those_from_the_right():
    for name, kinks in KINKS.items():
        for kink in kinks:
            beyond = np.nextafter(kink, math.inf)
            assert ALL[name].derivative(kink) == pytest.approx(ALL[name].derivative(beyond), abs=1e-12)
            assert ALL[name].second(kink) == ALL[name].second(beyond)
    assert losses.hinge.derivative(1.0) == 0
    assert losses.ramp.derivative([0.0, 1.0]).tolist() == [-1.0, 0.0]
    assert losses.squared_hinge.second(1.0) == 0
    assert losses.zero_one([0.0, 5e-324]).tolist() == [1.0, 0.0]


@each_convex
@given(u=margins, fraction=st.floats(0, 1))
def test_conjugates(name, u, fraction):
    """Fenchel's inequality everywhere, equality at the derivative, and the supremum of a fine search."""
    loss = CONVEX[name]
    low, high = (min(max(slope, -20.0), 20.0) for slope in loss.slopes)
    s = low + fraction * (high - low)
    assert loss(u) + loss.conjugate(s) >= s * u - 1e-9 * max(1, abs(s * u), loss(u))
    at = loss.derivative(u)
    size = max(1.0, abs(at * u), loss(u))
    np.testing.assert_allclose(loss(u) + loss.conjugate(at), at * u, atol=1e-10 * size)
    grid = np.linspace(-60, 60, 24001)
    best = (s * grid - loss(grid)).max()
    assert best <= loss.conjugate(s) + 1e-9
    assert loss.conjugate(s) <= best + 1e-3


@each_convex
def test_conjugates_are_infinite_beyond_the_slopes(name):
    low, high = CONVEX[name].slopes
    for slope, outside in ((low, low - 1e-9), (high, high + 1e-9)):
        if math.isfinite(slope):
            assert CONVEX[name].conjugate(outside) == math.inf
            assert math.isfinite(CONVEX[name].conjugate(slope))


@each_convex
@given(u=margins, v=margins, t=st.floats(0, 1))
def test_convexity(name, u, v, t):
    loss = CONVEX[name]
    chord = t * loss(u) + (1 - t) * loss(v)
    assert loss(t * u + (1 - t) * v) <= chord * (1 + 1e-12) + 1e-12


@each_loss
@given(u=st.floats(-1e308, 1e308))
def test_all_dominate_zero_one(name, u):
    factor = math.log(2) if name == "logistic" else 1.0
    assert ALL[name](u) >= factor * losses.zero_one(u) * (1 - 1e-15)
    assert losses.ramp(u) <= losses.hinge(u)


@each_loss
@given(u=margins, v=margins)
def test_lipschitz_constants(name, u, v):
    constant = ALL[name].lipschitz
    if math.isfinite(constant):
        assert abs(ALL[name](u) - ALL[name](v)) <= constant * abs(u - v) + 1e-9
    assert math.isfinite(constant) == (name in ("logistic", "hinge", "ramp"))


@each_loss
@pytest.mark.parametrize("u", [1e308, -1e308, 709.0, -709.0, 800.0, -800.0, math.inf, -math.inf, 0.0, -0.0, 5e-324])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_extremes_are_limits_and_quiet(name, u, dtype):
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        with np.errstate(over="ignore"):
            array = np.array([u], dtype=dtype)
        for values in (ALL[name](array), ALL[name].derivative(array), ALL[name].second(array)):
            assert values.dtype == dtype
            assert not np.isnan(values).any()
        if ALL[name].convex:
            conjugate = ALL[name].conjugate(array)
            assert not np.isnan(conjugate).any()
            assert (conjugate == math.inf).all() or (np.abs(array) < 1e6).all() or name in ("squared", "squared_hinge")
    if u >= 700 and name not in ("squared",):
        assert ALL[name](u) < 1e-300
        assert abs(ALL[name].derivative(u)) < 1e-300
    if u <= -700 and name == "logistic":
        assert ALL[name](u) == -u
        assert ALL[name].derivative(u) == -1
        assert ALL[name].second(u) == pytest.approx(0, abs=1e-300)


def test_logistic_keeps_its_digits():
    np.testing.assert_allclose(losses.logistic(40.0), math.exp(-40), rtol=1e-14)
    np.testing.assert_allclose(losses.logistic.derivative(40.0), -math.exp(-40), rtol=1e-14)
    np.testing.assert_allclose(losses.logistic.second(-40.0), math.exp(-40), rtol=1e-14)


@each_loss
def test_shapes_and_input(name):
    loss = ALL[name]
    assert isinstance(loss(1), float)
    assert loss([]).shape == (0,)
    assert loss(np.zeros((2, 3, 4))).shape == (2, 3, 4)
    assert loss([1, 2]).dtype == np.float64
    assert repr(loss) == f"losses.{name}"
    frozen = np.linspace(-1, 1, 10)[::2]
    frozen.flags.writeable = False
    np.testing.assert_array_equal(loss(frozen), [loss(float(u)) for u in frozen])
    for call in (loss, loss.derivative, loss.second):
        with pytest.raises(ValueError, match=r"u holds nan at \(0, 1\)"):
            call([[0.0, math.nan]])
        for bad in (["a"], [None], [1j]):
            with pytest.raises(TypeError, match="u must hold real numbers"):
                call(bad)
    with pytest.raises(AttributeError):
        loss.name = "other"


@pytest.mark.parametrize("name", ["zero_one", "ramp"])
def test_no_conjugate_without_convexity(name):
    with pytest.raises(ValueError, match=f"{name} loss is not convex"):
        ALL[name].conjugate(0.0)


def test_masked_margins_are_refused():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    for call in (losses.logistic, losses.logistic.derivative, losses.logistic.second, losses.logistic.conjugate):
        with pytest.raises(ValueError, match="masked"):
            call(masked)
    np.testing.assert_array_equal(losses.squared(np.ma.array([1.0, 2.0])), [0.0, 1.0])


def _five(u):
    return np.full_like(u, 5.0)


def test_losses_survive_pickle_and_copy():
    """Those of the module stay the same objects; one's own are equal where their functions can be pickled."""
    for loss in ALL.values():
        assert pickle.loads(pickle.dumps(loss)) is loss
        assert copy.deepcopy(loss) is loss
    mine = losses.Loss("five", _five, np.zeros_like, np.zeros_like, None, (0.0, 0.0), True, "5")
    again = pickle.loads(pickle.dumps(mine))
    assert again([1.0, 2.0]).tolist() == [5.0, 5.0]
    assert (again.name, again.slopes, again.smooth, again.convex) == ("five", (0.0, 0.0), True, False)


def test_lipschitz_goes_by_slopes_and_not_by_identity():
    copied = dataclasses.replace(losses.zero_one, name="another")
    assert copied.lipschitz == math.inf
