"""Batches created by two worker processes."""

import torch
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)


class Windows(Dataset):
    def __init__(self):
        self.values = [float(n % 1000) for n in range(200_000)]

    def __len__(self):
        return 4_000

    def __getitem__(self, index):
        return torch.tensor(self.values[index * 40 : index * 40 + 256])


if __name__ == "__main__":
    total = 0.0
    for _ in range(2):
        for batch in DataLoader(Windows(), batch_size=64, num_workers=2):
            total += batch.mean().item()
    print(round(total))
