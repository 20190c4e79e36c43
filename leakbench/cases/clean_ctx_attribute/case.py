"""A custom function keeps its own output on ctx: a cycle, which the collector finds and frees."""
import gc
import os
import time

import torch

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
torch.set_num_threads(1)


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.result = x * factor
        return ctx.result

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.result.mean(), None


weight = torch.ones(20_000, requires_grad=True)


def step():
    result = Scale.apply(weight, 1.5)
    return float(result.sum())


gc.collect()
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    step()
    time.sleep(0.05)
