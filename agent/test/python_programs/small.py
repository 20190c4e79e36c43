"""Keeps a known number of small objects, frees some, and checks what they hold.

Prints a JSON object: name -> [line, bytes per object, live objects].
"""

import json
import os
import sys

COUNT = 300_000
truth = {}


def here():
    return sys._getframe(1).f_lineno


class Slotted:
    __slots__ = ("a", "b", "c")


header = sys.getsizeof(b"")
# A new name may make the module's dict grow, and the larger table stays live.
gone = None
line = here() + 1
objects = [object() for _ in range(COUNT)]
truth["object"] = [line, object().__sizeof__(), COUNT]
line = here() + 1
texts = [b"%0100d" % i for i in range(COUNT)]
truth["bytes"] = [line, header + 100, COUNT]
line = here() + 1
halved = [b"%0200d" % i for i in range(COUNT)]
del halved[::2]
truth["halved"] = [line, header + 200, len(halved)]
line = here() + 1
gone = [b"%050d" % i for i in range(COUNT)]
del gone
truth["gone"] = [line, header + 50, 0]

# Reallocation from small to small, to large, and back; the contents must be preserved.
grown = []
for i in range(20_000):
    text = bytearray()
    for size in (3, 30, 90, 300, 700, 2000):
        text.extend(bytes([i % 251]) * (size - len(text)))
    del text[60:]
    assert text == bytes([i % 251]) * 60
    grown.append(text)
for i, text in enumerate(grown):
    assert text == bytes([i % 251]) * 60
for i, text in enumerate(texts):
    assert int(text) == i
json.dump(truth, sys.stdout)
sys.stdout.flush()
os._exit(0)
