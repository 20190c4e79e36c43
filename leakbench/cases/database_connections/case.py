"""Each job opens its own SQLite database and never closes it."""
import os
import sqlite3
import tempfile
import time

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 30))
folder = tempfile.TemporaryDirectory()


class Jobs:
    def __init__(self):
        self.connections = {}

    def start(self, number):
        path = os.path.join(folder.name, f"{number % 7}.db")
        connection = sqlite3.connect(path, check_same_thread=False)
        connection.execute("create table if not exists jobs (id integer, text)")
        connection.execute("select count(*) from jobs").fetchone()
        self.connections[number] = connection


jobs = Jobs()
end = time.monotonic() + SECONDS
number = 0
while time.monotonic() < end and number < 400:
    jobs.start(number)
    number += 1
    time.sleep(0.1)
