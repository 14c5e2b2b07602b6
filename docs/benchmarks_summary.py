"""Summarise the tables of benchmarks.rst: rows of each table that reached their goal, and those that did not.

The summary is computed from the verdicts of the tables that the page includes, so that it cannot contradict them.
"""

import re
from pathlib import Path


def tables(text):
    """Yield (title, header, rows) of every grid table in a text, with stripped cells."""
    title, lines = "", []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            lines.append([cell.strip() for cell in line.strip("|").split("|")])
        elif line.startswith("**"):
            title = line.strip("*")
        elif lines and not line.startswith("+"):
            yield title, lines[0], lines[1:]
            lines = []


def summary(folder):
    """Return a reST list-table with one line per table that has verdicts, in the order of the page."""
    page = (Path(folder) / "benchmarks.rst").read_text(encoding="utf-8")
    lines = [".. list-table::", "   :header-rows: 1", "   :widths: 40 14 46", ""]
    lines += ["   * - table", "     - goals met", "     - missed or undecided"]
    for name in re.findall(r"include:: (benchmarks\w*_table\.inc)", page):
        for title, header, rows in tables((Path(folder) / name).read_text(encoding="utf-8")):
            if "verdict" not in header:
                continue
            judged = [(row[0], row[header.index("verdict")]) for row in rows]
            met = [case for case, verdict in judged if verdict == "met"]
            missed = [case for case, verdict in judged if verdict.startswith(("missed", "undecided"))]
            if met or missed:
                lines += [f"   * - {title}", f"     - {len(met)} of {len(met) + len(missed)}"]
                lines += [f"     - {'; '.join(missed) or '–'}"]
    return "\n".join(lines) + "\n"
