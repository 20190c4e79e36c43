"""Allocates in a subinterpreter, in a function with a unique name."""

import os
import sys

CODE = """
kept = []
def in_subinterpreter():
    kept.append([bytes(200) for _ in range(20000)])
    kept.append(bytes(300_000_001))
in_subinterpreter()
"""

try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters

identifier = interpreters.create()
getattr(interpreters, "run_string", None)(identifier, CODE)
print(sys.getsizeof(b"") + 300_000_001)
sys.stdout.flush()
os._exit(0)
