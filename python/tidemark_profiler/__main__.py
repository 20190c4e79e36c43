"""``python -m tidemark_profiler``, ``python -m tidemark``: replaces the interpreter by the program."""

import os
import signal
import sys
from typing import Dict, NoReturn

from . import FOLDER

#: What CPython ignores from its start on (Python/pylifecycle.c); exec would hand that on.
_IGNORED_BY_PYTHON = ("SIGPIPE", "SIGXFSZ")


def _environment() -> Dict[bytes, bytes]:
    """The environment without what this interpreter added: LC_CTYPE, where the locale is C (PEP 538)."""
    environment = dict(os.environb)
    try:
        with open("/proc/self/environ", "rb") as given:
            names = {pair.split(b"=", 1)[0] for pair in given.read().split(b"\0")}
    except OSError:
        return environment
    if b"LC_CTYPE" not in names:
        environment.pop(b"LC_CTYPE", None)
    return environment


def main() -> NoReturn:
    """Becomes the program: pid, descriptors and exit code are this process's."""
    for name in _IGNORED_BY_PYTHON:
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    # By the shell: an archive may have lost the script's permission to be executed.
    launcher = os.path.join(FOLDER, "bin", "tidemark")
    os.execve("/bin/sh", ["/bin/sh", launcher, *sys.argv[1:]], _environment())


if __name__ == "__main__":
    main()
