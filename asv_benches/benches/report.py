"""The report: time and memory of a whole report on Spambase, of reading a CSV file, and the scores."""

import tempfile
from pathlib import Path

from ._common import Repeats, normal, require, rounded

N_ROWS = 50_000


class Report:
    """The command `kernelrules report` without a file: four learners, five folds."""

    rounds = 1
    repeat = 1
    number = 1
    warmup_time = 0
    timeout = 600

    def setup(self):
        self.report = require("report", "run_study", "render", "spambase")

    def study(self):
        return self.report.run_study(self.report.spambase(), seed=0)

    def time_report(self):
        self.report.render(self.study())

    def peakmem_report(self):
        self.report.render(self.study())

    def track_accuracy_of_the_best(self):
        found = self.study()
        return rounded(found.outcomes[found.best].score.value)


class Reading(Repeats):
    """Reading a CSV file of 50 000 rows with twelve numbers and a category."""

    def setup(self):
        self.report = require("report", "read_sheet", "pose")
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name, "rows.csv")
        lines = [",".join(f"v{i}" for i in range(12)) + ",kind"]
        for i, row in enumerate(normal((N_ROWS, 12)).round(4).tolist()):
            lines.append(",".join(map(str, row)) + f",{'abc'[i % 3]}")
        self.path.write_text("\n".join(lines) + "\n")

    def teardown(self):
        self.folder.cleanup()

    def time_read_and_pose(self):
        self.report.pose(self.report.read_sheet(self.path), "kind")
