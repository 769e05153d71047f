# SPDX-License-Identifier: Apache-2.0
"""The loop that a peer's program runs: a line in, a measured round out (see session_rounds.cc)."""
import contextlib
import json
import sys
import time


def cpu_seconds(*servers):
    """CPU time of this process so far, and of the processes `servers` (None is none), with that of threads which have ended."""
    total = time.process_time()
    for server in servers:
        if server is not None:
            with contextlib.suppress(OSError):  # it just ended
                total += time.clock_gettime((~server << 3) | 2)  # CPU clock of a whole process, see clock_getcpuclockid(3)
    return total


def megabytes(key, pid='self'):
    """VmRSS, what a process holds, or VmHWM, the most that it has held."""
    with open('/proc/%s/status' % pid) as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(key))


IMPORTED = megabytes('VmRSS')  # before there is a model


def measured(step, check, server=None, **more):
    """Calls `step` in bursts for a quarter of a second. Says the time of a step in the fastest burst, and its CPU time over all
    of them, that of the process `server` included; and `more`."""
    best, burst, count, end = 1e9, 1, 0, time.perf_counter() + 0.25
    cpu = cpu_seconds(server)
    while True:
        start = time.perf_counter()
        for _ in range(burst):
            step()
        took = time.perf_counter() - start
        best = min(best, took / burst)
        count += burst
        if took < 0.02:
            burst *= 2
        if time.perf_counter() > end:
            break
    cpu = (cpu_seconds(server) - cpu) / count
    print(json.dumps({'us': best * 1e6, 'check': float(check), 'cpu_us': cpu * 1e6, **more}), flush=True)


def serve(step, checks=10, server=None):
    """Calls `step`, which gives a number, `checks` times for the check, then measures a round for each line of stdin."""
    check = [step() for _ in range(checks)][-1]
    for _ in sys.stdin:
        measured(step, check, server, imported_mb=IMPORTED, peak_mb=megabytes('VmHWM'))
