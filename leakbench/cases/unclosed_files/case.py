"""Every upload opens a part file and keeps it in a list for later."""
import os
import tempfile
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 34))
folder = tempfile.TemporaryDirectory()
parts = []


def begin_upload(number):
    file = open(os.path.join(folder.name, f"part-{number}"), "wb")
    file.write(b"x" * 1000)
    parts.append(file)


end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end and number < 900:
    begin_upload(number)
    number += 1
    time.sleep(0.05)
