"""Runs a case under one of the peers and keeps what the peer ranks first.

    python watch.py tracemalloc|memray SECONDS SCRATCH CASE.py

The peer is queried while the case still runs, at 0.9 of its seconds: what a program frees at exit is
not a leak. Writes `[{"bytes": B, "stack": [[FILE, LINE, FUNCTION], ...]}, ...]` to SCRATCH/rows.json,
largest first, the function "" where the peer does not know it; then the process and its children end at once.
"""
import json
import os
import runpy
import signal
import sys
import threading
import time

TOP = 20
FRAMES = 25


def main():
    tool, seconds, scratch, script = sys.argv[1], float(sys.argv[2]), sys.argv[3], sys.argv[4]
    sys.argv = [script]
    os.setsid()  # so that killpg ends only it and its children
    sys.path[0] = os.path.dirname(os.path.abspath(script))
    ask = {"tracemalloc": tracemalloc_difference, "memray": memray_leaks}[tool](scratch)
    threading.Thread(target=report_later, args=(ask, seconds, scratch), daemon=True).start()
    runpy.run_path(script, run_name="__main__")
    time.sleep(seconds)  # the case ended early: the report is still pending


def report_later(ask, seconds, scratch):
    """`ask` is a generator: it is resumed at a third of the time, and at 0.9 of it, when it yields its rows."""
    begun = time.monotonic()
    next(ask)
    time.sleep(max(0, seconds / 3 - (time.monotonic() - begun)))
    next(ask)
    time.sleep(max(0, 0.9 * seconds - (time.monotonic() - begun)))
    rows = next(ask)
    with open(os.path.join(scratch, "rows.json"), "w") as file:
        json.dump(rows[:TOP], file)
    os.killpg(0, signal.SIGKILL)


def tracemalloc_difference(_scratch):
    """Snapshot.compare_to by complete stacks, from a third of the time to its end; the start is left out."""
    import tracemalloc

    tracemalloc.start(FRAMES)
    yield None
    first = tracemalloc.take_snapshot()
    yield None
    found = tracemalloc.take_snapshot().compare_to(first, "traceback")
    found.sort(key=lambda row: -row.size_diff)
    yield [
        {"bytes": row.size_diff, "stack": [[f.filename, f.lineno, ""] for f in row.traceback]}
        for row in found[:TOP]
    ]


def memray_leaks(scratch):
    """What `memray table --leaks` lists, from memray's API, tracing Python's allocators as its manual recommends."""
    import memray

    path = os.path.join(scratch, "memray.bin")
    tracker = memray.Tracker(path, trace_python_allocators=True)
    tracker.__enter__()
    yield None
    yield None
    tracker.__exit__(None, None, None)
    reader = memray.FileReader(path)
    rows = sorted(reader.get_leaked_allocation_records(merge_threads=True), key=lambda r: -r.size)
    yield [
        {"bytes": row.size, "stack": [[file, line, name] for name, file, line in row.stack_trace()]}
        for row in rows[:TOP]
    ]


if __name__ == "__main__":
    main()
