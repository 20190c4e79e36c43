#!/usr/bin/env python3
"""Writes the offset tables of this folder from the headers of the interpreters present.

    generate.py            write python_3_<minor>.h for every set of headers found
    generate.py --check    write nothing; fail when a table differs from its headers

Headers are those of the interpreters on PATH, in /usr/bin, under pyenv, and of the
Debian chroot that the tests use. One table serves a whole minor version, so every
set of headers of a minor version must give the same table; the check proves it for
those present, and the agent's self-checks refuse an interpreter where it is not so.
"""

import glob
import os
import re
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
SUPPORTED = range(9, 16)


def include_folders():
    """Yields each folder that holds the private headers of a GIL build of CPython."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    pyenv = os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv")
    prefixes = ["/usr", "/usr/local", *glob.glob(os.path.join(cache, "tidemark", "forky-*", "usr"))]
    prefixes += sorted(glob.glob(os.path.join(pyenv, "versions", "*")))
    prefixes += [os.path.dirname(folder) for folder in os.environ.get("PATH", "").split(":") if folder]
    seen = set()
    for prefix in prefixes:
        for folder in sorted(glob.glob(os.path.join(prefix, "include", "python3.*"))):
            folder = os.path.realpath(folder)
            minor = re.fullmatch(r"python3\.(\d+)", os.path.basename(folder))
            if not minor or int(minor.group(1)) not in SUPPORTED or folder in seen:
                continue
            if os.path.exists(os.path.join(folder, "internal", "pycore_runtime.h")):
                seen.add(folder)
                yield int(minor.group(1)), folder


def table(include):
    """The text of the generated header for one folder of headers."""
    with tempfile.TemporaryDirectory() as scratch:
        program = os.path.join(scratch, "probe")
        # Debian keeps pyconfig.h in a folder of the machine's own, beside the headers.
        beside = os.path.dirname(include)
        command = ["cc", "-std=gnu11", "-w", "-DPy_BUILD_CORE", "-I", include,
                   "-I", os.path.join(include, "internal"), "-idirafter", beside,
                   os.path.join(FOLDER, "probe.c"), "-o", program]
        subprocess.run(command, check=True)
        return subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout


def offsets(text):
    """A table without its first line, which names the exact version it was made from."""
    return text.split("\n", 1)[1]


def main(arguments):
    check = arguments == ["--check"]
    if arguments and not check:
        sys.exit(__doc__)
    tables = {}
    failed = False
    for minor, include in include_folders():
        text = table(include)
        if minor in tables and offsets(tables[minor]) != offsets(text):
            print(f"not ok - {include}: another table than the other headers of 3.{minor}")
            failed = True
        tables.setdefault(minor, text)
    for minor, text in sorted(tables.items()):
        path = os.path.join(FOLDER, f"python_3_{minor}.h")
        if not check:
            with open(path, "w", encoding="ascii") as out:
                out.write(text)
            print(f"wrote {os.path.basename(path)}")
            continue
        committed = open(path, encoding="ascii").read() if os.path.exists(path) else "\n"
        same = offsets(committed) == offsets(text)
        failed = failed or not same
        print(f"{'ok' if same else 'not ok'} - layout table of 3.{minor} agrees with its headers")
    if not tables:
        print("ok - layout tables # SKIP no interpreter headers found")
    if failed and check:
        print(f"# to write the tables again: python3 {os.path.relpath(__file__)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
