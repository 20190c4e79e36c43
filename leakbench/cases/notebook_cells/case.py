"""A notebook keeps a table for each cell that is run, a few seconds apart."""
import os
import time

from IPython.core.interactiveshell import InteractiveShell

SECONDS = float(os.environ.get("LEAKBENCH_SECONDS", 60))
CELL = """
rows = [("cell", i, f"value {i}") for i in range(30_000)]
results.append(rows)
len(rows)
"""


def run_cells(shell, end):
    while time.monotonic() < end:
        shell.run_cell(CELL, store_history=True)
        time.sleep(min(4.0, max(0.0, end - time.monotonic())))


shell = InteractiveShell.instance()
shell.run_cell("results = []", store_history=True)
run_cells(shell, time.monotonic() + SECONDS)
