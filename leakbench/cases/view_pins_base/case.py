"""The thumbnail kept for each picture is a view, so it keeps the whole picture alive."""
import os
import time

import numpy as np

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))


class Gallery:
    def __init__(self):
        self.thumbnails = {}

    def add(self, name):
        picture = np.random.default_rng(3).integers(0, 255, (300, 400), dtype=np.uint8)
        self.thumbnails[name] = picture[::50, ::50]
        return picture.mean()


gallery = Gallery()
end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    gallery.add(f"picture-{number}")
    number += 1
    time.sleep(0.1)
