"""What the comparisons with other libraries share: taking turns, verdicts, tables, peak memory, facts."""

import datetime
import importlib.metadata
import math
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

THREADS = 2
PAUSE_SECONDS = 0.1
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


def unsettled(seconds):
    """The names of those whose two best rounds differ by more than a fifth; who ran once cannot be judged."""
    return [name for name, times in seconds.items() if len(times) > 1 and times[1] > UNSETTLED * times[0]]


def verdict(missed):
    """One cell: whether all goals are met and, if not, which are not."""
    return f"missed: {', '.join(missed)}" if missed else "met"


def announce(case):
    """Name a case on stderr when its turn comes."""
    print(case, file=sys.stderr, flush=True)


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


def facts():
    """What the figures depend on, a line each."""
    from kernelrules.core import machine

    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), cpu)
    packages = ("kernelrules", "numpy", "scipy", "scikit-learn", "scikit-learn-intelex")
    return [
        f"{cpu}, {os.cpu_count()} cores, SIMD level {machine.simd()}, {THREADS} threads",
        f"load before the start {os.getloadavg()[0]:.1f}",
        f"Python {platform.python_version()}, " + ", ".join(f"{name} {version(name)}" for name in packages),
        f"{datetime.date.today()}, by: python -m asv_benches.benches.peers {' '.join(sys.argv[1:])}".rstrip(),
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
