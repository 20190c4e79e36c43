#!/usr/bin/env python3
"""Tests the agent inside real interpreters: frames, small objects, modes, exits.

    python_check.py LIBRARY LAYOUT [NAME...]

LIBRARY is build/libtidemark.so, LAYOUT the program that prints segment.h as JSON. With
names, only interpreters whose name contains one of them. Prints `ok` and `not ok` lines; fails
if any line is `not ok`.
"""

import json
import math
import os
import shutil
import subprocess
import sys

from python_interpreters import interpreters, shared_library
from python_pretenders import check_late_pretender, check_pretenders
from python_segment import FRAMES_ONLY, FULL, LIMIT_DEBUG, LIMIT_HOOKS_REPLACED, MALLOC, Layout
from python_trial import (Failure, Interpreter, Skipped, barrier, compile_program, estimate, expect, expect_barred,
                          expect_bytes, farthest, sampling_chance)

PYTHON = 0
NATIVE_FRAME = 1
# Minimum number of samples behind a figure; the controller decides how many one run takes.
ENOUGH_SAMPLES = 30
LEAF_FRAMES, ROOT_FRAMES = 100, 20


def shorten(stack):
    """A stack as the agent keeps it: a deep stack is reduced to its leaf, a mark and its root."""
    left_out = len(stack) - LEAF_FRAMES - ROOT_FRAMES
    if left_out <= 0:
        return stack
    return stack[:LEAF_FRAMES] + [[f"{left_out} frames left out", "", 0]] + stack[-ROOT_FRAMES:]


def frames_of(site):
    return [[f.function, f.file, f.line] for f in site.stack if f.kind != NATIVE_FRAME]


def check_frames(python):
    output, (segment,) = python.run("frames.py", period=1 << 20)
    truth = {int(size): stack for size, stack in json.loads(output).items()}
    expect(len(truth) > 70, f"only {len(truth)} stacks noted")
    seen = {live.bytes: live.site for live in segment.live}
    expect(segment.python_state == FULL, f"python_state {segment.python_state}: {segment.log}")
    # On a busy machine the controller may have raised the period, so a few may be missed.
    expect(len(seen.keys() & truth.keys()) > 0.8 * len(truth), f"{len(seen.keys() & truth.keys())} of {len(truth)} seen")
    for size, stack in truth.items():
        if size not in seen:
            continue
        site = seen[size]
        found = frames_of(site)
        expect(found == shorten(stack), f"stack of {size} bytes:\n#   found {found}\n#   truth {shorten(stack)}")
        expect(site.domain == PYTHON, f"{size} bytes at {stack[1]} count as domain {site.domain}")


def small_figures(python):
    """One run of small.py: {name: (counted, chance, alive)}, and how many small objects were sampled."""
    output, (segment,) = python.run("small.py", period=16384)
    samples = [live for live in segment.live if live.bytes <= 512 and live.site.domain == PYTHON]
    figures = {}
    for what, (line, size, alive) in json.loads(output).items():
        live, sites = estimate(segment, line, "small.py")
        expect(all(s.domain == PYTHON for s in sites), f"{what}: not all are Python's")
        if alive == 0:
            expect(live < 1, f"{what}: {live:.0f} bytes live after all were freed")
            continue
        # The list that holds the objects, and temporary numbers, are allocated on the same line:
        # the objects are recognized by their size.
        own = [l for l in segment.live if l.bytes == size and l.site in sites]
        counted = sum(1 / (1 - math.exp(-size / live.period)) for live in own)
        figures[what] = (counted, sampling_chance(segment, size), alive)
    return figures, len(samples)


def check_kinds(python):
    """Blocks that stay are sampled more finely than blocks of the same size that another function frees."""
    output, (segment,) = python.run("kinds.py")
    size, line = map(int, output.split())
    _, sites = estimate(segment, line, "kinds.py")
    periods = sorted(live.period for live in segment.live if live.bytes == size and live.site in sites)
    expect(len(periods) >= 10, f"{len(periods)} samples")
    middle = periods[len(periods) // 2]
    expect(middle * 2 <= segment.coarsest, f"period of what stays {middle}, the coarsest {segment.coarsest}")


def check_openings(python):
    output, (segment,) = python.run("openings.py", period=1 << 20)
    truth = {int(descriptor): stack for descriptor, stack in json.loads(output).items()}
    expect(len(truth) > 10, f"only {len(truth)} descriptors noted")
    for descriptor, stack in truth.items():
        opener = segment.opener(descriptor)
        expect(opener, f"descriptor {descriptor}, opened at {stack[0]}, has no opener")
        found = [[f.function, f.file, f.line] for f in opener if f.file.endswith("openings.py")]
        expect(found == stack, f"opener of {descriptor}:\n#   found {found}\n#   truth {stack}")


def check_small(python):
    runs, samples = [], 0
    while len(runs) < 40:
        figures, sampled = small_figures(python)
        runs.append(figures)
        samples += sampled
        expected = [sum(run[what][1] * run[what][2] for run in runs) for what in figures]
        if min(expected) >= ENOUGH_SAMPLES:
            break
    expect(min(expected) >= ENOUGH_SAMPLES, f"{len(runs)} runs gave samples {expected}")
    expect(samples > ENOUGH_SAMPLES, f"only {samples} small objects sampled")
    for what in figures:
        parts = [(chance, 1, alive) for _, chance, alive in (run[what] for run in runs)]
        counted, alive = sum(run[what][0] for run in runs), sum(run[what][2] for run in runs)
        error = farthest(parts)
        expect(abs(counted - alive) < error,
               f"{what}: {counted:.0f} objects live in {len(runs)} runs, {alive} are, and chance explains {error:.0f}")


def check_names(python):
    """The interpreter caches looked-up names by address; this matters most for sampled names."""
    output, (segment,) = python.run("names.py", period=4096)
    truth = json.loads(output)
    for line in truth["gone"]:
        gone, _ = estimate(segment, line, "names.py")
        expect(gone < 1, f"{gone:.0f} bytes of names are live after the lookup at line {line}")
    line, alive = truth["kept"]
    names = [l for l in segment.live if l.site.stack and l.site.stack[0].line == line and 50 < l.bytes < 80]
    parts = [(sampling_chance(segment, 65), 1, alive)]
    counted = sum(1 / (1 - math.exp(-l.bytes / l.period)) for l in names)
    expect(abs(counted - alive) < farthest(parts), f"{counted:.0f} names that are kept live, {alive} are")


def check_blocks(python):
    output, _ = python.run("blocks.py")
    plain, _ = python.run("blocks.py", agent=False)
    expect(abs(int(output) - int(plain)) < 50, f"getallocatedblocks() drifted by {output.strip()}, alone by {plain.strip()}")


def check_modes(python):
    modes = [
        (("-I", "-E"), (), FULL, 0),
        (("-s", "-B"), (("PYTHONMALLOC", "pymalloc"),), FULL, 0),
        ((), (("PYTHONMALLOC", "malloc"),), MALLOC, 0),
        ((), (("PYTHONMALLOC", "debug"),), FRAMES_ONLY, LIMIT_DEBUG),
        ((), (("PYTHONMALLOC", "malloc_debug"),), FRAMES_ONLY, LIMIT_DEBUG),
        (("-X", "dev"), (), FRAMES_ONLY, LIMIT_DEBUG),
        (("-X", "tracemalloc=5"), (), FULL, 0),
        (("-X", "tracemalloc=5"), (("PYTHONMALLOC", "pymalloc"),), FULL, 0),
    ]
    if python.minor >= 13 and "mimalloc" in has_mimalloc(python):
        modes.append(((), (("PYTHONMALLOC", "mimalloc"),), FRAMES_ONLY, None))
    for options, environment, state, limits in modes:
        name = " ".join([*options, *(f"{k}={v}" for k, v in environment)])
        # mimalloc allocates from address space that it reserved: the agent sees none of it.
        program = "blocks.py" if state == FRAMES_ONLY and limits is None else "frames.py"
        output, segments = python.run(program, options, environment, period=1 << 20)
        segment = segments[0]
        expect(segment.python_state == state, f"{name}: python_state {segment.python_state}, not {state}: {segment.log}")
        if limits is None:
            continue
        known = LIMIT_DEBUG | LIMIT_HOOKS_REPLACED
        expect(segment.limits & known == limits, f"{name}: limits {segment.limits:#x}")
        # A debug allocator adds some bytes to each block, so blocks are matched by stack, not by size.
        wanted = {json.dumps(shorten(stack)) for stack in json.loads(output).values()}
        found = {json.dumps(frames_of(live.site)) for live in segment.live}
        expect(len(wanted - found) < 0.2 * len(wanted), f"{name}: {len(wanted - found)} of {len(wanted)} stacks missing")


def has_mimalloc(python):
    ended = subprocess.run([*python.prefix, *python.command, "-c", "print('mimalloc')"], env={"PYTHONMALLOC": "mimalloc"},
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return ended.stdout


def check_traced(python):
    output, (segment,) = python.run("traced.py")
    truth = 50_000 * (100 + 33)
    expect(truth < int(output) < truth * 1.2, f"tracemalloc saw {output.strip()} bytes, {truth} were kept")
    for line in (7, 9, 13):
        live, _ = estimate(segment, line, "traced.py")
        expect_bytes(segment, f"line {line}", live, 133, 50_000, 0.98, 1.15)


def check_native(python):
    """Native stacks contain the program's frames and none of the agent's."""
    _, (segment,) = python.run("frames.py", native=True)
    stacks = [site.stack for site in segment.sites if site.domain == PYTHON]
    native = [frame for stack in stacks for frame in stack if frame.kind == NATIVE_FRAME]
    expect(len(native) > 20, f"only {len(native)} native frames in {len(stacks)} stacks")
    expect(any(frame.file.endswith("frames.py") for stack in stacks for frame in stack), "no frame of the program")
    own = [frame for site in segment.sites for frame in site.stack if "libtidemark" in frame.file]
    expect(not own, f"{len(own)} frames of the agent itself")


def check_daemons(python):
    for _ in range(8):
        output, _ = python.run("daemons.py", period=2048)
        expect(output == "ended\n", f"printed {output!r}")


def check_silent(python):
    library = f"{python.inside}/{os.path.basename(python.library)}"
    words = [("LATE", f"{library} - silent"), ("BARRIER", barrier(python))]
    output, segments = python.run("late.py", environment=words)
    expect_barred(output)
    expect(segments[0].state == 3, f"state {segments[0].state}")


def large_blocks(segment):
    """{bytes, a multiple of a million: the innermost Python function that allocated them}."""
    functions = {}
    for live in segment.live:
        if live.bytes >= 300_000_000:
            functions[live.bytes] = ([f.function for f in live.site.stack if f.kind != NATIVE_FRAME] or [None])[0]
    return functions


def check_ends(python):
    """Live memory at the end is what the program held, not what the teardown left of it."""
    _, (segment,) = python.run("ends.py")
    truth = {300_000_000: "held", 409_600_000: "mapped"}
    expect(large_blocks(segment) == truth, f"large blocks {large_blocks(segment)}, not {truth}")
    live, _ = estimate(segment, 7, "ends.py")
    expect_bytes(segment, "small objects", live - 300_000_000, 133, 100_000, 0.98, 1.15)


def check_outlives(python):
    """A process that outlives its interpreter is still recorded, and the teardown's frees are counted."""
    library = None if python.prefix else shared_library(python.command)
    host = os.path.join(python.scratch, "outlives")
    if not library:
        raise Skipped("in the chroot, or without a shared libpython")
    if not compile_program("outlives.c", host):
        raise Skipped("no C compiler")
    command, python.command = python.command, [host, library]
    home = ("PYTHONHOME", home_of(command))
    try:
        # Also an interpreter that was finalized before the agent's first sample, because samples were that rare.
        for environment, period in (((home,), 4096), ((home, ("BRIEF", "1")), 16 << 20)):
            output, (segment,) = python.run("ends.py", environment=environment, period=period)
            expect(output == "fine\n", f"printed {output!r}")
            blocks = large_blocks(segment)
            truth = {310_000_000: None, 320_000_000: "second"}
            expect(blocks == truth, f"large blocks {blocks}, not {truth}")
    finally:
        python.command = command


def check_unloads(python):
    library = None if python.prefix else shared_library(python.command)
    host = os.path.join(python.scratch, "unloads")
    if not library:
        raise Skipped("in the chroot, or without a shared libpython")
    if not compile_program("unloads.c", host):
        raise Skipped("no C compiler")
    command, python.command = python.command, [host, library]
    try:
        output, _ = python.run("ends.py", environment=(("PYTHONHOME", home_of(command)),), period=65536)
    finally:
        python.command = command
    expect(output == "fine\n", f"printed {output!r}")


def check_subinterpreter(python):
    output, (segment,) = python.run("subinterpreter.py")
    found = [l.site.stack for l in segment.live if l.bytes == int(output)]
    expect(len(found) == 1, f"{len(found)} allocations of {output.strip()} bytes")
    expect(found[0] and found[0][0].function == "in_subinterpreter", f"stack {found[0]}")
    live, sites = estimate(segment, 4, found[0][0].file)
    expect_bytes(segment, "small objects", live, 233, 20_000, 0.98, 1.15)
    expect(all(s.domain == PYTHON for s in sites), "not all of them are Python's")


def check_forks(python):
    output, segments = python.run("forks.py")
    by_pid = {segment.pid: segment for segment in segments}
    child = by_pid.pop(int(output), None)
    expect(child and len(by_pid) == 1, f"segments of {[s.pid for s in segments]}, the child is {output.strip()}")
    parent = list(by_pid.values())[0]
    for segment, own, other in ((child, "in_child", "in_parent"), (parent, "in_parent", "in_child")):
        functions = {frame.function for live in segment.live for frame in live.site.stack}
        expect(any(own in f for f in functions), f"{own} is missing in its own segment")
        expect(not any(other in f for f in functions), f"{other} is in the segment of {own}")
        expect(segment.python_state == FULL, f"{own}: python_state {segment.python_state}")


def check_labels(python):
    output, (segment,) = python.run("labels.py", period=1 << 20)
    truth = json.loads(output)
    seen = 0
    for size, labels in truth.items():
        found = [l.site.labels for l in segment.live if l.bytes == int(size)]
        expect(found in ([], [labels]), f"{size} bytes are labelled {found}, not {labels}")
        seen += len(found)
    expect(seen > 0.8 * len(truth), f"{seen} of {len(truth)} seen")
    steps = [(kind, number, labels.get("step")) for kind, number, labels in segment.events() if kind in (1, 2)]
    expect(steps == [(1, 1, "train"), (2, 1, "train"), (1, 2, "train"), (2, 2, "train"), (1, 1, "bare"),
                     (2, 1, "bare"), (1, 2, "bare")], f"steps {steps}")


def home_of(command):
    return subprocess.check_output([*command, "-I", "-c", "import sys; print(sys.base_prefix)"], text=True).strip()


def check_hosted(python):
    """A host loads libpython late and privately."""
    library = None if python.prefix else shared_library(python.command)
    host = os.path.join(python.scratch, "host")
    if not library:
        raise Skipped("in the chroot, or without a shared libpython")
    if not compile_program("host.c", host):
        raise Skipped("no C compiler")
    command, python.command = python.command, [host, library]
    try:
        output, (segment,) = python.run("hosted.py", environment=(("PYTHONHOME", home_of(command)),), period=16384)
    finally:
        python.command = command
    expect(segment.python_state == FULL, f"python_state {segment.python_state}: {segment.log}")
    found = [live.site.stack for live in segment.live if live.bytes == int(output)]
    expect(found and found[0][0].function == "in_hosted", f"stack {found}")
    live, _ = estimate(segment, 15, "hosted.py")
    expect_bytes(segment, "small objects", live - 300_000_034, 133, 100_000, 1, 1.15)


def check_package(python):
    tests = (("test_without_agent.py", False), ("test_with_agent.py", True), ("test_traffic.py", True))
    for test, agent in tests:
        python.run(test, options=("-W", "error"), agent=agent, errors_on="OK")


CHECKS = [
    ("frames equal what CPython sees", check_frames),
    ("a function's blocks that stay beside another's that do not", check_kinds),
    ("who opened each descriptor", check_openings),
    ("small objects: counted once, freed, intact", check_small),
    ("names that were looked up", check_names),
    ("getallocatedblocks() does not drift", check_blocks),
    ("allocator modes and switches", check_modes),
    ("tracemalloc started and stopped meanwhile", check_traced),
    ("native stacks", check_native),
    ("daemon threads at exit", check_daemons),
    ("no system call after the interpreter's end", check_silent),
    ("live at the end is the heap before teardown", check_ends),
    ("a host that outlives its interpreter", check_outlives),
    ("a host that unloads its interpreter", check_unloads),
    ("subinterpreter", check_subinterpreter),
    ("fork", check_forks),
    ("libpython loaded late by a host", check_hosted),
    ("labels and steps of the package", check_labels),
    ("the package's own tests, with and without agent", check_package),
]


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__)
    library, layout = arguments[0], Layout(subprocess.check_output([arguments[1]], text=True))
    failed = tested = 0
    if not arguments[2:] and shutil.which("cc"):
        try:
            check_pretenders(library, layout)
            check_late_pretender(library, layout)
            print("ok - interpreters that cannot be trusted are left alone", flush=True)
        except Failure as failure:
            failed += 1
            print(f"not ok - interpreters that cannot be trusted are left alone\n#   {failure}", flush=True)
    for name, minor, prefix, command, root in interpreters():
        if arguments[2:] and not any(part in name for part in arguments[2:]):
            continue
        tested += 1
        python = Interpreter(name, minor, prefix, command, root, library, layout)
        for what, check in CHECKS:
            try:
                check(python)
            except Skipped as why:
                print(f"ok - Python {name}: {what} # SKIP {why}", flush=True)
            except (Failure, subprocess.TimeoutExpired) as failure:
                failed += 1
                print(f"not ok - Python {name}: {what}\n#   {failure}", flush=True)
            else:
                print(f"ok - Python {name}: {what}", flush=True)
        python.close()
    if not tested:
        print("ok - Python in the agent # SKIP no interpreter of 3.9 to 3.15 found")
    print("ok - Python in the agent: every check was made", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
