"""A Rust hash map: the strings that a pydantic-core validator keeps, each in a malloc block."""

import json
import os
import re

from pydantic_core import SchemaValidator, core_schema

COUNT = 3000  # so small that its table is not a large buffer, of which copies contain only the start
names = [f"needle-{number:06d}-{'x' * 60}" for number in range(COUNT)]
KEPT = SchemaValidator(core_schema.literal_schema(names))
del names
# Rust stores no header with a string, so a string starts where its block starts. Python's strings start inside their
# blocks; some of them were temporary and are free.
places = []
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
    for line in maps:
        span, mode, _, _, _, *path = line.split()
        if mode.startswith("rw") and path in ([], ["[heap]"]):
            start, end = (int(part, 16) for part in span.split("-"))
            memory.seek(start)
            content = memory.read(end - start)
            for found in re.finditer(rb"needle-\d{6}-x{60}", content):
                if (start + found.start()) % 16 == 0:
                    places.append(hex(start + found.start()))
            del content
print(json.dumps({"kept": hex(id(KEPT)), "count": COUNT, "texts": places}), flush=True)
os.read(0, 1)
