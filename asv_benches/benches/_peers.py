"""What the comparisons with other libraries share: taking turns, verdicts, tables, peak memory, facts."""

import datetime
import functools
import importlib
import importlib.metadata
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

OURS, SKLEARN, INTELEX = "ours", "scikit-learn", "intelex"
THREADS = 2
PAUSE_SECONDS = 0.1
ENOUGH_SECONDS = 20.0
UNSETTLED = 1.2


@dataclass(frozen=True)
class Table:
    """A table to print. `rows` measures: it gives the lines one after another."""

    title: str
    header: tuple[str, ...]
    rows: Callable


def sorted_seconds(contenders, rounds, enough=math.inf, look=None):
    """The times of each, shortest first, taken in turn, with a pause before each and its result freed afterwards.

    Who has taken `enough` seconds in all sits the other rounds out. `look(name, result)` sees everybody's first result,
    while no clock runs.
    """
    seconds = {name: [] for name in contenders}
    for turn in range(rounds):
        for name, call in contenders.items():
            if sum(seconds[name]) >= enough:
                continue
            time.sleep(PAUSE_SECONDS)
            start = time.perf_counter()
            result = call()
            seconds[name].append(time.perf_counter() - start)
            if turn == 0 and look:
                look(name, result)
            del result
    return {name: sorted(times) for name, times in seconds.items()}


def on_threads(calls, n_threads=THREADS):
    """Call them all, which also loads what they load late, and limit the threads of all that is loaded then."""
    from threadpoolctl import threadpool_limits

    for call in calls.values():
        call()
    return threadpool_limits(n_threads)


@functools.cache
def intelex(module, n_threads=THREADS):
    """The module sklearnex.MODULE, on that many threads; None where it is not installed."""
    try:
        import daal4py

        found = importlib.import_module(f"sklearnex.{module}")
    except ModuleNotFoundError as error:
        if error.name not in ("daal4py", "sklearnex"):
            raise
        return None
    daal4py.daalinit(n_threads)  # its threads are TBB's, which threadpoolctl does not reach
    return found


def fell_back(name, fitted):
    """What to remark if scikit-learn did the work for scikit-learn-intelex."""
    if name.startswith(INTELEX) and not hasattr(fitted, "_onedal_estimator"):
        return [f"{name} fell back to scikit-learn"]
    return []


def unsettled(seconds):
    """The names of those whose two best rounds differ by more than a fifth; who ran once cannot be judged."""
    return [name for name, times in seconds.items() if len(times) > 1 and times[1] > UNSETTLED * times[0]]


def remarks_cell(seconds, others=()):
    """One cell: other remarks, whose times cannot be believed, and who ran once."""
    once = [name for name, times in seconds.items() if len(times) == 1]
    remarks = [*others, *([f"unsettled: {', '.join(unsettled(seconds))}"] if unsettled(seconds) else [])]
    return "; ".join(remarks + ([f"one round: {', '.join(once)}"] if once else [])) or "–"


def verdict(missed):
    """One cell: whether all goals are met and, if not, which are not."""
    return f"missed: {', '.join(missed)}" if missed else "met"


def announce(case):
    """Name a case on stderr when its turn comes."""
    print(case, file=sys.stderr, flush=True)


def skipped(header, case, error):
    """A line that says why there are no figures."""
    return (case, *["–"] * (len(header) - 2), f"skipped: {error}")


def rows_of_data(problems, header, wanted, cells):
    """A line for each that is wanted: `cells(problem, X, y)`, or why it was skipped."""
    for problem in (problem for problem in problems if wanted(problem.case)):
        announce(problem.case)
        try:
            X, y = problem.load()
        except FileNotFoundError as error:
            yield skipped(header, problem.case, error)
        else:
            yield cells(problem, X, y)


def measured_alone(module, arguments, limit, n_threads=THREADS):
    """The report that a module of this folder prints in a process of its own, or a remark."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", f"{__package__}.{module}", *arguments],
            cwd=Path(__file__).parents[2],
            env=os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(n_threads)),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=limit,
        )
    except subprocess.TimeoutExpired:
        return {"remark": f"not done in {limit} s"}
    return json.loads(done.stdout)


def with_peak(call):
    """The result of the call, its seconds, and how far memory rose, in MB. Linux only."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before, start = megabytes("VmRSS"), time.perf_counter()
    result = call()
    return result, time.perf_counter() - start, megabytes("VmHWM") - before


def megabytes(entry):
    """VmRSS, the memory that this process has now, or VmHWM, the most it has had. Linux only.

    Not ru_maxrss: that of a child starts at its parent's.
    """
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(entry)) * 1024 / 1e6


def version(package):
    """Of an installed package; "not installed" where it is not."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def facts(module="peers"):
    """What the figures depend on, a line each; `module` is the one of this folder that was called."""
    from kernelrules.core import machine

    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), cpu)
    packages = ("kernelrules", "numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "lightgbm", "xgboost")
    return [
        f"{cpu}, {os.cpu_count()} cores, SIMD level {machine.simd()}, {THREADS} threads where nothing else is said",
        f"load before the start {os.getloadavg()[0]:.1f}",
        f"Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in packages),
        f"{datetime.date.today()}, by: python -m asv_benches.benches.{module} {' '.join(sys.argv[1:])}".rstrip(),
    ]


def formatted(header, rows, style):
    """The table as markdown or as a reST grid."""
    table = [header, *rows]
    widths = [max(len(line[j]) for line in table) for j in range(len(header))]

    def line(values):
        return "| " + " | ".join(value.ljust(width) for value, width in zip(values, widths, strict=True)) + " |"

    def ruler(corner, dash):
        return corner + corner.join(dash * (width + 2) for width in widths) + corner

    if style == "markdown":
        return "\n".join([line(header), ruler("|", "-"), *map(line, rows)])
    grid = [ruler("+", "-"), line(header), ruler("+", "=")]
    for row in rows:
        grid += [line(row), ruler("+", "-")]
    return "\n".join(grid)
