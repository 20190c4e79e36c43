"""Each call adds a warning filter and none is removed; re caches the last 512 of their patterns."""
import os
import random
import time
import warnings

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 36))


def quietly(code):
    words = "|".join(str(random.random()) for _ in range(10))
    warnings.filterwarnings("ignore", message=f"code {code} .* ({words})")


end = time.monotonic() + SECONDS
while time.monotonic() < end:
    for _ in range(3):
        quietly(random.getrandbits(50))
    time.sleep(0.02)
