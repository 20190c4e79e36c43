"""What the scripts beside it share: the memory of this process, how figures print, and the last line."""

import gc
import os
import sys

MIB = 1024 * 1024


def smaps(name):
    """A figure of /proc/self/smaps_rollup in bytes: Rss, Pss, Private_Dirty..."""
    with open("/proc/self/smaps_rollup") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name + ":"))


def rss():
    return smaps("Rss")


def mib(number):
    return f"{number / MIB:,.1f} MiB"


def show(label, value):
    print(f"{label:<66} {value:>10}")


def conclude(holds, finding):
    """The last line; the exit code is 0 if the figures of this run show what docs/claims.md says."""
    print(("Shown: " if holds else "NOT SHOWN by this run: ") + finding)
    sys.exit(0 if holds else 1)


def need(module):
    """The module, or the end of the script with exit code 77: a package is not installed."""
    try:
        return __import__(module)
    except ImportError:
        print(f"skipped: this claim needs the package {module}")
        sys.exit(77)


def in_child(task, *arguments):
    """Runs a function in a forked child; returns the integer that it returned."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, str(task(*arguments)).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        number = int(answer.read())
    os.waitpid(pid, 0)
    return number


gc.collect()  # what the imports left behind is in no figure
