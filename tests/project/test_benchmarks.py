"""The benchmarks that are not asv's measure what they say. They are part of a checkout, not of what is installed."""

import inspect
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from places import ROOT

import kernelrules

PARTS = ("kernels", "svm", "ridge", "erm", "graph", "tree", "prune", "rules", "bounds")


@pytest.fixture
def scaling(monkeypatch):
    if not (ROOT / "asv_benches").is_dir() or Path(kernelrules.__file__).parents[1] != ROOT:
        pytest.skip("benchmarks run in a checkout that the package was built in")
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("peaks of memory are read as Linux has them")
    monkeypatch.syspath_prepend(ROOT)
    from asv_benches.benches import _peers, scaling

    monkeypatch.setattr(_peers, "PAUSE_SECONDS", 0.0)
    return scaling


def test_every_function_with_threads_is_measured_on_a_busy_machine(scaling):
    """The table says which of its cases meet the goals; it has a row for each of them."""
    from asv_benches.benches.peers_busy import CASES, HEADER, MOST_BUSY

    shorter = {"gram": "kernels", "nystroem": "kernels", "svc": "svm", "svr": "svm", "one_class": "svm"}
    names = [case.case.split()[0] for case in CASES]
    measured = {name if "." in name else f"{shorter[name]}.{name}" for name in names}
    threaded = {
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in (getattr(kernelrules, part) for part in PARTS)
        for name in module.__all__
        if inspect.isfunction(getattr(module, name))
        and "n_threads" in inspect.signature(getattr(module, name)).parameters
    }
    assert len(threaded) > 30
    assert threaded - measured == set()
    table = (ROOT / "docs" / "benchmarks_busy_table.inc").read_text(encoding="utf-8")
    assert [case.case for case in CASES if f"| {case.case} " not in table] == []
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if "ms" not in line]
    rows = [row for row in rows if len(row) == len(HEADER)]
    assert len(rows) == len(CASES)
    for row in rows:  # a miss may stand there, and the page's summary names it; a false "met" may not
        assert row[-1] != "met" or (float(row[5]) <= MOST_BUSY and float(row[6]) <= 1.0), row
        assert row[-1].startswith(("met", "missed: ", "undecided: ")), row


def test_verdicts_of_the_busy_table(scaling):
    """A goal is missed if the interval of the median excludes it, and undecided if only the median misses it."""
    from asv_benches.benches.peers_busy import CASES, judge

    small = next(case for case in CASES if case.small)

    def verdict(idle_1=1.0, busy_2=1.5, busy_1=(1.5,) * 15):
        return judge(small, [idle_1] * 15, [1.0] * 15, [busy_2] * 15, busy_1)

    assert verdict() == "met"
    assert verdict(busy_2=1.7) == "missed: busy 1.6 of idle, slower than one thread"
    assert verdict(idle_1=0.9) == "missed: small: slower than one thread"
    assert verdict(busy_1=[1.6] * 6 + [1.4] * 9) == "undecided: slower than one thread"
    assert verdict(busy_1=[1.6] * 3 + [1.4] * 12) == "missed: slower than one thread"


def test_times_of_scaling_are_those_of_warm_calls(scaling, monkeypatch):
    """The first call of all rows is slow, as it is where memory is fresh: it counts for memory alone."""
    seen, peaks = [], []

    def call(X):
        time.sleep(0.5 if len(X) == 1000 and 1000 not in seen else 0.0)
        seen.append(len(X))

    def with_peak(call):
        peaks.append(len(seen))
        return call(), 0.5, 8.0

    monkeypatch.setitem(scaling.PROBLEMS, "gram", lambda n, who: (call, (np.empty((n, 1)),)))
    monkeypatch.setattr(scaling, "with_peak", with_peak)
    found = scaling.alone("gram", scaling.OURS, 1000, 3)
    assert seen == [scaling.N_WARM_UP, 1000, 1000, 1000, 1000]
    assert peaks == [1]
    assert found["MB"] == 8.0
    assert found["s"] < 0.25


def test_scaling_measures_and_says_by_what(scaling, monkeypatch):
    monkeypatch.setattr(scaling, "SIZES", {"gram": (300, 900)})
    monkeypatch.setattr(sys, "argv", ["scaling", "--rounds", "2"])
    asked = []

    def measured_alone(module, words, limit, n_threads):
        asked.append((module, *words))
        return {"s": int(words[2]) ** 2 / 1e6, "MB": int(words[2]) / 100}

    monkeypatch.setattr(scaling, "measured_alone", measured_alone)
    report = scaling.measured("gram", 2)
    assert asked == [("scaling", "gram", who, str(n), "2") for n in (300, 900) for who in ("ours", "scikit-learn")]
    for found in report.values():
        assert (found["exponent of time"], found["exponent of memory"]) == (2.0, 1.0)
    assert scaling.facts("scaling")[-1].endswith("by: python -m asv_benches.benches.scaling --rounds 2")


def test_a_process_of_its_own_answers(scaling):
    found = scaling.measured_alone("scaling", ["gram", scaling.OURS, "300", "2"], 60, 1)
    assert found.keys() == {"s", "MB"}
    assert 0 < found["s"] < 60
