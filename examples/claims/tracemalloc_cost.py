"""Claim: tracemalloc is cheap enough to leave on."""

import json
import subprocess
import sys

from figures import MIB, conclude, mib, show

PROGRAM = """
import json, sys, time, tracemalloc
frames = int(sys.argv[1])
if frames:
    tracemalloc.start(frames)
text = json.dumps([{"id": n, "tags": [str(n), "x" * (n % 50)]} for n in range(5_000)])
def parse(depth):
    return json.loads(text) if depth == 0 else parse(depth - 1)
begun = time.process_time()
kept = [parse(20) for _ in range(30)]
seconds = time.process_time() - begun
own = tracemalloc.get_tracemalloc_memory() if frames else 0
live = tracemalloc.get_traced_memory()[0] if frames else 0
print(json.dumps([seconds, own, live]))
"""


def run(frames):
    output = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(frames)], stdout=subprocess.PIPE, check=True
    ).stdout
    return json.loads(output)


plain, _, _ = min(run(0) for _ in range(3))
one, own_one, live = min(run(1) for _ in range(3))
many, own_many, _ = run(25)
show("a JSON document, parsed 30 times and kept: CPU time", f"{plain:.2f} s")
show("with tracemalloc.start(1): CPU time / plain CPU time", f"{one / plain:.1f}")
show("with tracemalloc.start(25)", f"{many / plain:.1f}")
show("memory of the program that tracemalloc traces", mib(live))
show("memory of tracemalloc itself, 1 frame", mib(own_one))
show("memory of tracemalloc itself, 25 frames", mib(own_many))
conclude(
    own_one > 0.2 * live and own_many >= own_one and live > 10 * MIB,
    "it costs a multiple of the CPU time, and a large part of the traced memory again",
)
