"""Computations in processes of their own, interrupted: how long they take to stop."""

import signal
import subprocess
import sys
import tempfile
import time

HEAD_START = 0.4  # seconds that one computes before the signal
TRIES = 3  # a busy machine may take a second to wake a process up
LONGEST = 20.0  # seconds that a busy machine may let a process wait

# A signal that the parent's parents ignore or block would be so here.
HEAR = """
import signal, sys
blocked, heard = signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT]), signal.getsignal(signal.SIGINT)
if signal.SIGINT in blocked or heard is not signal.default_int_handler:
    print(f"SIGINT was blocked: {signal.SIGINT in blocked}, handled by {heard}", file=sys.stderr)
    signal.signal(signal.SIGINT, signal.default_int_handler)
"""
LOOP = """
import os, time
for name, (prepare, call) in CASES.items():
    exec(prepare)
    code, finished = compile(call, name, "eval"), False
    print("ready", flush=True)
    try:
        eval(code)
        finished = True
        time.sleep(60)
    except KeyboardInterrupt:
        print("finished" if finished else "interrupted", time.time(), time.process_time(), flush=True)
os._exit(0)  # without waiting for what goes on unheard
"""


def seconds_to_stop(code):
    """Seconds from SIGINT to the line "interrupted TIME" of a script that says "ready" before it starts to compute: the
    first of a few tries that is below one, or else the shortest."""
    shortest = float("inf")
    for _ in range(TRIES):
        with subprocess.Popen([sys.executable, "-c", HEAR + code], stdout=subprocess.PIPE, text=True) as process:
            said, seconds, _ = _interrupted(process, HEAD_START)
        assert said == "interrupted"
        shortest = min(shortest, seconds)
        if shortest < 1.0:
            break
    return shortest


def seconds_of_all(prepare, cases, head_start=HEAD_START):
    """{name: seconds to stop} of cases (statements, expression), one after the other in one process, which starts with
    `prepare`; None where an expression was done before the signal. What took a second is tried again. Seconds are those
    of the processor, as the promise is: those in which a busy machine ran other processes do not count."""
    told, left = {}, dict(cases)
    for _ in range(TRIES):
        code = f"CASES = {left!r}\n{prepare}{HEAR}{LOOP}"
        with (
            tempfile.TemporaryFile("w+") as errors,
            subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=errors, text=True) as process,
        ):
            for name in left:
                said, seconds, computed = _interrupted(process, head_start)
                if seconds < LONGEST:
                    seconds = min(seconds, computed)
                if said not in ("interrupted", "finished"):
                    errors.seek(0)
                    raise AssertionError(f"in {name} the child said {said!r}, {process.poll()=}, and {errors.read()!r}")
                seconds = seconds if said == "interrupted" else None
                before = told.get(name)
                told[name] = seconds if before is None or seconds is None else min(before, seconds)
        left = {name: case for name, case in left.items() if told[name] is not None and told[name] >= 1.0}
        if not left:
            break
    return told


def _interrupted(process, head_start):
    """What the child says after a signal, the seconds until it did, and those that its threads computed meanwhile,
    where it tells its time and the system that of another process."""
    assert process.stdout.readline().strip() == "ready", "the child died before it was ready"
    time.sleep(head_start)
    try:
        before = time.clock_gettime(~process.pid << 3 | 2)  # Linux's name for the time of a process
    except OSError:
        before = float("-inf")
    sent = time.time()
    process.send_signal(signal.SIGINT)
    said, when, spent = (process.stdout.readline().split() + [""] * 3)[:3]
    return said, float(when or "nan") - sent, float(spent or "inf") - before
