"""DataLoader workers read a list of Python objects: the pages become private to each worker."""
import os
import time

import torch
from torch.utils.data import DataLoader, Dataset

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 40))


class Samples(Dataset):
    def __init__(self):
        self.rows = [(f"row {i} " * 3, i) for i in range(500_000)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        text, label = self.rows[index]
        return len(text), label


def main():
    torch.set_num_threads(1)
    end = time.monotonic() + SECONDS
    loader = DataLoader(Samples(), batch_size=500, num_workers=2, multiprocessing_context="fork")
    while time.monotonic() < end:
        for batch in loader:
            time.sleep(0.04)
            if time.monotonic() > end:
                break


if __name__ == "__main__":
    main()
