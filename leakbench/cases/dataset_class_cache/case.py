"""A data set that caches each decoded item in a class attribute; augmentation makes every item unique."""
import os
import random
import time

import numpy as np

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))


class Pictures:
    cache = {}

    def __len__(self):
        return 10**9

    def __getitem__(self, index):
        key = (index, random.random())
        if key not in self.cache:
            self.cache[key] = self.decode(index)
        return self.cache[key]

    def decode(self, index):
        return np.full((64, 64, 3), index % 255, dtype=np.float32)


pictures = Pictures()
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    batch = np.stack([pictures[random.randrange(len(pictures))] for _ in range(4)])
    batch.mean()
    time.sleep(0.15)
