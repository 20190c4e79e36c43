"""A program that knows what it allocated: many functions, each keeps some blocks and drops others.
Prints {function: {"liveBytes", "liveObjects", "allocatedBytes"}} as JSON; leaves without freeing, so that
what it kept is live at its end. `known_sites.py SITES SEED`.

A bytes object asks its allocator for exactly sys.getsizeof() bytes, so the truth is exact: small ones
go to pymalloc, large ones to malloc."""

import json
import os
import random
import sys

sites, seed = int(sys.argv[1]), int(sys.argv[2])
random.seed(seed)
truth: dict[str, dict[str, int]] = {}
kept: list[bytes] = []

TEMPLATE = """
def {name}(count, sizes, keep_every):
    live = objects = allocated = 0
    for n in range(count):
        block = bytes(sizes[n % len(sizes)])
        size = getsizeof(block)
        allocated += size
        if n % keep_every == 0:
            kept.append(block)
            live += size
            objects += 1
    return live, objects, allocated
"""

for number in range(sites):
    name = f"site_{number:04d}"
    namespace = {"kept": kept, "getsizeof": sys.getsizeof}
    exec(compile(TEMPLATE.format(name=name), f"{name}.py", "exec"), namespace)
    scale = random.choice([40, 200, 900, 4_000, 60_000])
    sizes = [random.randrange(1, 2 * scale) for _ in range(50)]
    count = max(4, int(random.lognormvariate(14.5, 1.2) / scale))
    live, objects, allocated = namespace[name](count, sizes, random.choice([1, 1, 2, 10]))
    truth[name] = {"liveBytes": live, "liveObjects": objects, "allocatedBytes": allocated}

print(json.dumps(truth))
sys.stdout.flush()
os._exit(0)
