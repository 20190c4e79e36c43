"""A model is loaded in pieces during the first third, then only used."""
import os
import time

import numpy as np

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 36))


class Model:
    def __init__(self):
        self.layers = []

    def load(self, layer):
        self.layers.append(np.random.default_rng(layer).standard_normal((700, 700)))

    def predict(self, vector):
        for layer in self.layers:
            vector = np.tanh(layer @ vector / 27)
        return float(vector.sum())


model = Model()
end = time.monotonic() + SECONDS
for layer in range(12):
    model.load(layer)
    time.sleep(SECONDS / 40)
while time.monotonic() < end:
    model.predict(np.ones(700))
    time.sleep(0.02)
