"""Short-lived threads open, read and close files: file handles come and go."""
import os
import tempfile
import threading
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "data")
with open(path, "wb") as file:
    file.write(os.urandom(200_000))


def job(results, number):
    with open(path, "rb") as file:
        results[number % 10] = sum(file.read())


results = {}
end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end:
    threads = [threading.Thread(target=job, args=(results, number + i)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    number += 5
    time.sleep(0.05)
