"""A meter adds up losses as tensors: the total keeps the graph of every step."""
import os
import time

import torch

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 36))
torch.set_num_threads(1)


class Meter:
    def __init__(self):
        self.total = 0

    def update(self, loss):
        self.total = self.total + loss


net = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.Tanh(), torch.nn.Linear(128, 64))
optimizer = torch.optim.SGD(net.parameters(), 1e-3)
meter = Meter()


def train_step():
    loss = net(torch.randn(64, 64)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    meter.update(loss)


end = time.monotonic() + SECONDS
while time.monotonic() < end:
    train_step()
    time.sleep(0.02)
