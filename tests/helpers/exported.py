"""Readers of what `export` writes: each gives back a function from a row to a prediction.

Rows hold numbers, also for levels, and NaN. Only names f0, f1, ... are read, and only text written with exact=True.
"""

import html
import math
import re


def condition(text):
    """A condition in words as a function of a row."""
    text = text.strip()
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    missing = text.endswith(" or missing")
    text = text.removesuffix(" or missing")
    number = r"(-?[\d.e+-]+|-?inf)"
    if match := re.fullmatch(rf"f(\d+) ≤ {number}", text):
        return tested(int(match[1]), lambda x: x <= float(match[2]), missing)
    if match := re.fullmatch(rf"f(\d+) > {number}", text):
        return tested(int(match[1]), lambda x: x > float(match[2]), missing)
    if match := re.fullmatch(rf"{number} < f(\d+) ≤ {number}", text):
        return tested(int(match[2]), lambda x: float(match[1]) < x <= float(match[3]), missing)
    if match := re.fullmatch(r"f(\d+) (=|≠) (\S+)", text):
        return tested(int(match[1]), lambda x: (x == float(match[3])) == (match[2] == "="), missing)
    if match := re.fullmatch(r"f(\d+) (in|not in) \{(.*)\}", text):
        levels = {float(level) for level in match[3].split(", ")}
        return tested(int(match[1]), lambda x: (x in levels) == (match[2] == "in"), missing)
    if match := re.fullmatch(r"f(\d+) is (known|missing)", text):
        return tested(int(match[1]), lambda x: match[2] == "known", match[2] == "missing" or missing)
    raise AssertionError(f"not a condition: {text!r}")


def tested(column, holds, missing):
    return lambda row: missing if math.isnan(row[column]) else holds(row[column])


def conjunction(text):
    parts = [] if text == "ALWAYS" else [condition(part) for part in text.split(" & ")]
    return lambda row: all(part(row) for part in parts)


def read_rules(text):
    """What `to_text` writes of a rule list."""
    listed = [line.split(" → ") for line in text.splitlines()]
    branches = [(conjunction("ALWAYS" if when == "OTHERWISE" else when), then) for when, then in listed]
    return lambda row: next(then for when, then in branches if when(row))


def read_tree(text):
    """What `to_text` writes of a tree: a line holds if those that it is indented under do."""
    branches, above = [], []
    for line in text.splitlines():
        depth = line.count("|   ")
        asks, _, says = line.replace("|   ", "").partition(": ")
        above = [*above[:depth], conjunction(asks)]
        if says:
            branches.append((list(above), says))

    def predict(row):
        found = [says for tests, says in branches if all(test(row) for test in tests)]
        assert len(found) == 1
        return found[0]

    return predict


def read_graph(labels, arrows):
    """From node 0 by yes or no to a node without arrows: the first line of its label."""

    def predict(row):
        at = "0"
        while (at, "yes") in arrows:
            at = arrows[at, "yes" if conjunction(labels[at])(row) else "no"]
        return labels[at].split("\n")[0]

    return predict


def read_dot(text):
    text = text.strip()
    assert text.startswith("digraph {")
    assert text.endswith("}")
    labels, arrows = {}, {}
    for line in text.splitlines()[2:-1]:
        if match := re.fullmatch(r'  (\d+) -> (\d+) \[label="(yes|no)"\];', line):
            arrows[match[1], match[3]] = match[2]
        else:
            match = re.fullmatch(r'  (\d+) \[label="((?:[^"\\]|\\.)*)", shape=(box|ellipse)\];', line)
            labels[match[1]] = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], match[2])
    return labels, arrows


def read_mermaid(text):
    first, *lines = text.splitlines()
    assert first == "flowchart TD"
    labels, arrows = {}, {}
    for line in lines:
        if match := re.fullmatch(r"  n(\d+) -->\|(yes|no)\| n(\d+)", line):
            arrows[match[1], match[2]] = match[3]
        else:
            match = re.fullmatch(r'  n(\d+)(?:\["([^"]*)"\]|\(\["([^"]*)"\]\))', line)
            label = (match[2] if match[2] is not None else match[3]).replace("<br>", "\n")
            assert not set("<>&`") & set(label)
            labels[match[1]] = html.unescape(re.sub(r"#(\d+);", r"&#\1;", label))
    return labels, arrows
