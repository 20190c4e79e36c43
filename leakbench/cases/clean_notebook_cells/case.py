"""The same cell is run every few seconds and overwrites its table."""
import os
import time

from IPython.core.interactiveshell import InteractiveShell

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 60))
CELL = """
rows = [("cell", i, f"value {i}") for i in range(30_000)]
total = sum(i for _, i, _ in rows)
"""


def run_cells(shell, end):
    while time.monotonic() < end:
        shell.run_cell(CELL, store_history=True)
        time.sleep(min(4.0, max(0.0, end - time.monotonic())))


run_cells(InteractiveShell.instance(), time.monotonic() + SECONDS)
