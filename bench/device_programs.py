"""Programs with device memory of known size, inspected from outside: ``python device_programs.py --out FOLDER``.

For torch, JAX and TensorFlow, each if it is installed and has a device: a program allocates tensors of known size;
`tidemark gpu PID --json` and `tidemark gpu PID -o page.html` are run against it, `tidemark run --gpu` records a training step that runs
out of memory, and torch writes a snapshot. FOLDER receives every document, small snapshots (gzip) and result.json, in which
`expected` are the program's own figures at the same moment. `--tidemark` names the command (default: bin/tidemark).
"""

import argparse
import gzip
import json
import os
import shlex
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))

TORCH = """
import json, sys, torch
torch.cuda.memory._record_memory_history(max_entries=20000, stacks="python")
class Trainer:
    def __init__(self):
        self.weights = torch.zeros(64, 1 << 20, device="cuda")      # 256 MiB
        self.cache = {"keys": torch.zeros(32, 1 << 20, device="cuda", dtype=torch.float16)}   # 64 MiB
trainer = Trainer()
freed = torch.zeros(100, 1 << 20, device="cuda"); del freed
free, total = torch.cuda.mem_get_info()
print(json.dumps({"allocated": torch.cuda.memory_allocated(), "reserved": torch.cuda.memory_reserved(), "free": free,
                  "total": total, "peak": torch.cuda.max_memory_allocated()}), flush=True)
sys.stdin.readline()
torch.cuda.memory._dump_snapshot(sys.argv[1] + "/torch.pickle")
"""
JAX = """
import json, sys, os
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax, jax.numpy as jnp
class Trainer:
    def __init__(self):
        self.parameters = {"embedding": jnp.zeros((8192, 8192), jnp.float32)}   # 256 MiB
trainer = Trainer(); trainer.parameters["embedding"].block_until_ready()
stats = jax.local_devices()[0].memory_stats() or {}
print(json.dumps({key: value for key, value in stats.items() if isinstance(value, int)} | {"platform": jax.default_backend()}), flush=True)
sys.stdin.readline()
"""
TENSORFLOW = """
import json, sys
import tensorflow as tf
for device in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(device, True)
class Trainer:
    def __init__(self):
        self.weights = tf.Variable(tf.zeros((8192, 8192)))   # 256 MiB
trainer = Trainer()
print(json.dumps({d.name: tf.config.experimental.get_memory_info(d.name.split("device:")[1]) for d in tf.config.list_logical_devices("GPU")}), flush=True)
sys.stdin.readline()
"""
#: Runs out of memory after a few steps; each keeps its result.
EXHAUST = """
import torch
kept = []
def step(model, batch):
    loss = model(batch).square().mean()
    loss.backward()
    kept.append(torch.zeros(1 << 30, device="cuda", dtype=torch.uint8))
model = torch.nn.Linear(4096, 4096, device="cuda")
batch = torch.randn(1024, 4096, device="cuda")
import time
try:
    while True:
        step(model, batch); time.sleep(0.02)
except torch.cuda.OutOfMemoryError as error:
    print(str(error).splitlines()[0])
"""


def command_of(command, *words):
    ran = subprocess.run([*command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=90)
    return {"status": ran.returncode, "stdout": ran.stdout[-60000:], "stderr": ran.stderr[-4000:]}


def inspect(source, folder, name, tidemark):
    program = subprocess.Popen(
        [sys.executable, "-c", source, folder],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True,
    )
    try:
        said = program.stdout.readline()
        if not said:
            return {"unavailable": program.stderr.read()[-600:]}
        found = {"expected": json.loads(said)}
        found["gpu"] = command_of(tidemark, "gpu", str(program.pid), "--json")
        found["screen"] = command_of(tidemark, "gpu", str(program.pid))
        if name == "torch":
            found["page"] = command_of(tidemark, "gpu", str(program.pid), "-o", os.path.join(folder, "torch.html"))
            found["top"] = command_of(tidemark, "gpu", "top", "--json")
        if name == "jax":
            found["profile"] = command_of(tidemark, "gpu", str(program.pid), "-o", os.path.join(folder, "jax.pb.gz"))
        program.stdin.write("\n")
        program.stdin.flush()
        program.wait(30)
        found["ended"] = program.returncode
        return found
    finally:
        program.kill()
        program.wait()


def exhaust(folder, tidemark):
    """A recording that ends with an out-of-memory error, with the snapshot that it wrote."""
    path = os.path.join(folder, "exhaust.py")
    with open(path, "w") as file:
        file.write(EXHAUST)
    recording = os.path.join(folder, "exhaust.tidemark")
    ran = command_of(tidemark, "run", "--gpu", "--quiet", "-f", "-o", recording, "--", sys.executable, path)
    shown = command_of(tidemark, "diagnose", recording)
    lines = command_of(tidemark, "lines", recording)
    return {"run": ran, "diagnose": shown, "lines": lines, "files": sorted(os.listdir(folder))}


def pack(folder):
    """Only what fits a repository: snapshots as gzip, the largest left out."""
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.endswith(".pickle"):
            with open(path, "rb") as file, gzip.open(path + ".gz", "wb") as packed:
                shutil.copyfileobj(file, packed)
            os.unlink(path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--tidemark", default=os.path.join(HERE, "../bin/tidemark"), help="a command line")
    options = parser.parse_args()
    tidemark = shlex.split(options.tidemark)
    os.makedirs(options.out, exist_ok=True)
    result = {"version": command_of(tidemark, "--version")}
    programs = [
        ("torch", lambda: inspect(TORCH, options.out, "torch", tidemark)),
        ("jax", lambda: inspect(JAX, options.out, "jax", tidemark)),
        ("tensorflow", lambda: inspect(TENSORFLOW, options.out, "tensorflow", tidemark)),
        ("exhaust", lambda: exhaust(options.out, tidemark)),
    ]
    for name, work in programs:
        try:
            result[name] = work()
        except Exception as error:
            result[name] = {"failed": repr(error)}
        with open(os.path.join(options.out, "result.json"), "w") as file:
            json.dump(result, file, indent=1)
    pack(options.out)


if __name__ == "__main__":
    main()
