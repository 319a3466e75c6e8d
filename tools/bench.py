#!/usr/bin/env python3
"""Times a command: one run to warm up, then RUNS (default 5) timed ones; mean, deviation, minimum.

Usage: bench.py COMMAND [ARGUMENT...]

The whole process is timed, loading the model included. The version line names commit and CPU flags.
"""

import os
import statistics
import subprocess
import sys
import time


def main(command: list[str]) -> int:
    runs = int(os.environ.get("RUNS", "5"))
    version = subprocess.run([command[0], "--version"], capture_output=True, text=True, check=True).stdout.strip()
    seconds = []
    for i in range(runs + 1):
        start = time.perf_counter()
        status = subprocess.run(command, stdout=subprocess.DEVNULL).returncode
        elapsed = time.perf_counter() - start
        if status not in (0, 1):  # 1: the run finished, some prompts failed.
            print(f"bench: exit status {status}", file=sys.stderr)
            return status
        if i:
            seconds.append(elapsed)
    mean, least = statistics.mean(seconds), min(seconds)
    deviation = statistics.stdev(seconds) if len(seconds) > 1 else 0.0
    print(version)
    print("command:", *command)
    print(f"{mean:.2f} s ± {deviation:.2f} s, at least {least:.2f} s ({len(seconds)} runs, {os.cpu_count()} CPUs)")
    if deviation > 0.05 * mean:
        print("the runs differ by more than 5 %: close other programs and try again, or raise RUNS")
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
