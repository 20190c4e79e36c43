"""Correct training: the loss is kept as a number."""
import os
import time

import torch

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 36))
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(128, 256), torch.nn.ReLU(), torch.nn.Linear(256, 4))
optimizer = torch.optim.Adam(model.parameters())
losses = []


def step():
    optimizer.zero_grad()
    loss = model(torch.randn(64, 128)).square().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())


end = time.monotonic() + SECONDS
while time.monotonic() < end:
    step()
    time.sleep(0.01)
