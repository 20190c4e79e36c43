"""Each reload loads another copy of the model, and the registry keeps the old ones by version."""
import copy
import os
import time

import torch

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 34))
torch.set_num_threads(1)
registry = {}


def load_model():
    layers = [torch.nn.Linear(256, 256) for _ in range(6)]
    return torch.nn.Sequential(*layers).eval()


def reload(version, template):
    model = copy.deepcopy(template)
    registry[version] = model
    return model


template = load_model()
end = time.monotonic() + SECONDS
version = 0
while time.monotonic() < end:
    model = reload(version, template)
    with torch.inference_mode():
        for _ in range(20):
            model(torch.randn(4, 256))
    version += 1
    time.sleep(0.6)
