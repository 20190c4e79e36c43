"""Traces a training step with torch.profiler into the folder of its argument."""

import sys
import warnings

import torch
from torch.profiler import ProfilerActivity, profile

warnings.simplefilter("ignore")
folder = sys.argv[1]
model = torch.nn.Linear(64, 128)
inputs = torch.randn(32, 64)
options = {"profile_memory": True, "record_shapes": True, "with_stack": True}
with profile(activities=[ProfilerActivity.CPU], **options) as profiler:
    held = []
    for _ in range(4):
        held.append(torch.zeros(256, 256))
    model(inputs).square().sum().backward()
profiler.export_chrome_trace(f"{folder}/trace.json")
profiler.export_memory_timeline(f"{folder}/timeline.json", device="cpu")
profiler.export_memory_timeline(f"{folder}/timeline.raw.json.gz", device="cpu")
