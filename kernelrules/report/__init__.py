"""The command line, and the report: four learners cross-validated on a table, as one page of HTML.

In the order of the data's way:

reading.py    a CSV file as columns with guessed types          problem.py       target, features and rows
encoding.py   columns as the numbers that models read           models.py        the four learners
study.py      held-out predictions and their scores             progress_display.py   progress in a terminal
page.py       the page; sections.py: one section per learner    html.py, style.py     its markup
charts.py     the charts; tree_picture.py: the tree             svg.py           drawing
cli.py        the command `kernelrules`                         installation.py  versions and self-check
"""

from kernelrules.report.page import render
from kernelrules.report.problem import pose, spambase
from kernelrules.report.reading import DataError, read_sheet
from kernelrules.report.study import run_study

__all__ = ["DataError", "pose", "read_sheet", "render", "run_study", "spambase"]
