"""A gradient penalty with create_graph=True whose parameter gradients are never set to None."""
import os
import time

import torch

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 34))
torch.set_num_threads(1)


class Critic(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(32, 64)
        self.second = torch.nn.Linear(64, 1)

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


def train_step(critic):
    x = torch.randn(16, 32)
    loss = critic(x).pow(2).mean()
    loss.backward(create_graph=True)


critic = Critic()
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    train_step(critic)
    time.sleep(0.03)
