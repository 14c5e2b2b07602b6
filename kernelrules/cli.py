"""The command `kernelrules`: report, fit, predict, rules, info.

Exit codes: 0 it was done; 1 the data or a file are at fault, with a sentence on stderr; 2 the command line is; 130
Ctrl-C. A traceback means a defect of the package.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from kernelrules import __version__, export, installation, persist
from kernelrules.report.coding import coded_sheet
from kernelrules.report.models import LEARNERS, Settings, named, predict
from kernelrules.report.page import render
from kernelrules.report.problem import Problem, pose, spambase
from kernelrules.report.reading import DataError, Sheet, read_sheet
from kernelrules.report.study import run_study
from kernelrules.report.waiting import shown_progress
from kernelrules.results import TableModel
from kernelrules.results.show import short

__all__ = ["main"]

_EXAMPLES = """examples:
  kernelrules report                                 the bundled Spambase, into report.html
  kernelrules report houses.csv --target price       a table of your own
  kernelrules rules titanic.csv --target Survived    rules to read
  kernelrules fit train.csv --target y --model svm -o model.krz
  kernelrules predict model.krz new.csv -o answers.csv
  kernelrules info                                   what is installed, and whether it computes
"""
_USAGE = 2  # as argparse has it
_INTERRUPTED = 130  # what shells say of a process that Ctrl-C ended
_PRINTED = "-"  # in place of a file to write: standard output


def main(arguments: list[str] | None = None) -> int:
    """Run a command; without one, say what there is and check the installation.

    Parameters
    ----------
    arguments : list of str, optional
        The command line, by default the process's own.

    Returns
    -------
    int
        The exit code.

    Examples
    --------
    >>> main(["report", "nowhere.csv", "--target", "y"])  # and a sentence on stderr
    1
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    given.words = sys.argv[1:] if arguments is None else arguments
    run: Callable[[argparse.Namespace], int] = getattr(given, "run", _overview)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # names may have letters that a terminal lacks
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: print(f"kernelrules: {message}", file=sys.stderr)
            code = run(given)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _failed("interrupted", _INTERRUPTED)
    except BrokenPipeError:  # who read our output has gone: nothing more to say
        _close_output()
        return 1
    except OSError as error:
        if error.filename is None:  # all files say their names
            _close_output()
        return _failed(f"{error.filename or 'what is printed'}: {error.strerror or error}")
    except _UsageError as error:
        return _failed(str(error), _USAGE)
    except (ValueError, MemoryError) as error:  # what `check` refuses is a sentence too
        return _failed(str(error) or "there is not enough memory")


class _UsageError(Exception):
    """A fault of the command line that only shows once it has been read."""


def _close_output() -> None:
    """What waits to be printed is dropped: Python would try once more at the end of the process."""
    with contextlib.suppress(OSError, ValueError):  # it may be no file at all
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(sentence: str, code: int = 1) -> int:
    print(f"kernelrules: {sentence}", file=sys.stderr)
    return code


# ---- arguments ----------------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kernelrules",
        description="Kernel machines and rule learners on tables: a report, models, rules.\n"
        "Without a command: what is installed, and whether it computes.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"kernelrules {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    report = _command(commands, "report", _report, "compare four learners on a table, and write one HTML page")
    _data_arguments(report, optional=True)
    report.add_argument(
        "-o", "--output", type=_path, metavar="FILE", default="report.html",
        help="default: report.html; - is standard output",
    )  # fmt: skip
    report.add_argument("--folds", type=_at_least(2), default=5, metavar="K", help="folds of cross-validation (5)")

    fit = _command(commands, "fit", _fit, "fit one model to a table, and save it")
    _data_arguments(fit)
    fit.add_argument("--model", choices=list(LEARNERS), default="tree", help="default: tree")
    fit.add_argument("-o", "--output", type=_path, metavar="FILE", default="model.krz", help="default: model.krz")

    predicting = _command(commands, "predict", _predict, "predict the rows of a table with a saved model")
    predicting.add_argument("model", type=_path, metavar="MODEL", help="what `fit` saved")
    _file_arguments(predicting)
    predicting.add_argument("-o", "--output", type=_path, metavar="FILE", default=_PRINTED,
                            help="a CSV file; default: -, standard output")  # fmt: skip

    rules = _command(commands, "rules", _rules, "learn rules from a table, and print them")
    _data_arguments(rules)

    info = _command(commands, "info", _info, "what is installed and whether it computes, or what a saved model is")
    info.add_argument("model", type=_path, metavar="MODEL", nargs="?", help="what `fit` saved")
    return parser


def _command(commands: Any, name: str, run: Callable[..., int], words: str) -> argparse.ArgumentParser:
    examples = [line for line in _EXAMPLES.splitlines() if line.startswith(f"  kernelrules {name}")]
    parser = commands.add_parser(
        name,
        help=words,
        description=words[0].upper() + words[1:] + ".",
        epilog="\n".join(["examples:", *examples]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def _file_arguments(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    words = "a CSV file, also packed by gzip; - is what is piped in"
    if optional:
        parser.add_argument(
            "data", type=_path, metavar="DATA", nargs="?", help=f"{words}; without it the bundled Spambase"
        )
    else:
        parser.add_argument("data", type=_path, metavar="DATA", help=words)
    parser.add_argument("--no-header", action="store_true", help="the first line is data; columns are column 1, 2, ...")
    parser.add_argument("--threads", type=_at_least(1), metavar="N", help="default: all cores")


def _data_arguments(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    _file_arguments(parser, optional=optional)
    parser.add_argument("--target", metavar="COLUMN", required=not optional, help="the column to predict")
    parser.add_argument("--task", choices=["auto", "classification", "regression"], default="auto",
                        help="default: auto, by what the target looks like")  # fmt: skip
    parser.add_argument("--drop", metavar="COLUMN", action="append", default=[], help="leave a column out (repeatable)")
    parser.add_argument("--categorical", metavar="COLUMN", action="append", default=[],
                        help="a column of numbers that are categories (repeatable)")  # fmt: skip
    parser.add_argument("--seed", type=_at_least(0), default=0, metavar="N", help="of everything random (0)")
    parser.add_argument("--quiet", action="store_true", help="no progress, no closing remarks")


def _at_least(least: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        number = int(text)
        if number < least:
            raise ValueError
        return number

    whole.__name__ = f"whole number of at least {least}"  # what argparse says where it fails
    return whole


def _path(text: str) -> str:
    if not text:
        raise ValueError
    return text


_path.__name__ = "file name"


# ---- commands -----------------------------------------------------------------------------------------------------


def _overview(_: argparse.Namespace) -> int:
    """The self-check, and what there is. Nothing is written before it is asked for."""
    code = _print_info()
    print("\n`kernelrules report` compares four learners on the bundled Spambase, or on a table of yours;")
    print("`kernelrules --help` lists the other commands: fit, predict, rules, info.")
    return code


def _info(given: argparse.Namespace) -> int:
    if given.model is None:
        return _print_info()
    model = _loaded(given.model)
    kinds = [f"{name} ({kind})" for name, kind in zip(model.columns, model.kinds, strict=True)]
    what = "numbers" if model.classes is None else f"one of {', '.join(map(str, model.classes))}"
    print(f"model       {LEARNERS[model.learner].title}: {_parameters(model)}")
    print(f"predicts    {model.target}: {what}")
    print(f"fitted to   {model.n_train} rows")
    print(f"reads       {', '.join(kinds)}")
    return 0


def _parameters(model: TableModel) -> str:
    """What was chosen, and how near to the best the fit is."""
    found = model.model
    if model.learner == "svm":
        certificate = found.certificate
        return (
            f"C = {found.C:g}, gamma = {found.kernel.gamma:.3g}, {len(found.support)} support vectors, "
            f"gap {certificate.gap:.2g} of {certificate.primal:.4g}"
        )
    return f"lambda = {found.lam:.3g}, {found.form} form" if model.learner == "ridge" else repr(found)


def _print_info() -> int:
    for line in installation.summary():
        print(line)
    lines, good = installation.self_check()
    print("\n".join(lines))
    return 0 if good else 1


def _sheet(given: argparse.Namespace) -> Sheet:
    return read_sheet(given.data, header=not given.no_header)


def _posed(given: argparse.Namespace, folds: int = 3) -> Problem:
    return pose(
        _sheet(given), given.target, task=given.task, folds=folds, drop=given.drop, categorical=given.categorical
    )


def _report(given: argparse.Namespace) -> int:
    if given.data is None:
        _require_nothing_else(given)
        problem = spambase()
    elif given.target is None:
        raise _UsageError(f"which column is to be predicted? Say so by --target{_columns_there(given)}")
    else:
        problem = _posed(given, given.folds)
    _require_output(given.output, given.data)
    progress = shown_progress(quiet=given.quiet)
    study = run_study(
        problem, folds=given.folds, seed=given.seed, n_threads=given.threads, progress=progress
    )  # fmt: skip
    page = render(study, command=shlex.join(["kernelrules", *given.words]))
    with _opened(given.output) as file:
        file.write(_as_ascii(page) if given.output == _PRINTED else page)
    if not given.quiet:
        best = study.outcomes[study.best]
        what = "accuracy" if problem.classes is not None else "RMSE"
        said = f"best is the {best.title}, {what} {best.score.value:.4g} ± {best.score.se:.2g}"
        if given.output == _PRINTED:
            _remark(said)
        else:
            print(f"{given.output}: {said}")
    return 0


def _as_ascii(page: str) -> str:
    """The same page for a stream of whatever encoding: what is no letter of ASCII is written as its number."""
    return page.encode("utf-8", "backslashreplace").decode().encode("ascii", "xmlcharrefreplace").decode()


def _columns_there(given: argparse.Namespace) -> str:
    try:
        return f"; there are {', '.join(_sheet(given).names)}"
    except DataError:
        return ""


def _require_nothing_else(given: argparse.Namespace) -> None:
    """Spambase is as it is: what was said about other data is a mistake."""
    for name in ("target", "drop", "categorical", "no_header"):
        if getattr(given, name):
            raise _UsageError(f"--{name.replace('_', '-')} is about a table of your own: give a CSV file before it")
    if given.task == "regression":
        raise _UsageError("Spambase has classes, not numbers")


def _require_output(path: str, *read: str | None) -> None:
    """A file can be written there, and it is none of those that are read: before the work, not after it."""
    if path == _PRINTED:
        return
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder} to write {Path(path).name} into")
    if Path(path).is_dir():
        raise DataError(f"{path} is a folder: name a file to write")
    if not os.access(Path(path) if Path(path).exists() else folder, os.W_OK):
        raise DataError(f"{path} cannot be written: permission denied")
    for other in read:
        if other and Path(path).exists() and Path(other).exists() and os.path.samefile(path, other):
            raise DataError(f"{path} is what is read: name another file to write")


@contextlib.contextmanager
def _opened(path: str) -> Iterator[TextIO]:
    """A file to write text into, or standard output. Names of files may have bytes that are no letters."""
    if path == _PRINTED:
        yield sys.stdout
        return
    with _written(path), open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        yield file


@contextlib.contextmanager
def _written(path: str) -> Iterator[None]:
    """Errors of writing, as of a full disk, do not say by themselves which file it was."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or path
        raise


def _fit(given: argparse.Namespace) -> int:
    if given.output == _PRINTED:
        raise _UsageError("a model is no text to print: name a file by -o")
    _require_output(given.output, given.data)
    problem = _posed(given)
    model = _fitted(problem, given, given.model)
    with _written(given.output):
        persist.save(model, given.output)
    if not given.quiet:
        print(f"{given.output}: {LEARNERS[given.model].title} of {given.target}, {model.n_train} rows")
        _remark(*_done_to(problem))
    return 0


def _fitted(problem: Problem, given: argparse.Namespace, name: str) -> TableModel:
    """A learner's model of all rows; a terminal shows that it is at work."""
    learner = LEARNERS[name]
    progress = shown_progress(quiet=given.quiet or not sys.stderr.isatty())
    progress.begin(1)
    progress.step(learner.title)
    settings = Settings(given.seed, given.threads, progress.callback)
    model = learner.fit(problem, np.arange(len(problem.y)), settings).model
    progress.end()
    return model


def _loaded(path: str) -> TableModel:
    if Path(path).is_dir():
        raise DataError(f"{path} is a folder, not a saved model")
    if not Path(path).exists():
        raise DataError(f"there is no file {path}")
    model = persist.load(path)
    if not isinstance(model, TableModel):
        raise DataError(f"{path} holds a {type(model).__name__}, which the command line cannot feed: load it in Python")
    return model


def _predict(given: argparse.Namespace) -> int:
    _require_output(given.output, given.model, given.data)
    model = _loaded(given.model)
    sheet = _sheet(given)
    X, remarks = coded_sheet(sheet, model)
    _remark(*sheet.notes, *remarks)
    told = predict(model, X, given.threads)
    with _opened(given.output) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([model.target])
        writer.writerows([value] for value in told.tolist())
    return 0


def _rules(given: argparse.Namespace) -> int:
    problem = _posed(given)
    print(export.to_text(named(_fitted(problem, given, "rules"))))
    if not given.quiet:
        _remark(*_done_to(problem))
    return 0


def _done_to(problem: Problem) -> Iterator[str]:
    """What was done to the file, its rows and its columns, which the page of a report has in its tables."""
    yield from (*problem.reading, *problem.notes)
    for column in problem.columns:
        if column.note:
            yield f"{'' if column.used else 'left out '}“{short(column.name)}”: {short(column.note, 200)}"


def _remark(*notes: str) -> None:
    for note in notes:
        print(f"kernelrules: {note}", file=sys.stderr)
