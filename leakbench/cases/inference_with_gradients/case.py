"""A service that forgot no_grad and keeps the last scores of every request for a report."""
import os
import time

import torch

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
torch.set_num_threads(1)


class Service:
    def __init__(self):
        self.encoder = torch.nn.GRU(16, 32, batch_first=True)
        self.head = torch.nn.Linear(32, 3)
        self.report = []

    def predict(self, text):
        features = torch.randn(1, 40, 16)
        output, _ = self.encoder(features)
        scores = self.head(output[:, -1])
        self.report.append((text, scores))
        return scores.argmax().item()


service = Service()
end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    service.predict(f"text {number}")
    number += 1
    time.sleep(0.03)
