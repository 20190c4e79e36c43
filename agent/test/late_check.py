#!/usr/bin/env python3
"""Tests the late-loaded agent in real interpreters: runs python_programs/late.py in each and checks its pools.

    late_check.py LIBRARY LAYOUT [NAME...]

Arguments and output are those of python_check.py.
"""

import glob
import json
import os
import signal
import subprocess
import sys

from python_interpreters import interpreters, shared_library
from python_segment import Layout, read_pool
from python_trial import (Failure, Interpreter, Skipped, barrier, compile_program, estimate, expect, expect_barred,
                          expect_bytes)

OTHER_ALLOCATORS = ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libmimalloc.so.2"]
LIMIT_FOREIGN_ALLOCATOR = 1 << 8


class Ended(Failure):
    def __init__(self, check, ended):
        super().__init__(f"{check} ended with {ended.returncode}: {ended.stderr[-900:]}")
        self.status = ended.returncode


def run_late(python, check, environment=(), period="4K", preload="", cycles=30):
    """Returns what late.py printed, and the segments in its pool files."""
    python.runs += 1
    pools = os.path.join(python.scratch, f"late{python.runs}")
    os.mkdir(pools)
    inside = f"{python.inside}/late{python.runs}"
    variables = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "CYCLES": str(cycles), **dict(environment)}
    if preload:
        variables["LD_PRELOAD"] = preload
    ended = subprocess.run(
        [*python.prefix, "/usr/bin/env", "-i", *[f"{k}={v}" for k, v in variables.items()], *python.command,
         f"{python.inside}/programs/late.py", f"{python.inside}/{os.path.basename(python.library)}",
         f"period={period},dir={inside}", check],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    if ended.returncode != 0 or ended.stderr:
        raise Ended(check, ended)
    segments = [s for path in sorted(os.listdir(pools)) for s in read_pool(os.path.join(pools, path), python.layout)]
    return ended.stdout, segments


def needs_proc(python):
    if python.prefix and not os.path.exists(os.path.join(python.prefix[-1], "proc/self/maps")):
        raise Skipped("no /proc in the chroot")


def compare_figures(output, segment):
    for what, (line, size, count) in json.loads(output).items():
        live, _ = estimate(segment, line, "late.py")
        if count == 0:
            expect(live < 1, f"{what}: {live:.0f} bytes live after all were freed")
        else:  # the list that holds the objects is allocated on the same line
            expect_bytes(segment, what, live, size, count, 0.99, 1.12)


def check_contract(python):
    run_late(python, "contract")


def check_figures(python):
    output, segments = run_late(python, "figures", period="16K")
    expect(len(segments) == 1 and segments[0].state == 2, f"states {[s.state for s in segments]}")
    expect(segments[0].lost == 0, f"{segments[0].lost} samples lost: {segments[0].log}")
    compare_figures(output, segments[0])


def check_trace(python):
    needs_proc(python)
    run_late(python, "trace")


def check_cycles(python):
    needs_proc(python)
    run_late(python, "cycles", period="16K")


def check_forks(python):
    run_late(python, "forks")


def check_wrapped(python):
    run_late(python, "wrapped")


def check_loaded(python):
    run_late(python, "loaded")


def check_lapsed(python):
    run_late(python, "lapsed")


def check_preloaded(python):
    """Preloaded but inactive, then armed late: nothing is counted twice, no slot is written."""
    output, segments = run_late(python, "preloaded", period="16K", preload=f"{python.inside}/{os.path.basename(python.library)}")
    compare_figures(output, segments[0])


def check_exits(python):
    """A daemon thread that returns to a finalized interpreter may crash in CPython itself: on a busy machine,
    3.10.13 crashed in 1 to 2 of 100 exits with no agent. check_silent shows whether the agent makes it worse."""
    for attempts_left in reversed(range(3)):
        try:
            output, segments = run_late(python, "exits")
        except Ended as crash:
            if crash.status != -signal.SIGSEGV or python.minor > 10 or not attempts_left:
                raise
        else:
            break
    expect(segments[0].state == 3, f"state {segments[0].state}")
    compare_figures(output, segments[0])


def check_silent(python):
    output, segments = run_late(python, "silent", [("BARRIER", barrier(python))])
    expect_barred(output)
    expect(segments[0].state == 3, f"state {segments[0].state}")


def check_copies(python):
    needs_proc(python)
    run_late(python, "copies")


def check_hosted(python):
    """A host opens libpython privately: none of its symbols are in the global scope."""
    shared = None if python.prefix else shared_library(python.command)
    host = os.path.join(python.scratch, "host")
    if not shared:
        raise Skipped("in the chroot, or without a shared libpython")
    if not compile_program("host.c", host):
        raise Skipped("no C compiler")
    home = subprocess.check_output([*python.command, "-I", "-c", "import sys; print(sys.base_prefix)"], text=True).strip()
    words = f"{python.library} period=16K,dir={python.scratch} figures"
    ended = subprocess.run([host, shared, f"{python.scratch}/programs/late.py"], text=True, timeout=300,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHOME": home, "LATE": words})
    expect(ended.returncode == 0 and not ended.stderr, f"ended with {ended.returncode}: {ended.stderr[-900:]}")
    (pool,) = glob.glob(os.path.join(python.scratch, "tidemark-*.pool"))
    (segment,) = read_pool(pool, python.layout)
    compare_figures(ended.stdout, segment)


def check_modes(python):
    for environment, state in (((("PYTHONMALLOC", "malloc"),), 3), ((("PYTHONMALLOC", "debug"),), 2), ((("PYTHONTRACEMALLOC", "3"),), 1)):
        _, segments = run_late(python, "modes", environment)
        expect(segments[0].python_state == state, f"{environment}: python_state {segments[0].python_state}, not {state}")


CHECKS = [
    ("the contract", check_contract),
    ("figures", check_figures),
    ("preloaded inert, then armed", check_preloaded),
    ("no trace is left", check_trace),
    ("cycles under load", check_cycles),
    ("children", check_forks),
    ("objects loaded meanwhile", check_loaded),
    ("tracemalloc before, during and after", check_wrapped),
    ("allocator modes", check_modes),
    ("the recorder is gone", check_lapsed),
    ("the end of an armed process", check_exits),
    ("no system call after the interpreter's end", check_silent),
    ("a memfd, and a second copy", check_copies),
    ("libpython opened by a host for itself", check_hosted),
]


def with_numpy():
    """An interpreter from the test environment that has NumPy, or None."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for path in sorted(glob.glob(os.path.join(cache, "tidemark", "packages-*", "bin", "python3"))):
        found = subprocess.run([path, "-c", "import numpy"], stderr=subprocess.DEVNULL)
        if found.returncode == 0:
            return path
    return None


def find_library(name):
    listed = subprocess.run(["ldconfig", "-p"], stdout=subprocess.PIPE, text=True).stdout
    paths = [line.split()[-1] for line in listed.splitlines() if line.split()[:1] == [name] and "x86-64" in line]
    return paths[0] if paths else None


def beside_other(python, name):
    path = find_library(name)
    if not path:
        raise Skipped("not installed")
    output, segments = run_late(python, "figures", period="16K", preload=path)
    expect(segments[0].limits & LIMIT_FOREIGN_ALLOCATOR, f"limits {segments[0].limits:#x}")
    compare_figures(output, segments[0])
    run_late(python, "trace", preload=path)
    run_late(python, "cycles", preload=path)


def attempt(what, check, *arguments):
    try:
        check(*arguments)
    except Skipped as why:
        print(f"ok - {what} # SKIP {why}", flush=True)
    except (Failure, subprocess.TimeoutExpired) as failure:
        print(f"not ok - {what}\n#   {failure}", flush=True)
        return 1
    else:
        print(f"ok - {what}", flush=True)
    return 0


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__)
    library, layout = arguments[0], Layout(subprocess.check_output([arguments[1]], text=True))
    failed, first = 0, None
    for name, minor, prefix, command, root in interpreters():
        if arguments[2:] and not any(part in name for part in arguments[2:]):
            continue
        python = Interpreter(name, minor, prefix, command, root, library, layout)
        for what, check in CHECKS:
            failed += attempt(f"late in Python {name}: {what}", check, python)
        if not prefix and first is None:
            first = python
            for other in OTHER_ALLOCATORS:
                failed += attempt(f"late beside {other}", beside_other, python, other)
        python.close()
    numpy = with_numpy()
    if not numpy:
        print("ok - late, 1,000 cycles among NumPy threads # SKIP no environment with NumPy")
    else:
        python = Interpreter("with NumPy", 0, [], [numpy], "", library, layout)
        failed += attempt("late, 1,000 cycles among NumPy threads",
                          lambda: run_late(python, "cycles", period="16K", cycles=1000))
        python.close()
    print("ok - late attach: every check was made", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
