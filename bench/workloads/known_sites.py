"""A program that knows what it allocated: many functions, each of which keeps some blocks and drops others.
Prints {function: {"liveBytes", "liveObjects", "allocatedBytes"}} as JSON; exits without freeing, so that
what it kept is live at its end. `known_sites.py SITES SEED`.

A bytes object requests exactly sys.getsizeof() bytes from its allocator, so the truth is exact: small
objects go to pymalloc, large ones to malloc."""

import json
import os
import random
import sys

sites, seed = int(sys.argv[1]), int(sys.argv[2])
random.seed(seed)
truth: dict[str, dict[str, int]] = {}
kept: list = []

# The loop allocates only its blocks: the numbers already exist, and `kept` already has its capacity.
TEMPLATE = """
def {name}(plan):
    for position, size in plan:
        block = bytes(size)
        if position >= 0:
            kept[position] = block
"""

OVERHEAD = sys.getsizeof(b"")
plans = {}
for number in range(sites):
    scale = random.choice([40, 200, 900, 4_000, 60_000])
    keep_every = random.choice([1, 1, 2, 10])
    plan = []
    for n in range(max(4, int(random.lognormvariate(14.5, 1.2) / scale))):
        position = -1
        if n % keep_every == 0:
            position = len(kept)
            kept.append(None)
        plan.append((position, random.randrange(1, 2 * scale)))
    plans[f"site_{number:04d}"] = plan

for name, plan in plans.items():
    namespace = {"kept": kept}
    exec(compile(TEMPLATE.format(name=name), f"{name}.py", "exec"), namespace)
    namespace[name](plan)
    live = [size + OVERHEAD for position, size in plan if position >= 0]
    allocated = sum(size + OVERHEAD for _, size in plan)
    truth[name] = {"liveBytes": sum(live), "liveObjects": len(live), "allocatedBytes": allocated}

print(json.dumps(truth))
sys.stdout.flush()
os._exit(0)
