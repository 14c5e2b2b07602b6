"""A computation in a process of its own, interrupted: how long it takes to stop."""

import signal
import subprocess
import sys
import time


def seconds_to_stop(code):
    """Seconds from SIGINT to the line "interrupted TIME" of a script that says "ready" before it starts to compute."""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().strip() == "ready"
        time.sleep(0.7)
        sent = time.time()
        process.send_signal(signal.SIGINT)
        try:
            said = process.communicate(timeout=60)[0].split()
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert said[0] == "interrupted"
    return float(said[1]) - sent
