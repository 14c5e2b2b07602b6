"""Shared code of the comparisons with other libraries: timing, verdicts, tables, peak memory, environment."""

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
    """A table to print. `rows` measures and yields the lines one by one."""

    title: str
    header: tuple[str, ...]
    rows: Callable


def sorted_seconds(contenders, rounds, enough=math.inf, look=None):
    """Time the contenders alternately, with a pause before each call; return the sorted times of each.

    Results are freed outside the timed part. A contender that has taken `enough` seconds in total skips the remaining
    rounds. `look(name, result)` receives every first result, outside the timed part.
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
    """Call all contenders, which loads their lazily loaded libraries, and limit the threads of all loaded libraries."""
    from threadpoolctl import threadpool_limits

    for call in calls.values():
        call()
    return threadpool_limits(n_threads)


@functools.cache
def intelex(module, n_threads=THREADS):
    """Return sklearnex.MODULE with that many threads; None if it is not installed."""
    try:
        import daal4py

        found = importlib.import_module(f"sklearnex.{module}")
    except ModuleNotFoundError as error:
        if error.name not in ("daal4py", "sklearnex"):
            raise
        return None
    daal4py.daalinit(n_threads)  # uses TBB threads, which threadpoolctl does not control
    return found


def fell_back(name, fitted):
    """Return a remark if scikit-learn-intelex fell back to scikit-learn."""
    if name.startswith(INTELEX) and not hasattr(fitted, "_onedal_estimator"):
        return [f"{name} fell back to scikit-learn"]
    return []


def unsettled(seconds):
    """Return the contenders whose two best rounds differ by more than a fifth; those that ran once are excluded."""
    return [name for name, times in seconds.items() if len(times) > 1 and times[1] > UNSETTLED * times[0]]


def remarks_cell(seconds, others=()):
    """Return one cell: other remarks, contenders with unreliable times, and contenders that ran once."""
    once = [name for name, times in seconds.items() if len(times) == 1]
    remarks = [*others, *([f"unsettled: {', '.join(unsettled(seconds))}"] if unsettled(seconds) else [])]
    return "; ".join(remarks + ([f"one round: {', '.join(once)}"] if once else [])) or "–"


def verdict(missed):
    """Return one cell: whether all goals are met, and which are not."""
    return f"missed: {', '.join(missed)}" if missed else "met"


def announce(case):
    """Print a case on stderr when its measurement starts."""
    print(case, file=sys.stderr, flush=True)


def skipped(header, case, error):
    """Return a line that states why there are no figures."""
    return (case, *["–"] * (len(header) - 2), f"skipped: {error}")


def rows_of_data(problems, header, wanted, cells):
    """Yield a line per selected problem: `cells(problem, X, y)`, or the reason why it was skipped."""
    for problem in (problem for problem in problems if wanted(problem.case)):
        announce(problem.case)
        try:
            X, y = problem.load()
        except FileNotFoundError as error:
            yield skipped(header, problem.case, error)
        else:
            yield cells(problem, X, y)


def measured_alone(module, arguments, limit, n_threads=THREADS):
    """Return the report that a module of this folder prints in a separate process, or a remark."""
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
    """Return the result of the call, its seconds, and the increase of peak memory in MB. Linux only."""
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    before, start = megabytes("VmRSS"), time.perf_counter()
    result = call()
    return result, time.perf_counter() - start, megabytes("VmHWM") - before


def megabytes(entry):
    """Return VmRSS, the current memory of this process, or VmHWM, its peak, in MB. Linux only.

    ru_maxrss is unsuitable, because that of a child starts at its parent's.
    """
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(entry)) * 1024 / 1e6


def version(package):
    """Return the version of a package, or "not installed"."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def facts(module="peers"):
    """Return lines that describe the environment; `module` is the called module of this folder."""
    from kernelrules.core.simd import cpu as core_cpu

    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), cpu)
    packages = ("kernelrules", "numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "lightgbm", "xgboost")
    return [
        f"{cpu}, {os.cpu_count()} cores, SIMD level {core_cpu.simd()}, {THREADS} threads where nothing else is said",
        f"load before the start {os.getloadavg()[0]:.1f}",
        f"Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in packages),
        f"{datetime.date.today()}, by: python -m asv_benches.benches.{module} {' '.join(sys.argv[1:])}".rstrip(),
    ]


def formatted(header, rows, style):
    """Return the table as markdown or as a reST grid."""
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
