"""Programs for measuring the recorder: `recorded_program.py KIND SECONDS STATE [OBJECTS]`.

    idle        a service that waits: one small request a second
    busy        requests from the first moment to the last, on one core; nothing is kept
    ten         a parent that forks ten workers, each of which serves ten requests a second
    growing     20 requests a second, each of which is kept, in addition to OBJECTS objects created at the start
    dataloader  torch's DataLoader with two workers, epoch after epoch

STATE is a file: a line `PID` at the start, and `ended MS` (CLOCK_MONOTONIC) as the last act.
"""

import json
import os
import sys
import time

KIND, SECONDS, STATE = sys.argv[1], float(sys.argv[2]), sys.argv[3]
OBJECTS = int(sys.argv[4]) if len(sys.argv) > 4 else 0
END = time.monotonic() + SECONDS
kept = []


def tell(line):
    with open(STATE, "a") as state:
        state.write(line + "\n")


def answer(number):
    document = json.dumps({"request": number, "values": list(range(300))})
    return json.loads(document)


def keep(number):
    kept.append({"request": f"request {number}", "answer": answer(number)})


def serve(pause, handle):
    number = 0
    while time.monotonic() < END:
        handle(number)
        number += 1
        if pause:
            time.sleep(max(0.0, min(pause, END - time.monotonic())))


def fork_workers():
    workers = []
    for _ in range(10):
        pid = os.fork()
        if pid == 0:
            serve(0.1, answer)
            os._exit(0)
        workers.append(pid)
    for pid in workers:
        os.waitpid(pid, 0)


def fill():
    """A record is four objects: a dict, a str, an int and a float."""
    return [{"name": f"record {n}", "id": n + 1000, "score": n / 3} for n in range(OBJECTS // 4)]


def load_batches():
    import torch
    from torch.utils.data import DataLoader, Dataset

    torch.set_num_threads(1)

    class Windows(Dataset):
        values = torch.arange(200_000, dtype=torch.float32)

        def __len__(self):
            return 20_000

        def __getitem__(self, index):
            time.sleep(0.002)
            return self.values[index : index + 256].clone()

    while time.monotonic() < END:
        for batch in DataLoader(Windows(), batch_size=64, num_workers=2):
            batch.mean().item()
            if time.monotonic() >= END:
                break


tell(str(os.getpid()))
records = fill()
if KIND == "idle":
    serve(1.0, answer)
elif KIND == "busy":
    serve(0, answer)
elif KIND == "ten":
    fork_workers()
elif KIND == "growing":
    serve(0.05, keep)
elif KIND == "dataloader":
    load_batches()
else:
    sys.exit(f"no kind {KIND}")
tell(f"ended {time.clock_gettime(time.CLOCK_MONOTONIC) * 1000:.0f}")
os._exit(0)
