"""A small network trained on the CPU, with a cache that keeps every batch's activations."""
import os
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

from truth import Truth

truth = Truth()
activations = []
# How long workers stay after their work, so that their memory can be read from outside, even on a busy machine.
SEEN_SECONDS = 3


class Samples(Dataset):
    def __len__(self):
        return 1024

    def __getitem__(self, index):
        return self.make(index), index % 10

    def make(self, index):
        # Each worker keeps what it created: a separate leak in each process.
        if not hasattr(self, "made"):
            self.made = []
        self.made.append(bytearray(256 * 1024))  # known: worker cache
        return torch.full((256,), float(index))


def remember(tensor):
    activations.append(tensor.detach().clone())  # known: activations


def train(workers):
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 16384), torch.nn.ReLU(), torch.nn.Linear(16384, 10)
    )
    optimizer = torch.optim.Adam(model.parameters())
    loader = DataLoader(
        Samples(), batch_size=64, num_workers=workers, persistent_workers=workers > 0
    )
    for inputs, targets in loader:
        hidden = model[0](inputs)
        remember(hidden)
        loss = torch.nn.functional.cross_entropy(model[2](model[1](hidden)), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if workers > 0:
        time.sleep(SEEN_SECONDS)
    truth.site("activations", remember, sum(t.numel() * t.element_size() for t in activations))
    truth.site("worker cache", Samples.make, 1024 * sys.getsizeof(bytearray(256 * 1024)))
    return loss.item()


def main():
    torch.manual_seed(1)
    torch.set_num_threads(2)
    workers = int(sys.argv[1])
    loss = train(workers)
    assert loss == loss, "the loss is not a number"
    truth.report()
    os._exit(0)


main()
