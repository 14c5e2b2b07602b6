"""Slowdown of threaded calls while another process occupies a core; peers_busy.py covers all functions.

The figures are ratios of medians, comparable between machines: 1.5 is expected of two threads on two cores.
"""

from .peers_busy import CASES, measure, spinning

TRACKED = ("gram 9000×24", "svc spam C=100", "svc iris", "tree.grow 200000×20 to depth 8")
ROUNDS = 5


class Busy:
    """Two threads, one core taken."""

    params = (TRACKED,)
    param_names = ("case",)

    def setup(self, case):
        self.call = next(known for known in CASES if known.case == case).make()

    def _medians(self):
        with spinning() as (go_on, stop):
            return measure([[], [], [], []], self.call, ROUNDS, go_on, stop)

    def track_busy_over_idle(self, case):
        _, idle, busy, _ = self._medians()
        return round(busy / idle, 2)

    def track_two_threads_over_one(self, case):
        _, _, busy, one = self._medians()
        return round(busy / one, 2)
