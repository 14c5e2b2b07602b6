"""The report: a table read, four learners cross-validated on the same folds, one page of HTML.

reading.py   a CSV file as columns, types guessed          problem.py   the problem that it poses
coding.py    columns as what learners read                 models.py    the four learners
study.py     their held-out predictions and scores         waiting.py   what a person who waits sees
page.py      the page; sections.py: what it says of each learner; html.py, style.py
charts.py    its charts; tree_picture.py; svg.py
"""

from kernelrules.report.page import render
from kernelrules.report.problem import pose, spambase
from kernelrules.report.reading import DataError, read_sheet
from kernelrules.report.study import run_study

__all__ = ["DataError", "pose", "read_sheet", "render", "run_study", "spambase"]
