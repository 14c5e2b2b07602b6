"""Every `$ kernelrules ...` of the pages, of the README and of `--help` is run as it stands, on small tables."""

import re
import shlex
from dataclasses import replace
from itertools import pairwise

import pytest
from csv_table import table
from places import ROOT

from kernelrules import datasets
from kernelrules.report import cli

NUMBERS = {"price"}  # columns that a reader takes for numbers; the other targets are classes


def shown(path):
    """The command lines of a page, in order: of console blocks, and `kernelrules ...` in README's table."""
    text = path.read_text(encoding="utf-8")
    return re.findall(r"^ *\$ (kernelrules\b.*)$|`(kernelrules [a-z]+ [^`\[]+\.csv[^`]*)`", text, flags=re.M)


def pages():
    found = [*sorted((ROOT / "docs").rglob("*.rst")), ROOT / "README.md"]
    return [page for page in found if not {"_build", "generated"} & set(page.parts) and shown(page)]


def words_of(line):
    return shlex.split(line, comments=True)[1:]


def write_table(path, target):
    """A table of 40 rows with that target; without one, whatever its models may ask for."""
    text = table(n=40, kind="numbers" if target in NUMBERS else "classes")
    path.write_text(text.replace("target", target or "answer", 1), encoding="utf-8")


@pytest.fixture(scope="module")
def some_of_spambase():
    """The whole takes a while: a problem for reports, and data of which no column is constant for the self-check, which
    test_running.py has on all of them."""
    whole, data = cli.spambase(), datasets.spambase()
    return replace(whole, X=whole.X[::60], y=whole.y[::60]), data._replace(X=data.X[::10], y=data.y[::10])


@pytest.fixture
def run(some_of_spambase, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    problem, data = some_of_spambase
    monkeypatch.setattr(cli, "spambase", lambda: problem)
    monkeypatch.setattr(datasets, "spambase", lambda: data)
    return lambda lines: run_in(tmp_path, lines)


def run_in(folder, lines):
    """Each in turn, in that folder: exit code 0, and the file that it is to write is there."""
    for words in map(words_of, lines):
        given = dict(pairwise(words))
        for name in (word for word in words if word.endswith(".csv") and word != given.get("-o")):
            write_table(folder / name, given.get("--target"))
        assert cli.main(words) == 0, words
        written = given.get("-o", {"report": "report.html", "fit": "model.krz"}.get(words[0] if words else ""))
        assert written is None or (folder / written).stat().st_size > 0, words


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_commands_on_the_pages_run(run, page):
    run(["".join(found) for found in shown(page)])


def test_there_are_commands():
    assert {"README", "report", "start"} <= {page.stem for page in pages()}
    lines = ["".join(found) for page in pages() for found in shown(page)]
    assert {words_of(line)[0] for line in lines} >= {"report", "fit", "predict", "rules", "info"}


def test_examples_of_the_help_run(run, capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    lines = re.findall(r"^  (kernelrules \S+(?: \S+)*)", capsys.readouterr().out, flags=re.M)  # until two blanks
    assert len(lines) >= 6
    run(lines)
