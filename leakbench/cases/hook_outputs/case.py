"""A forward hook records activations for later inspection, and nothing ever removes them."""
import os
import time

import torch

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
torch.set_num_threads(1)
activations = {"first": []}
model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.GELU(), torch.nn.Linear(256, 10))


def remember(module, inputs, output):
    activations["first"].append(output)


model[0].register_forward_hook(remember)


def train_step(optimizer):
    optimizer.zero_grad()
    loss = model(torch.randn(16, 128)).square().mean()
    loss.backward()
    optimizer.step()


optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    train_step(optimizer)
    time.sleep(0.025)
