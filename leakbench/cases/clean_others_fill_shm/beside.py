"""The other program: fills a file in /dev/shm."""
import os
import signal
import sys
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 60))
path = f"/dev/shm/another-{os.getpid()}"
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
end = time.monotonic() + SECONDS
try:
    with open(path, "wb") as file:
        while time.monotonic() < end:
            file.write(bytes(400_000))
            file.flush()
            time.sleep(0.2)
finally:
    os.unlink(path)
