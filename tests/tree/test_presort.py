"""core.presort: columns are sorted a few at a time, and signals are handled between them."""

import signal
import threading

import numpy as np
import pytest

from kernelrules.core.tree.presort import Presorted


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers of processor time there")
@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread")
@pytest.mark.parametrize("layout", ["C", "F"])
def test_signals_are_handled_between_long_columns(layout):
    """A timer that fires every millisecond: its handler runs once per look at signals, and each column is one."""
    n, p = 2_100_000, 4
    values = np.asarray(np.random.default_rng(0).random((n, p), dtype=np.float32), order=layout)
    n_levels, labels = np.zeros(p, dtype=np.intp), np.zeros(n, dtype=np.uint32)
    looks = []
    before = signal.signal(signal.SIGPROF, lambda *_: looks.append(1))
    try:
        signal.setitimer(signal.ITIMER_PROF, 1e-3, 1e-3)
        Presorted(values, n_levels, labels, 1, None, None, False, 1)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    assert len(looks) >= p
