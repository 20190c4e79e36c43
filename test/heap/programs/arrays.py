"""Holds NumPy arrays, views and memory maps, and several kinds of pandas frames; prints what they are."""

import json
import os
import sys
import tempfile

import numpy
import pandas

OWN = numpy.ones(1 << 20)  # 8 MiB
VIEWS = [OWN[n : n + 100] for n in range(50)]
LARGE = {"floats": numpy.zeros((512, 1024)), "objects": numpy.array([f"text {n}" for n in range(5000)], dtype=object)}
LARGE["floats"][:] = 1.0
with tempfile.NamedTemporaryFile() as file:
    file.truncate(4 << 20)
    MAPPED = numpy.memmap(file.name, dtype="u1", mode="r+")
    MAPPED[:] = 7
FRAME = pandas.DataFrame({"n": numpy.arange(300_000), "x": numpy.random.rand(300_000), "name": [f"user {n}" for n in range(300_000)]})
del OWN
import gc

gc.collect()
print(
    json.dumps(
        {
            "base": hex(id(VIEWS[0].base)),
            "floats": hex(id(LARGE["floats"])),
            "objects": hex(id(LARGE["objects"])),
            "mapped": hex(id(MAPPED)),
            "frame": hex(id(FRAME)),
            "frameBytes": int(FRAME.memory_usage(deep=True, index=True).sum()),
            "objectBytes": sys.getsizeof(LARGE["objects"]) + sum(map(sys.getsizeof, LARGE["objects"])),
        }
    ),
    flush=True,
)
os.read(0, 1)
