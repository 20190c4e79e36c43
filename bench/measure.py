"""Runs a command and writes its cost: CPU seconds (including children that it waited for), wall
seconds, peak RSS. `measure.py OUT.json COMMAND...` exits with the command's exit status.

The figures are the kernel's (wait4), so that a profiler inside the command cannot distort them.
"""

import json
import os
import sys
import time


def main() -> int:
    out, command = sys.argv[1], sys.argv[2:]
    started = time.monotonic()
    pid = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(pid, 0)
    wall = time.monotonic() - started
    with open(out, "w", encoding="utf-8") as file:
        json.dump(
            {
                "cpuSeconds": usage.ru_utime + usage.ru_stime,
                "wallSeconds": wall,
                "peakRssBytes": usage.ru_maxrss * 1024,
            },
            file,
        )
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(main())
