"""Runs the cells of standard input (a JSON list of strings) in a real kernel, and prints the outputs of each as JSON.

A cell that begins with "# interrupt" is interrupted once it has printed "ready".
"""

import asyncio
import json
import sys

import nbformat
from nbclient import NotebookClient


async def run(sources):
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    client = NotebookClient(notebook, timeout=240, kernel_name="python3", allow_errors=True)
    async with client.async_setup_kernel():
        for index, cell in enumerate(notebook.cells):
            running = asyncio.ensure_future(client.async_execute_cell(cell, index))
            if "# interrupt" in cell.source:
                while not any("ready" in output.get("text", "") for output in cell.outputs):
                    await asyncio.sleep(0.05)
                await client.km.interrupt_kernel()
            await running
    return [{"number": cell.execution_count, "outputs": cell.outputs} for cell in notebook.cells]


json.dump(asyncio.run(run(json.load(sys.stdin))), sys.stdout)
