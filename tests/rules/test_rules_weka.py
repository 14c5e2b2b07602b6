"""Rules of Weka's JRip: without pruning the very same, with pruning within its accuracy; and the Reuters rules.

JRip's thresholds are values of the data (humidity >= 85), here they are halfway to the next (humidity > 82.5).
"""

import csv
import gzip
import json
import re
import runpy
import textwrap

import numpy as np
import pytest
from places import ROOT

from kernelrules import rules

FILES = {
    "weather.nominal": "weka_weather_nominal.csv.gz",
    "weather.numeric": "weka_weather_numeric.csv.gz",
    "contact-lenses": "weka_contact_lenses.csv.gz",
    "vote": "weka_vote.csv.gz",
}
EXAMPLE = ROOT / "docs" / "examples" / "reuters_rules.py"


def read(shared, name):
    """Numbers, categories as codes; labels; names of the columns; their levels."""
    with gzip.open(shared / "data" / FILES[name], "rt", encoding="utf-8") as lines:
        header, *rows = csv.reader(lines)
    reported = json.loads((shared / "data" / "schema.json").read_text(encoding="utf-8"))[FILES[name]]["columns"]
    levels = [column.get("levels") for column in reported[:-1]]

    def number(cell, of_column):
        return np.nan if cell == "" else float(of_column.index(cell)) if of_column else float(cell)

    X = [[number(cell, of_column) for cell, of_column in zip(row, levels, strict=False)] for row in rows]
    return np.array(X), np.array([row[-1] for row in rows]), header[:-1], levels


def result_of(shared, name, method):
    return json.loads((shared / "golden" / "weka.json").read_text(encoding="utf-8"))["results"][f"{name}|{method}"]


def induce(X, y, levels, **options):
    return rules.induce(X, y, categorical=[j for j, of_column in enumerate(levels) if of_column], **options)


def weka_rules(model, names, levels):
    """JRip's text as (conditions, class, covered, wrong); a condition is (column, kind, number)."""
    found = []
    for line in re.findall(r"^(.*)=> [\w-]+=(\S+) \(([\d.]+)/([\d.]+)\)$", model, flags=re.M):
        conditions = []
        for name, kind, value in re.findall(r"\(([\w-]+) (=|<=|>=) ([^)]+)\)", line[0]):
            column = names.index(name)
            conditions.append((column, kind, levels[column].index(value) if levels[column] else float(value)))
        found.append((conditions, line[1], float(line[2]), float(line[3])))
    return found


@pytest.mark.parametrize("name", FILES)
def test_unpruned_rules_are_those_of_jrip(shared, name):
    X, y, names, levels = read(shared, name)
    expected = weka_rules(result_of(shared, name, "JRip_noprune")["model"], names, levels)
    found = induce(X, y, levels, prune=False)
    assert len(expected) == result_of(shared, name, "JRip_noprune")["n_rules"] == len(found) + 1
    for rule, (conditions, label, covered, wrong) in zip(found, expected, strict=False):
        assert (rule.prediction, rule.weight) == (label, covered)
        assert rule.weight * (1 - rule.confidence) == pytest.approx(wrong, abs=1e-9)
        assert [condition.feature for condition in rule.conditions] == [column for column, _, _ in conditions]
        for condition, (column, kind, value) in zip(rule.conditions, conditions, strict=True):
            x = np.unique(X[~np.isnan(X[:, column]), column])
            if kind == "=":
                assert condition.categories == (value,)
            elif kind == ">=":
                assert x[x > condition.low].min() == value
            else:
                assert x[x <= condition.high].max() == value
    assert found.default == expected[-1][1]
    accuracy = (rules.predict(found, X) == y).mean()
    assert accuracy == pytest.approx(result_of(shared, name, "JRip_noprune")["train"]["accuracy"])


@pytest.mark.parametrize("name", ["contact-lenses", "vote"])
def test_pruned_rules_are_within_the_accuracy_of_jrip(shared, name):
    """On the rows learned from and by ten folds, up to two standard errors of JRip's; the mean of some seeds."""
    X, y, _, levels = read(shared, name)
    golden = result_of(shared, name, "JRip_seed1")
    seeds = range(5)

    def accuracy(learn, ask, seed):
        found = induce(X[learn], y[learn], levels, rng=seed)
        return (rules.predict(found, X[ask]) == y[ask]).mean()

    everything = np.arange(len(y))
    fold = np.empty(len(y), dtype=int)
    order = np.random.default_rng(0).permutation(len(y))
    fold[order[np.argsort(y[order], kind="stable")]] = everything % 10
    on_training = np.mean([accuracy(everything, everything, seed) for seed in seeds])
    on_folds = np.mean([accuracy(fold != k, fold == k, seed) for seed in seeds for k in range(10)])
    for found, expected in ((on_training, golden["train"]["accuracy"]), (on_folds, golden["cv"]["accuracy"])):
        assert found > expected - 2 * np.sqrt(expected * (1 - expected) / len(y))


def test_reuters_rules(shared, capsys):
    """The example runs, and holds what it says; docs/guide/induce.rst quotes it, no more and no less."""
    file = shared / "data" / "reuters21578_modapte_bow.npz"
    if not file.exists():
        pytest.skip(f"no {file.name} in shared/")
    runpy.run_path(str(EXAMPLE))["main"](file)
    shown = capsys.readouterr().out
    quoted = (EXAMPLE.parents[1] / "guide" / "induce.rst").read_text(encoding="utf-8")
    block = re.search(r"reuters_rules.py`` prints\n\n.. code-block:: text\n\n((?:   .*\n|\n)+)", quoted)[1]
    assert textwrap.dedent(block).strip() == shown.strip()
