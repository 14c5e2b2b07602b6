"""The command `kernelrules`: report, fit, predict, rules, info.

Exit codes: 0 success; 1 an error in the data or a file, with a message on stderr; 2 an error in the command line; 130
Ctrl-C. A traceback is a bug.
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

from kernelrules import __version__, export, persist
from kernelrules.report import installation
from kernelrules.report.encoding import encode_sheet
from kernelrules.report.models import LEARNERS, Settings, named, predict
from kernelrules.report.page import render
from kernelrules.report.problem import Problem, pose, spambase
from kernelrules.report.progress_display import shown_progress
from kernelrules.report.reading import DataError, Sheet, read_sheet
from kernelrules.report.study import run_study
from kernelrules.results import TableModel
from kernelrules.results.show import short

__all__ = ["main"]

_EXAMPLES = """examples:
  kernelrules report                                 write report.html for the bundled Spambase data
  kernelrules report houses.csv --target price       write report.html for a CSV file
  kernelrules rules titanic.csv --target Survived    print rules
  kernelrules fit train.csv --target y --model svm -o model.krz
  kernelrules predict model.krz new.csv -o answers.csv
  kernelrules info                                   print versions and run a self-check
"""
_USAGE = 2  # the exit code of argparse
_INTERRUPTED = 130  # the exit code of shells for a process that Ctrl-C ended
_STDOUT = "-"  # in place of an output file: standard output


def main(arguments: list[str] | None = None) -> int:
    """Run a command; without one, print an overview and check the installation.

    Parameters
    ----------
    arguments : list of str, optional
        The command line. Default: that of the process.

    Returns
    -------
    int
        The exit code.

    Examples
    --------
    >>> main(["report", "nowhere.csv", "--target", "y"])  # and a message on stderr
    1
    """
    parser = _parser()
    given = parser.parse_args(arguments)
    given.words = sys.argv[1:] if arguments is None else arguments
    run: Callable[[argparse.Namespace], int] = getattr(given, "run", _overview)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # names may have characters that a terminal cannot show
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: print(f"kernelrules: {message}", file=sys.stderr)
            code = run(given)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _failed("interrupted", _INTERRUPTED)
    except BrokenPipeError:  # the reader of the output has ended
        _close_output()
        return 1
    except OSError as error:
        if error.filename is None:  # standard output
            _close_output()
        return _failed(f"{error.filename or 'standard output'}: {error.strerror or error}")
    except _UsageError as error:
        return _failed(str(error), _USAGE)
    except (ValueError, MemoryError) as error:  # messages of `check` are sentences too
        return _failed(str(error) or "not enough memory")


class _UsageError(Exception):
    """An error of the command line that argparse does not detect."""


def _close_output() -> None:
    """Discard buffered output, which Python would try to write again at exit."""
    with contextlib.suppress(OSError, ValueError):  # it may not be a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(sentence: str, code: int = 1) -> int:
    print(f"kernelrules: {sentence}", file=sys.stderr)
    return code


# ---- arguments ----------------------------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kernelrules",
        description="Fit and compare kernel machines and rule learners on CSV files.\n"
        "Without a command: print versions and run a self-check.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"kernelrules {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    report = _command(commands, "report", _report, "compare four models on a CSV file and write an HTML page")
    _data_arguments(report, optional=True)
    report.add_argument(
        "-o", "--output", type=_path, metavar="FILE", default="report.html",
        help="HTML file to write (default: report.html); - for standard output",
    )  # fmt: skip
    report.add_argument(
        "--folds", type=_at_least(2), default=5, metavar="K", help="cross-validation folds (default: 5)"
    )

    fit = _command(commands, "fit", _fit, "fit a model to a CSV file and save it")
    _data_arguments(fit)
    fit.add_argument("--model", choices=list(LEARNERS), default="tree", help="model to fit (default: tree)")
    fit.add_argument("-o", "--output", type=_path, metavar="FILE", default="model.krz",
                     help="file to write (default: model.krz)")  # fmt: skip

    predicting = _command(commands, "predict", _predict, "predict the rows of a CSV file with a saved model")
    predicting.add_argument("model", type=_path, metavar="MODEL", help="model file written by `fit`")
    _file_arguments(predicting)
    predicting.add_argument("-o", "--output", type=_path, metavar="FILE", default=_STDOUT,
                            help="CSV file to write (default: -, standard output)")  # fmt: skip

    rules = _command(commands, "rules", _rules, "learn rules from a CSV file and print them")
    _data_arguments(rules)

    info = _command(commands, "info", _info, "print versions and run a self-check, or describe a saved model")
    info.add_argument("model", type=_path, metavar="MODEL", nargs="?", help="model file written by `fit`")
    return parser


def _command(commands: Any, name: str, run: Callable[..., int], text: str) -> argparse.ArgumentParser:
    examples = [line for line in _EXAMPLES.splitlines() if line.startswith(f"  kernelrules {name}")]
    parser = commands.add_parser(
        name,
        help=text,
        description=text[0].upper() + text[1:] + ".",
        epilog="\n".join(["examples:", *examples]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def _file_arguments(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    text = "CSV file, optionally compressed by gzip; - for standard input"
    if optional:
        parser.add_argument(
            "data", type=_path, metavar="DATA", nargs="?", help=f"{text} (default: the bundled Spambase data)"
        )
    else:
        parser.add_argument("data", type=_path, metavar="DATA", help=text)
    parser.add_argument("--no-header", action="store_true", help="the first line is data, not column names")
    parser.add_argument("--threads", type=_at_least(1), metavar="N", help="number of threads (default: all cores)")


def _data_arguments(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    _file_arguments(parser, optional=optional)
    parser.add_argument("--target", metavar="COLUMN", required=not optional, help="column to predict")
    parser.add_argument("--task", choices=["auto", "classification", "regression"], default="auto",
                        help="default: auto, inferred from the target")  # fmt: skip
    parser.add_argument("--drop", metavar="COLUMN", action="append", default=[], help="column to ignore (repeatable)")
    parser.add_argument("--categorical", metavar="COLUMN", action="append", default=[],
                        help="numeric column to treat as categories (repeatable)")  # fmt: skip
    parser.add_argument("--seed", type=_at_least(0), default=0, metavar="N", help="seed of random numbers (default: 0)")
    parser.add_argument("--quiet", action="store_true", help="print neither progress nor remarks")


def _at_least(least: int) -> Callable[[str], int]:
    def whole(text: str) -> int:
        number = int(text)
        if number < least:
            raise ValueError
        return number

    whole.__name__ = f"integer of at least {least}"  # argparse shows it in its error message
    return whole


def _path(text: str) -> str:
    if not text:
        raise ValueError
    return text


_path.__name__ = "file name"


# ---- commands -----------------------------------------------------------------------------------------------------


def _overview(_: argparse.Namespace) -> int:
    """Print the self-check and the commands; write no file."""
    code = _print_info()
    print("\n`kernelrules report` compares four models on the bundled Spambase data or on a CSV file;")
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
    """Return the selected parameters and the duality gap."""
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
        raise _UsageError(f"--target is required: the column to predict{_columns_there(given)}")
    else:
        problem = _posed(given, given.folds)
    _require_output(given.output, given.data)
    progress = shown_progress(quiet=given.quiet)
    study = run_study(
        problem, folds=given.folds, seed=given.seed, n_threads=given.threads, progress=progress
    )  # fmt: skip
    page = render(study, command=shlex.join(["kernelrules", *given.words]))
    with _opened(given.output) as file:
        file.write(_as_ascii(page) if given.output == _STDOUT else page)
    if not given.quiet:
        best = study.outcomes[study.best]
        what = "accuracy" if problem.classes is not None else "RMSE"
        text = f"best model: {best.title}, {what} {best.score.value:.4g} ± {best.score.se:.2g}"
        if given.output == _STDOUT:
            _remark(text)
        else:
            print(f"{given.output}: {text}")
    return 0


def _as_ascii(page: str) -> str:
    """Return the page in ASCII, for streams of any encoding: other characters become numeric references."""
    return page.encode("utf-8", "backslashreplace").decode().encode("ascii", "xmlcharrefreplace").decode()


def _columns_there(given: argparse.Namespace) -> str:
    try:
        return f"; the columns are {', '.join(_sheet(given).names)}"
    except DataError:
        return ""


def _require_nothing_else(given: argparse.Namespace) -> None:
    """Refuse options that apply to the user's data only."""
    for name in ("target", "drop", "categorical", "no_header"):
        if getattr(given, name):
            raise _UsageError(f"--{name.replace('_', '-')} applies to a CSV file: name one")
    if given.task == "regression":
        raise _UsageError("--task regression: the target of Spambase is a class")


def _require_output(path: str, *read: str | None) -> None:
    """Refuse an output file that cannot be written or is an input file, before any computation."""
    if path == _STDOUT:
        return
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise DataError(f"there is no folder {folder} for {Path(path).name}")
    if Path(path).is_dir():
        raise DataError(f"{path} is a folder: name an output file")
    if not os.access(Path(path) if Path(path).exists() else folder, os.W_OK):
        raise DataError(f"{path} cannot be written: permission denied")
    for other in read:
        if other and Path(path).exists() and Path(other).exists() and os.path.samefile(path, other):
            raise DataError(f"{path} is an input file: name another output file")


@contextlib.contextmanager
def _opened(path: str) -> Iterator[TextIO]:
    """Open a text file, or standard output, for writing."""
    if path == _STDOUT:
        yield sys.stdout
        return
    with _written(path), open(path, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        yield file


@contextlib.contextmanager
def _written(path: str) -> Iterator[None]:
    """Add the file name to errors of writing, such as a full disk, which do not have it."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or path
        raise


def _fit(given: argparse.Namespace) -> int:
    if given.output == _STDOUT:
        raise _UsageError("a model cannot be printed: name a file with -o")
    _require_output(given.output, given.data)
    problem = _posed(given)
    model = _fitted(problem, given, given.model)
    with _written(given.output):
        persist.save(model, given.output)
    if not given.quiet:
        print(f"{given.output}: {LEARNERS[given.model].title} of {given.target}, {model.n_train} rows")
        _remark(*_data_remarks(problem))
    return 0


def _fitted(problem: Problem, given: argparse.Namespace, name: str) -> TableModel:
    """Return a learner's model of all rows; show progress in a terminal."""
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
        raise DataError(f"{path} holds a {type(model).__name__}, which the command line cannot use: load it in Python")
    return model


def _predict(given: argparse.Namespace) -> int:
    _require_output(given.output, given.model, given.data)
    model = _loaded(given.model)
    sheet = _sheet(given)
    X, remarks = encode_sheet(sheet, model)
    _remark(*sheet.notes, *remarks)
    predicted = predict(model, X, given.threads)
    with _opened(given.output) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([model.target])
        writer.writerows([value] for value in predicted.tolist())
    return 0


def _rules(given: argparse.Namespace) -> int:
    problem = _posed(given)
    print(export.to_text(named(_fitted(problem, given, "rules"))))
    if not given.quiet:
        _remark(*_data_remarks(problem))
    return 0


def _data_remarks(problem: Problem) -> Iterator[str]:
    """Yield remarks on the file, its rows and its columns."""
    yield from (*problem.reading, *problem.notes)
    for column in problem.columns:
        if column.note:
            yield f"{'' if column.used else 'left out '}“{short(column.name)}”: {short(column.note, 200)}"


def _remark(*notes: str) -> None:
    for note in notes:
        print(f"kernelrules: {note}", file=sys.stderr)
