"""Programs with device memory of known size, inspected from outside: ``python device_programs.py --out FOLDER``.

For torch, JAX and TensorFlow, each if it is installed and has a device: a program allocates tensors of known size;
`tidemark gpu PID --json` and `tidemark gpu PID -o page.html` are run against it, `tidemark run --gpu` records a training step that runs
out of memory, and torch writes a snapshot. FOLDER receives every document, small snapshots (gzip) and result.json, in which
`expected` are the program's own figures at the same moment. `--tidemark` names the command (default: bin/tidemark).

Further programs of torch, by name after `--only`: `live` trains with and without `run --gpu`, and notes its own figures
every second; `threshold` exceeds a share of the device; `ranks` are two, one of which runs out of memory; `left` has been
attached to with `--gpu` and was left again; `watch` is recorded by the collector beside another one.
"""

import argparse
import gzip
import json
import os
import shlex
import shutil
import subprocess
import sys
import time

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

#: Trains for argv[1] seconds; writes its steps and, every second, its allocator's figures to argv[2].
TRAIN = """
import json, sys, time, torch
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(12)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
batch = torch.randn(4096, 2048, device="cuda")
def step():
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()
for _ in range(20):
    step()
torch.cuda.synchronize()
began = noted = time.time()
steps, notes = 0, []
while time.time() - began < float(sys.argv[1]):
    step(); steps += 1
    torch.cuda.synchronize()
    if time.time() - noted >= 1:
        noted = time.time()
        notes.append([noted * 1000, torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), torch.cuda.max_memory_allocated()])
json.dump({"steps": steps, "seconds": time.time() - began, "notes": notes}, open(sys.argv[2], "w"))
"""
#: Each second 512 MiB more, to 8 GiB.
FILL = """
import time, torch
kept = []
def fill():
    kept.append(torch.zeros(1 << 29, device="cuda", dtype=torch.uint8))
for _ in range(16):
    fill(); time.sleep(0.5)
time.sleep(2)
"""
#: Rank 0 runs out of the 2 % that it may use.
RANKS = """
import os, time, torch, torch.distributed
torch.distributed.init_process_group("gloo")
rank = torch.distributed.get_rank()
kept = [torch.zeros(64 << 20, device="cuda", dtype=torch.uint8) for _ in range(4 + rank)]
time.sleep(4)
torch.cuda.set_per_process_memory_fraction(0.02)
def exhaust():
    while True:
        kept.append(torch.zeros(128 << 20, device="cuda", dtype=torch.uint8)); time.sleep(0.05)
if rank == 0:
    try:
        exhaust()
    except torch.cuda.OutOfMemoryError:
        print("rank 0 is out of memory", flush=True)
time.sleep(8)
torch.distributed.destroy_process_group()
"""
#: Holds argv[1] MiB; allocates all the time, and writes to argv[2] how many operations torch's history has.
HOLD = """
import json, sys, time, torch
held = torch.zeros(int(sys.argv[1]) << 20, device="cuda", dtype=torch.uint8)
notes = []
while True:
    torch.zeros(1 << 20, device="cuda", dtype=torch.uint8)
    traces = torch.cuda.memory._snapshot()["device_traces"]
    notes.append([time.time() * 1000, sum(len(trace) for trace in traces), torch.cuda.memory_reserved()])
    json.dump(notes, open(sys.argv[2], "w"))
    time.sleep(0.25)
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


def program_in(folder, name, source):
    path = os.path.join(folder, name + ".py")
    with open(path, "w") as file:
        file.write(source)
    return path


def written(path):
    with open(path) as file:
        return json.load(file)


def live(folder, tidemark):
    """Three trainings without and three under `run --gpu`, in turns."""
    program = program_in(folder, "train", TRAIN)
    notes = os.path.join(folder, "train.json")
    rounds = []
    for number in range(3):
        command_of([sys.executable], program, "6", notes)
        alone = written(notes)
        recording = os.path.join(folder, "live.tidemark")
        ran = command_of(tidemark, "run", "--gpu", "--quiet", "-f", "-o", recording, "--", sys.executable, program, "6", notes)
        rounds.append({"alone": alone, "recorded": written(notes), "status": ran["status"], "stderr": ran["stderr"]})
    return rounds


def threshold(folder, tidemark):
    """A snapshot at 5 % of the device."""
    program = program_in(folder, "fill", FILL)
    recording = os.path.join(folder, "fill.tidemark")
    ran = command_of(tidemark, "run", "--gpu", "--gpu-dump-at", "5%", "-f", "-o", recording, "--", sys.executable, program)
    return {"run": ran, "snapshots": snapshots(folder, tidemark)}


def ranks(folder, tidemark):
    """Rank 0 runs out of memory; each rank writes a snapshot."""
    program = program_in(folder, "ranks", RANKS)
    recording = os.path.join(folder, "ranks.tidemark")
    launched = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", program]
    ran = command_of(tidemark, "run", "--gpu", "-f", "-o", recording, "--", *launched)
    return {"run": ran, "snapshots": snapshots(folder, tidemark)}


def snapshots(folder, tidemark):
    """What `tidemark gpu` reports about each snapshot of the folder; they are removed."""
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith(".pickle"):
            path = os.path.join(folder, name)
            found[name] = {"bytes": os.path.getsize(path), "screen": command_of(tidemark, "gpu", path)}
            os.unlink(path)
    return found


def left(folder, tidemark):
    """Whether torch's history is off again after `attach --gpu` has ended."""
    notes = os.path.join(folder, "left.json")
    program = subprocess.Popen([sys.executable, "-c", HOLD, "64", notes])
    try:
        waited_for(notes)
        began = time.time() * 1000
        recording = os.path.join(folder, "left.tidemark")
        ran = command_of(tidemark, "attach", str(program.pid), "--gpu", "--for", "6s", "-f", "-o", recording)
        ended = time.time() * 1000
        time.sleep(2)
        return {"attach": ran, "began": began, "ended": ended, "notes": written(notes)}
    finally:
        program.kill()
        program.wait()


def watch(folder, tidemark):
    """The collector beside two programs that hold device memory, and what nvidia-smi lists meanwhile."""
    kept = os.path.join(folder, "watched")
    notes = [os.path.join(folder, "held-%d.json" % number) for number in range(2)]
    programs = [
        subprocess.Popen([sys.executable, "-c", HOLD, str(1000 * (number + 1)), path]) for number, path in enumerate(notes)
    ]
    try:
        for path in notes:
            waited_for(path)
        with open(os.path.join(folder, "watch.txt"), "w") as said:
            collector = subprocess.Popen([*tidemark, "watch", "--folder", kept], stdout=said, stderr=said)
            programs.append(collector)
            time.sleep(42)
            query = ["nvidia-smi", "--query-compute-apps=pid,used_gpu_memory", "--format=csv,noheader"]
            listed = command_of(query) if shutil.which("nvidia-smi") else None
            collector.send_signal(2)
            collector.wait(30)
        with open(os.path.join(folder, "watch.txt")) as said:
            text = said.read()
        for name in os.listdir(kept):
            if any("-%d-" % program.pid in name for program in programs) and name.endswith(".tidemark"):
                shutil.copy(os.path.join(kept, name), os.path.join(folder, "watched-" + name))
        shutil.rmtree(kept)
        return {"pids": [program.pid for program in programs[:2]], "listed": listed, "said": text, "status": collector.returncode}
    finally:
        for program in programs[::-1]:
            program.terminate()
            program.wait()


def waited_for(path):
    until = time.time() + 60
    while not os.path.exists(path) and time.time() < until:
        time.sleep(0.1)
    time.sleep(1)


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
    parser.add_argument("--only", default="torch,jax,tensorflow,exhaust", help="names of programs, comma-separated")
    options = parser.parse_args()
    tidemark = shlex.split(options.tidemark)
    os.makedirs(options.out, exist_ok=True)
    result = {"version": command_of(tidemark, "--version")}
    programs = {
        "torch": lambda: inspect(TORCH, options.out, "torch", tidemark),
        "jax": lambda: inspect(JAX, options.out, "jax", tidemark),
        "tensorflow": lambda: inspect(TENSORFLOW, options.out, "tensorflow", tidemark),
        "exhaust": lambda: exhaust(options.out, tidemark),
        **{one.__name__: (lambda one=one: one(options.out, tidemark)) for one in (live, threshold, ranks, left, watch)},
    }
    for name in options.only.split(","):
        try:
            result[name] = programs[name]()
        except Exception as error:
            result[name] = {"failed": repr(error)}
        with open(os.path.join(options.out, "result.json"), "w") as file:
            json.dump(result, file, indent=1)
    pack(options.out)


if __name__ == "__main__":
    main()
