"""Runs a program a number of times in one process: `repeat.py TIMES PROGRAM [ARGUMENTS]`."""

import runpy
import sys

times, program = int(sys.argv[1]), sys.argv[2]
sys.argv = sys.argv[2:]
for _ in range(times):
    try:
        runpy.run_path(program, run_name="__main__")
    except SystemExit:
        pass
