"""The command line: what it prints and writes, its exit codes, and errors as sentences without a traceback."""

import csv
import errno
import os
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from csv_table import table

from kernelrules import kernels, persist
from kernelrules.report import cli
from kernelrules.report.models import LEARNERS, Settings
from kernelrules.report.problem import pose
from kernelrules.report.reading import read_sheet
from kernelrules.results import TableModel
from kernelrules.results.table_model import require_table_model


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "small.csv"
    path.write_text(table(n=60), encoding="utf-8")
    return path


def run(*words):
    return cli.main([str(word) for word in words])


def failed(capsys, *words, code=1):
    """What is said where a command ends with exit code 1, or another: one line."""
    assert run(*words) == code
    said = capsys.readouterr().err
    assert said.startswith("kernelrules: ")
    assert said.count("\n") == 1
    return said


def test_report(small, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert run("report", small, "--target", "target", "-o", page, "--folds", 2, "--seed", 3, "--drop", "noise") == 0
    out, err = capsys.readouterr()
    assert "best model: " in out
    assert "rule list, fold 1 of 2" in err
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "dropped on request" in text
    assert f"--target target -o {page} --folds 2 --seed 3 --drop noise" in text


def test_quiet_says_nothing(small, tmp_path, capsys):
    assert run("report", small, "--target", "target", "-o", tmp_path / "r.html", "--folds", 2, "--quiet") == 0
    assert capsys.readouterr() == ("", "")


def test_report_without_data_is_spambase(tmp_path, capsys, monkeypatch):
    """All of it takes a while: here every thirtieth row."""
    whole = cli.spambase()
    few = replace(whole, X=whole.X[::30], y=whole.y[::30])
    assert whole.X.shape == (4601, 57)
    monkeypatch.setattr(cli, "spambase", lambda: few)
    assert run("report", "-o", tmp_path / "spam.html", "--folds", 2) == 0
    assert "Spambase" in (tmp_path / "spam.html").read_text(encoding="utf-8")
    capsys.readouterr()


def test_rules_are_printed(small, capsys):
    assert run("rules", small, "--target", "target") == 0
    out = capsys.readouterr().out
    assert "→ " in out
    assert "OTHERWISE" in out
    assert "& co > " in out


def test_info_and_no_command(capsys, monkeypatch):
    """The self-check itself is test_running's: here it is what the exit code follows."""
    for good in (True, False):
        monkeypatch.setattr(cli.installation, "self_check", lambda good=good: (["self-check  done"], good))
        for words in ([], ["info"]):
            assert run(*words) == (0 if good else 1)
            said = capsys.readouterr().out
            for word in ("kernelrules", "threads", "SIMD", "BLAS", "self-check  done"):
                assert word in said
            assert ("kernelrules --help" in said) == (words == [])


def test_warnings_are_lines_too(capsys, monkeypatch):
    def warn(_):
        warnings.warn("not quite done", UserWarning, stacklevel=1)
        return 0

    monkeypatch.setattr(cli, "_overview", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert run() == 0
    assert capsys.readouterr().err == "kernelrules: not quite done\n"


@pytest.mark.parametrize("words", [["--help"], *([name, "--help"] for name in ("report", "fit", "predict", "rules"))])
def test_help_has_examples(words, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 0
    assert "examples:\n  kernelrules" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense"],
        ["report", "--no-such"],
        ["report", "x.csv", "--target", "y", "--folds", "1"],
        ["report", "x.csv", "--target", "y", "--seed", "-1"],
        ["report", "x.csv", "--target", "y", "--task", "guess"],
        ["fit", "x.csv"],
        ["fit", "x.csv", "--target", "y", "--model", "forest"],
        ["predict", "m.krz"],
        ["report", "-o", ""],
        ["fit", "", "--target", "y"],
        ["predict", "m.krz", "x.csv", "-o", ""],
    ],
    ids=range(11),
)
def test_wrong_usage_is_code_2(words, capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == 2
    assert "usage: kernelrules" in capsys.readouterr().err


def test_wrong_usage_that_shows_later_is_code_2(small, tmp_path, capsys):
    for words, said in [
        ((small,), "--target is required: the column to predict; the columns are <script>"),
        ((tmp_path / "no.csv",), "--target is required: the column to predict\n"),
        (("--target", "x"), "--target applies to a CSV file"),
        (("--drop", "x"), "--drop applies to a CSV file"),
        (("--no-header",), "--no-header applies to a CSV file"),
        (("--task", "regression"), "the target of Spambase is a class"),
    ]:
        assert said in failed(capsys, "report", *words, code=2)


def test_data_that_cannot_be_used(small, tmp_path, capsys):
    """Every message is one line that names what is wrong; tests of reading and posing have the rest."""
    empty, header = tmp_path / "empty.csv", tmp_path / "header.csv"
    empty.write_bytes(b"")
    header.write_text("a,b\n")
    binary = tmp_path / "binary.csv"
    binary.write_bytes(bytes(range(256)))
    for words, said in [
        ((tmp_path / "no.csv", "--target", "y"), "there is no file"),
        ((small, "--target", "Targt"), "did you mean “target”"),
        ((empty, "--target", "y"), "is empty"),
        ((header, "--target", "b"), "no rows"),
        ((binary, "--target", "b"), "not a text file"),
        ((small, "--target", "target", "--task", "regression"), "is not numbers"),
        ((small, "--target", "unit"), "one class only"),
        ((small, "--target", "empty"), "missing in every row"),
        ((small, "--target", "name"), "these are no classes"),
        ((small, "--target", "target", "--folds", "40"), "at least 80 are needed"),
        ((small, "--target", "target", "-o", tmp_path / "no" / "r.html"), "there is no folder"),
        ((small, "--target", "target", "-o", tmp_path), "is a folder"),
    ]:
        assert said in failed(capsys, "report", *words)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_is_said_with_the_name(small, tmp_path, capsys):
    model = tmp_path / "m.krz"
    assert run("fit", small, "--target", "target", "-o", model, "--quiet") == 0
    for words in (
        ("report", small, "--target", "target", "--folds", "2", "--quiet"),
        ("fit", small, "--target", "target", "--quiet"),
        ("predict", model, small),
    ):
        assert failed(capsys, *words, "-o", "/dev/full") == f"kernelrules: /dev/full: {os.strerror(errno.ENOSPC)}\n"
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "kernelrules", "predict", model, small], stdout=full, stderr=-1, check=False
        )
    assert done.returncode == 1
    assert done.stderr.decode() == f"kernelrules: standard output: {os.strerror(errno.ENOSPC)}\n"


def test_what_is_read_is_not_written_over(small, tmp_path, capsys):
    """By its own name, by another that leads to it, for every command that writes."""
    data, model, link = tmp_path / "data.csv", tmp_path / "m.krz", tmp_path / "link.csv"
    data.write_bytes(small.read_bytes())
    link.hardlink_to(data)
    assert run("fit", data, "--target", "target", "-o", model, "--quiet") == 0
    before = data.read_bytes(), model.read_bytes()
    for words in (
        ("report", data, "--target", "target", "-o", data),
        ("report", data, "--target", "target", "-o", link),
        ("fit", data, "--target", "target", "-o", tmp_path / "." / "data.csv"),
        ("fit", link, "--target", "target", "-o", data),
        ("predict", model, data, "-o", data),
        ("predict", model, data, "-o", model),
    ):
        assert "is an input file: name another output file" in failed(capsys, *words)
    assert (data.read_bytes(), model.read_bytes()) == before


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="file names are Unicode there")
def test_file_names_that_are_not_utf_8(small, tmp_path, capsys):
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/t\xe4ble"))
    data, page, model = odd.with_suffix(".csv"), odd.with_suffix(".html"), odd.with_suffix(".krz")
    data.write_bytes(small.read_bytes())
    assert run("report", data, "--target", "target", "-o", page, "--folds", "2") == 0
    assert "t\\udce4ble.html: best model" in capsys.readouterr().out
    assert "t\\udce4ble.csv" in page.read_text(encoding="utf-8")
    assert run("fit", data, "--target", "target", "-o", model) == 0
    assert run("predict", model, data, "-o", odd.with_suffix(".out")) == 0
    capsys.readouterr()
    assert "t\\udce4ble.no" in failed(capsys, "fit", odd.with_suffix(".no"), "--target", "target")


def test_pipes_and_terminals_without_letters(small):
    """Data come by a pipe, and go to one that knows ASCII only."""
    done = subprocess.run(
        [sys.executable, "-m", "kernelrules", "rules", "-", "--target", "target"],
        input=small.read_bytes(), capture_output=True, check=False, env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert done.returncode == 0
    assert b"OTHERWISE \\u2192 no" in done.stdout
    assert b"left out \\u201cname\\u201d" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="pipes end otherwise there")
def test_nobody_reads():
    """A pipe that is closed already: no traceback, also none at the end of the process."""
    end, start = os.pipe()
    os.close(end)
    command = [sys.executable, "-c", "import sys; from kernelrules.report import cli;"
               "cli._overview = lambda _: print(1) or 0; sys.exit(cli.main([]))"]  # fmt: skip
    done = subprocess.run(command, stdout=start, stderr=subprocess.PIPE, check=False)
    os.close(start)
    assert done.returncode == 1
    assert done.stderr == b""


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT is not sent to one process there")
def test_ctrl_c_is_130(tmp_path):
    """In the middle of the report on Spambase, within a second, without a traceback; whatever our parents ignore."""
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    hear = "pthread_sigmask(SIG_UNBLOCK, [SIGINT]); signal(SIGINT, default_int_handler)"
    words = ["report", "-o", str(tmp_path / "r.html")]
    code = (
        f"import sys; from signal import *; {hear}; from kernelrules.report import cli; sys.exit(cli.main({words!r}))"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as child:
        assert "fold 1" in child.stderr.readline()
        time.sleep(0.3)
        sent = time.perf_counter()
        child.send_signal(signal.SIGINT)
        said = child.communicate(timeout=60)[1]
        taken = time.perf_counter() - sent
    assert child.returncode == 130
    assert said.endswith("kernelrules: interrupted\n")
    assert "Traceback" not in said
    assert taken < 5  # a second, and what a busy machine takes to end a process
    assert not (tmp_path / "r.html").exists()


# ---- fit and predict ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", list(LEARNERS))
def test_fit_then_predict(small, tmp_path, capsys, learner):
    model, answers = tmp_path / "model.krz", tmp_path / "answers.csv"
    assert run("fit", small, "--target", "target", "--model", learner, "-o", model) == 0
    assert "left out “name”" in capsys.readouterr().err
    assert run("predict", model, small, "-o", answers) == 0
    with open(answers, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    with open(small, encoding="utf-8", newline="") as file:
        truth = [row["target"] for row in csv.DictReader(file)]
    assert rows[0] == ["target"]
    assert len(rows) == 61
    assert np.mean([row[0] == label for row, label in zip(rows[1:], truth, strict=True)]) > 0.75
    assert run("predict", model, small) == 0
    assert capsys.readouterr().out == answers.read_text(encoding="utf-8")
    assert run("info", model) == 0
    said = capsys.readouterr().out
    assert LEARNERS[learner].title in said
    assert "target: one of no, yes" in said


@pytest.mark.parametrize("command", ["fit", "rules"])
def test_what_was_done_to_the_table_is_said(command, tmp_path, capsys):
    """Rows, classes and columns that are left out, and cells that count as missing: one line each, or none at all."""
    table, rest = tmp_path / "t.csv", ["-o", tmp_path / "m.krz"] if command == "fit" else []
    rows = [f'{i},"always\nthis",{"inf" if i == 3 else i % 7 + i / 100},{"yes" if i % 2 else "no"}' for i in range(40)]
    rows += ["40,always,1.0,", "41,always,2.0,rare"]
    table.write_text("\n".join(["id,unit,x,y", *rows]).replace("always\nthis", "always") + "\n")
    assert run(command, table, "--target", "y", *rest) == 0
    assert capsys.readouterr().err.splitlines() == [
        "kernelrules: taken as classification: the target is text",
        "kernelrules: 1 row without a target left out",
        "kernelrules: class “rare” has only 1 row, which is left out",
        "kernelrules: left out “id”: row numbers",
        "kernelrules: left out “unit”: constant: always “always”",
        "kernelrules: “x”: 1 cell not a number, taken as missing: “inf”",
    ]
    table.write_text("\n".join(["id,unit,x,y", *rows[:40]]) + "\n")
    assert run(command, table, "--target", "y", *rest) == 0
    assert "left out “unit”: constant: always “always this”\n" in capsys.readouterr().err
    assert run(command, table, "--target", "y", "--quiet", *rest) == 0
    assert capsys.readouterr().err == ""


def test_predict_says_what_it_does_not_know(small, tmp_path, capsys):
    model, other = tmp_path / "m.krz", tmp_path / "other.csv"
    assert run("fit", small, "--target", "target", "-o", model, "--quiet") == 0
    text = small.read_text(encoding="utf-8").splitlines()
    row = next(csv.reader([text[1]]))
    row[1] = "violet"
    lines = [text[0], ",".join(row)]
    other.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert run("predict", model, other) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[1] in ("yes", "no")
    assert "“colour”: 1 cell holds a category that" in err
    other.write_text("colour,noise\nred,1\n", encoding="utf-8")
    assert "lacks the column" in failed(capsys, "predict", model, other)
    assert "there is no file" in failed(capsys, "predict", tmp_path / "none.krz", other)
    assert "is a folder" in failed(capsys, "predict", tmp_path, other)
    persist.save(kernels.RBF(1.0), model)
    assert "holds a RBF" in failed(capsys, "predict", model, other)


def test_predict_reads_commas_as_fit_did(tmp_path, capsys):
    """Both files could be read otherwise by themselves; what was done is said, but by --quiet."""
    train, new, model = tmp_path / "train.csv", tmp_path / "new.csv", tmp_path / "m.krz"
    amounts = np.random.default_rng(0).integers(1000, 9999, 60).tolist()
    rows = [f"{amount:,}{'.50' * (i == 0)};{'hi' if amount > 5000 else 'lo'}" for i, amount in enumerate(amounts)]
    train.write_text("\n".join(["amount;y", *rows]) + "\n")
    new.write_text("amount;z\n9,000;1\n2,000;2\n8,500;3\n")
    said = "kernelrules: cells separated by semicolon\n"
    thousands = "kernelrules: commas of “amount” taken as marks of thousands"
    assert run("fit", train, "--target", "y", "-o", model) == 0
    err = capsys.readouterr().err
    assert err.startswith(said)
    assert thousands in err
    assert run("fit", train, "--target", "y", "-o", model, "--quiet") == 0
    assert run("rules", train, "--target", "y", "--quiet") == 0
    assert capsys.readouterr().err == ""
    assert run("rules", train, "--target", "y") == 0
    assert thousands in capsys.readouterr().err
    assert persist.load(model).commas == ("thousands",)
    assert run("predict", model, new) == 0
    assert capsys.readouterr() == ("y\nhi\nlo\nhi\n", said)


def test_models_without_commas_can_still_be_read(small, tmp_path, capsys):
    """Each table then decides for itself, as it was when they were saved."""
    model, older, new = tmp_path / "m.krz", tmp_path / "older.krz", tmp_path / "new.csv"
    new.write_text("a;y\n" + "".join(f"{i},000;{'hi' if i > 5 else 'lo'}\n" for i in range(1, 11)) * 3)
    assert run("fit", new, "--target", "y", "-o", model, "--quiet") == 0
    found = persist.load(model)
    assert found.commas == ("decimal",)
    persist.save(replace(found, commas=()), older)
    assert run("predict", older, new) == 0
    out, err = capsys.readouterr()
    assert out.split()[1:] == (["lo"] * 5 + ["hi"] * 5) * 3
    assert "commas of “a” taken as decimal commas: “1,000”, for example" in err


def test_a_dash_is_standard_output(small, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("report", small, "--target", "target", "-o", "-", "--folds", 2) == 0
    page, err = capsys.readouterr()
    assert page.startswith("<!DOCTYPE html>")
    assert page.endswith("</html>\n")
    assert page.isascii()
    assert "&#177;" in page  # ±
    assert "kernelrules: best model: " in err
    assert "a model cannot be printed" in failed(capsys, "fit", small, "--target", "target", "-o", "-", code=2)
    assert run("fit", small, "--target", "target", "-o", "m.krz", "--quiet") == 0
    assert run("predict", "m.krz", small, "-o", "-") == 0
    assert capsys.readouterr().out.count("\n") == 61
    assert [path.name for path in tmp_path.iterdir()] == ["m.krz"]


def test_table_model_says_what_it_is():
    model = TableModel("tree", "y", None, ("a",), ("number",), (None,), np.zeros(1), np.ones(1), (None,),
                       np.zeros(1, dtype=bool), None, 3)  # fmt: skip
    assert repr(model) == "TableModel(tree, y (numbers) from 1 column)"
    assert "<table" in model._repr_html_()


@pytest.fixture(scope="module")
def fitted(small):
    problem = pose(read_sheet(small), "target")
    return {name: LEARNERS[name].fit(problem, np.arange(60), Settings(0)).model for name in LEARNERS}


@pytest.mark.parametrize("learner", list(LEARNERS))
def test_what_was_fitted_belongs_together(fitted, learner):
    assert require_table_model(fitted[learner]) is None  # else it raises, as in the next test


@pytest.mark.parametrize(
    ("learner", "changes"),
    [
        ("tree", {"learner": "svm"}),
        ("tree", {"learner": "forest"}),
        ("tree", {"columns": ("a",)}),
        ("tree", {"kinds": ("number", "number", "number")}),
        ("tree", {"levels": (None, ("only",), None)}),
        ("rules", {"levels": (None, ("only",), None)}),
        ("rules", {"levels": (None, (1, 2, 3), None)}),
        ("svm", {"dummies": (None, np.array([0, 1]), None)}),
        ("svm", {"dummies": (None, np.array([0, 1, 3]), None)}),
        ("svm", {"dummies": (None, np.array([0, 1, 0.5]), None)}),
        ("svm", {"missing_seen": np.zeros(3, dtype=bool)}),
        ("ridge", {"scale": np.zeros(3)}),
        ("ridge", {"centre": np.full(3, np.nan)}),
        ("ridge", {"classes": np.array(["a", "b", "c"])}),
        ("tree", {"commas": ("decimal",)}),
        ("tree", {"commas": ("", "", "point")}),
    ],
    ids=range(16),
)
def test_what_does_not_belong_together_is_refused(fitted, learner, changes):
    with pytest.raises(ValueError, match=r"\w"):
        require_table_model(replace(fitted[learner], **changes))


def test_saved_ridge_has_none_of_the_rows(fitted):
    model = fitted["ridge"].model
    assert len(model.X) == len(model.y) == 1
    assert not model.X.any()
