"""Convolutions with a new shape each time: oneDNN caches the compiled primitives of the last thousand shapes."""
import os
import random
import time

import torch

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 40))
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.Conv2d(16, 16, 3))
model.eval()


@torch.inference_mode()
def infer(height, width):
    return float(model(torch.randn(1, 3, height, width)).mean())


end = time.monotonic() + SECONDS
while time.monotonic() < end:
    infer(random.randrange(20, 160), random.randrange(20, 160))
    time.sleep(0.01)
