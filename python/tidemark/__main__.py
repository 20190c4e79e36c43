"""``python -m tidemark``: starts the program that this package was installed with."""

import sys

try:
    from tidemark_profiler.__main__ import main
except ImportError:
    sys.stderr.write(
        "tidemark: TM-E012 only Tidemark's labels are installed in this Python, not its program; "
        "pip install tidemark-profiler, or in a clone start bin/tidemark\n"
    )
    sys.exit(4)

main()
