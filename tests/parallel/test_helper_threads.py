"""Threads of Python that help a caller: what is interrupted, forked, ending or without threads gives the right answer
or the right error, and never hangs."""

import os
import subprocess
import sys
import threading

import pytest

from kernelrules import parallel

UNIX = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")


def one_with_the_helper(began, n=4):
    """Tasks, of which a helper has begun the first before there is a second one."""
    yield (0,)
    assert began.wait(60)
    for k in range(1, n):
        yield (k,)


def test_an_interrupt_does_not_wait_for_its_turn():
    """Ctrl-C in a task that the caller does is raised at once, not after the results of earlier tasks, which may be
    the last that are read."""
    began, interrupted, here = threading.Event(), threading.Event(), threading.current_thread()

    def work(k):
        if threading.current_thread() is here:
            interrupted.set()
            raise KeyboardInterrupt
        began.set()
        interrupted.wait(60)
        return k

    with pytest.raises(KeyboardInterrupt):
        next(parallel.in_threads(work, one_with_the_helper(began), 2))


def test_an_error_waits_for_its_turn():
    """So that the same one is raised for any number of threads."""
    began, here = threading.Event(), threading.current_thread()

    def work(k):
        if threading.current_thread() is not here:
            began.set()
        if k in (1, 2):
            raise ValueError(k)
        return k

    answers = parallel.in_threads(work, one_with_the_helper(began), 2)
    assert next(answers) == 0
    with pytest.raises(ValueError, match="1"):
        next(answers)


def test_no_thread_can_be_started(monkeypatch):
    """As under `ulimit -u`. The pool has queued the tasks by then: each is done once, also where a thread starts
    later."""
    parallel._helpers.cache_clear()
    begin, may_start, done = threading.Thread.start, [False, True], []

    def start(thread):
        if not (may_start.pop(0) if may_start else True):
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    assert list(parallel.in_threads(lambda k: done.append(k) or k, [(k,) for k in range(9)], 2)) == list(range(9))
    parallel._helpers(1).submit(int).result()  # behind all that it has queued
    assert sorted(done) == list(range(9))
    may_start[:] = [False]
    assert parallel.interruptible_call(pow, 2, 3) == 8


def ran(code):
    """What a script prints, whose children end too."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split("\n")[:-1]


def test_an_interpreter_that_ends():
    """Functions that are called at exit have no more threads of Python, and work."""
    code = """
import atexit
from kernelrules import parallel
tasks = [(2, 3), (3, 2)]
atexit.register(lambda: print(list(parallel.in_threads(pow, tasks, 2)), parallel.interruptible_call(pow, 2, 5)))
"""
    assert ran(code) == ["[8, 9] 32"]


FORKED = """
import os, signal, sys, threading
from kernelrules import parallel
began, end, here = threading.Event(), threading.Event(), threading.current_thread()

def work(k):
    if threading.current_thread() is not here:
        began.set()
        end.wait()
    return k

def tasks():
    yield (0,)
    began.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a child that hangs ends by this
        {child}
    else:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        end.set()
    yield (1,)

try:
    print(list(parallel.in_threads(work, tasks(), 2)))
except RuntimeError as error:
    print(error, flush=True)
"""


@UNIX
@pytest.mark.parametrize(
    ("child", "said"),
    [
        ("sys.exit(7)", ["7", "[0, 1]"]),
        ("pass", ["a process that was forked during a computation cannot continue it", "0", "[0, 1]"]),
    ],
)
def test_a_fork_while_a_helper_works(child, said):
    """By the caller, say in its callback: the child has no helper to wait for, whether it leaves or goes on."""
    assert ran(FORKED.replace("{child}", child)) == said
