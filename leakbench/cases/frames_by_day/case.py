"""Pandas frames are kept by the second in which they were created, instead of by day."""
import os
import time

import numpy as np
import pandas as pd

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 34))


class Store:
    def __init__(self):
        self.frames = {}

    def ingest(self, rows):
        frame = pd.DataFrame({"price": np.random.rand(rows), "volume": np.arange(rows)})
        frame["mean"] = frame["price"].rolling(20).mean()
        self.frames[time.time()] = frame
        return frame["mean"].iloc[-1]


store = Store()
end = time.monotonic() + SECONDS
while time.monotonic() < end:
    store.ingest(3000)
    time.sleep(0.12)
